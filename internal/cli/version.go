package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version, commit and date are set by the linker for a release; otherwise they come from the
// build information.
var version, commit, date string

// build describes how this program was built.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"commit_date,omitempty"` // of the commit
	Modified bool   `json:"modified,omitempty"`    // files differ from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version is that of this program, for those beside the command too.
func Version() string { return thisBuild().Version }

// thisBuild describes this program. Without a release the version is that of the module, which
// `go install MODULE@VERSION` and a build of a tagged commit have.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	b := buildOf(info)
	if version != "" {
		b.Version, b.Modified = version, false
	}
	b.Commit, b.Date = cmp.Or(commit, b.Commit), cmp.Or(date, b.Date)
	return b
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: info.Main.Version, Go: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "development"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the build in two or three lines.
func (b build) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "palimpsest %s\n", b.Version)
	if b.Commit != "" {
		fmt.Fprintf(&s, "commit %s", b.Commit)
		if b.Date != "" {
			fmt.Fprintf(&s, " of %s", b.Date)
		}
		if b.Modified {
			s.WriteString(", with changes")
		}
		s.WriteString("\n")
	}
	fmt.Fprintf(&s, "%s %s\n", b.Go, b.Platform)
	return s.String()
}

func versionCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit it was built from and the version of Go",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := thisBuild()
			return writeResult(s.Out, c, b, func(p *printer) { fmt.Fprint(p.w, b) })
		},
	}
	c.Flags().Bool("json", false, "write one JSON object")
	return c
}
