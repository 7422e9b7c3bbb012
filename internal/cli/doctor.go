package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/install"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// The states of a check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
)

// check is one thing that doctor looked at.
type check struct {
	Of    string `json:"of"` // an agent, or a part of Palimpsest
	State string `json:"state"`
	What  string `json:"what"`
	Mend  string `json:"mend,omitempty"` // what the user can do
}

func doctorCommand(s Streams) *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the agents, the daemon, the store and what was installed",
		Long: `Check what Palimpsest needs, and say how to mend what is wrong: the versions of the agents beside
those that were tried, whether what was installed is still in place, what is off, the settings, the
port, the daemon, the store with its keys and its encryption, and whether an agent will delete its
transcripts. Nothing of an agent is run. Exit status 1 if a check failed.

--keep copies the transcripts of Claude Code into the data directory, those that are new or
changed since the last time.`,
		Example: "  palimpsest doctor\n  palimpsest doctor --json\n  palimpsest doctor --keep",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if keep {
				return keepTranscripts(c.Context(), s)
			}
			checks, err := examine(c.Context())
			if err != nil {
				return err
			}
			if err := writeResult(s.Out, c, checks, func(p *printer) { p.checks(checks) }); err != nil {
				return err
			}
			if slices.ContainsFunc(checks, func(c check) bool { return c.State == checkFailed }) {
				return exitStatus(exitFailed)
			}
			return nil
		},
	}
	c.Flags().Bool("json", false, "write a JSON array")
	c.Flags().BoolVar(&keep, "keep", false, "copy the transcripts that Claude Code will delete")
	return c
}

func (p *printer) checks(all []check) {
	p.table([]string{"", "state", "what"}, mapSlice(all, func(c check) []string { return []string{c.Of, c.State, c.What} }))
	mends := map[string][]string{} // whose they are
	for _, c := range all {
		mends[c.Mend] = append(mends[c.Mend], c.Of)
	}
	for _, c := range all {
		if of := mends[c.Mend]; c.Mend != "" && of[0] == c.Of {
			p.text("%s: %s", strings.Join(of, ", "), c.Mend)
		}
	}
}

func examine(ctx context.Context) (all []check, err error) {
	self, err := thisProgram()
	if err != nil {
		return nil, err
	}
	found, err := install.Find()
	if err != nil {
		return nil, err
	}
	record, err := install.OpenRecord(self.Data)
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		all = append(all, examineAgent(self, record, a))
		if a.Name == install.ClaudeCode {
			all = append(all, examineTranscripts(a))
		}
	}
	if len(found) == 0 {
		all = append(all, check{"agents", checkWarning, "none were found", ""})
	}
	switch switches, _, err := loadSwitches(); {
	case err != nil:
		all = append(all, check{"switches", checkFailed, ErrorText(err), "remove that file"})
	case len(switches) > 0:
		all = append(all, check{"switches", checkWarning, "off for " + strings.Join(switches, ", "), "`palimpsest on` turns all on"})
	}
	settings, err := loadSettings("", nil)
	if err != nil {
		return append(all, check{"settings", checkFailed, ErrorText(err), "correct it; `palimpsest config show` lists the settings"}), nil
	}
	return append(all, examineDaemon(ctx), examinePort(ctx, settings), examineStore(ctx, settings)), nil
}

// examineAgent looks at the version of an agent, and at what is installed in it.
func examineAgent(self install.Self, record *install.Record, a install.Agent) check {
	c := check{a.Name, checkOK, "connected", ""}
	missing, err := self.Plan([]install.Agent{a})
	missing = record.Pending(missing)
	switch {
	case err != nil:
		c = check{a.Name, checkWarning, "not all can be installed", ErrorText(err)}
	case len(missing) == 0 && a.Absent != "" && !slices.Equal(a.Usual(), []install.Part{install.MCP}): // an editor with MCP alone needs none
		c = check{a.Name, checkWarning, "connected, but its program " + a.Absent + " is not on the PATH", "install it, or `palimpsest uninstall " + a.Name + "` takes out what is connected"}
	case len(missing) == 0:
	case record.Knows(a):
		c = check{a.Name, checkWarning, missing[0].What() + " is not in place: " + homePath(missing[0].Path), "`palimpsest install " + a.Name + "` puts it back"}
	default:
		c = check{a.Name, checkOK, "not connected", "`palimpsest install` connects what is not"}
	}
	switch {
	case a.Version == "":
		return c
	case a.Tried == "":
		c.What += "; version " + a.Version + ", none was tried"
	case install.Newer(a.Version, a.Tried):
		c.What += "; version " + a.Version + ", newer than " + a.Tried + ", which was tried"
	default:
		c.What += "; version " + a.Version
	}
	return c
}

// usualCleanup is after how many days without use Claude Code deletes a transcript.
const usualCleanup = 30

// examineTranscripts tells when Claude Code deletes its transcripts.
func examineTranscripts(a install.Agent) check {
	days, settings := usualCleanup, filepath.Join(a.Folder, "settings.json")
	if text, err := readRegular(settings); err == nil {
		if set, _, err := jsonedit.Member(string(text), "cleanupPeriodDays"); err == nil && set != "" {
			days = int(gjson.Parse(set).Int())
		}
	}
	if days > usualCleanup {
		return check{a.Name, checkOK, "transcripts stay for " + plural(days, "day"), ""}
	}
	return check{a.Name, checkWarning, "it deletes a transcript " + plural(days, "day") + " after its last use",
		"`palimpsest doctor --keep` copies them, or set cleanupPeriodDays in " + homePath(settings)}
}

func examineDaemon(ctx context.Context) check {
	const mend = "`palimpsest daemon stop`; the next plugin starts another"
	_, socket, err := userSocket()
	if err != nil {
		return check{"daemon", checkFailed, ErrorText(err), ""}
	}
	switch r, err := ondemand.Probe(ctx, socket); {
	case errors.Is(err, ondemand.ErrNoDaemon):
		return check{"daemon", checkOK, "none is running; a plugin starts it when it needs it", ""}
	case err != nil:
		return check{"daemon", checkFailed, ErrorText(err), mend}
	case r.Version != Version():
		return check{"daemon", checkWarning, "version " + r.Version + " is running, and this is " + Version(), mend}
	default:
		return check{"daemon", checkOK, fmt.Sprintf("running, process %d", r.PID), ""}
	}
}

// examinePort says whether `palimpsest serve` can listen on its address, or does.
func examinePort(ctx context.Context, settings *config.Config) check {
	listen := settings.Text("listen")
	address, client, err := daemonClient(settings)
	if err != nil {
		return check{"port", checkFailed, ErrorText(err), "correct the setting"}
	}
	if listen == "" {
		return check{"port", checkOK, "`palimpsest serve` listens on its socket alone", ""}
	}
	l, err := net.Listen("tcp", listen)
	const mend = "`palimpsest serve --listen ADDRESS` takes another address; plugins, hooks and MCP need none"
	switch {
	case err == nil:
		l.Close()
		return check{"port", checkOK, listen + " is free for `palimpsest serve`", ""}
	case askReady(ctx, address, client) == nil:
		return check{"port", checkOK, "a daemon answers at " + listen, ""}
	case errors.Is(err, syscall.EADDRINUSE):
		return check{"port", checkWarning, "another program has " + listen, mend}
	}
	return check{"port", checkWarning, "`palimpsest serve` cannot " + ErrorText(err), mend}
}

func examineStore(ctx context.Context, settings *config.Config) check {
	flag, listen := storeFlag{}, settings.Text("listen")
	c := check{Of: "store", State: checkOK}
	err := flag.withDatabase(ctx, true, func(db *database) error {
		c.What = flag.displayName() + ", not encrypted"
		if db.keyring != nil {
			c.What = flag.displayName() + ", encrypted"
		}
		keys, err := loadAPIKeys(ctx, db)
		host, _, _ := net.SplitHostPort(listen)
		if ip := net.ParseIP(host); err == nil && keys == nil && listen != "" && (host == "" || ip != nil && !ip.IsLoopback()) {
			c.State, c.Mend = checkFailed, "`palimpsest keys add NAME` makes a key, or listen on 127.0.0.1"
			c.What += ", without keys: `palimpsest serve` refuses to listen on " + listen
		}
		return err
	})
	switch {
	case flag.isMissing(err):
		return check{"store", checkOK, "nothing was kept yet", ""}
	case err != nil:
		return check{"store", checkFailed, ErrorText(err), ""}
	}
	return c
}

// keepTranscripts copies the transcripts of Claude Code that are new or changed into the data
// directory, laid out as the agent's own.
func keepTranscripts(ctx context.Context, s Streams) error {
	data, err := config.DataDir()
	if err != nil {
		return err
	}
	from, err := sessions.Folder(install.ClaudeCode)
	if err != nil {
		return err
	}
	k := keeper{to: filepath.Join(data, "kept", install.ClaudeCode, filepath.Base(from))}
	if k.from, err = filepath.EvalSymlinks(from); err == nil {
		err = filepath.WalkDir(k.from, func(path string, d fs.DirEntry, err error) error {
			return errors.Join(k.visit(path, d, err), ctx.Err())
		})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there are no transcripts in %s", from)
	}
	if err != nil {
		return err
	}
	p, folder := newPrinter(s.Out), filepath.Dir(k.to)
	p.line("copied %d of %s into %s", k.copied, plural(k.all, "transcript"), folder)
	p.line("`palimpsest sessions` also lists them with the setting session-folders: %s=%s", install.ClaudeCode, folder)
	return nil
}

// keeper copies the transcripts of a folder.
type keeper struct {
	from, to    string
	copied, all int
}

// visit copies a transcript that is new or changed. The agent may delete one meanwhile.
func (k *keeper) visit(path string, d fs.DirEntry, err error) error {
	if errors.Is(err, fs.ErrNotExist) && path != k.from {
		return nil
	}
	if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".jsonl" {
		return err
	}
	at := filepath.Join(k.to, strings.TrimPrefix(path, k.from))
	info, err := d.Info()
	if err == nil {
		k.all++
		if kept, err := os.Stat(at); err == nil && kept.Size() == info.Size() && kept.ModTime().Equal(info.ModTime()) {
			return nil
		}
		if err = copyFile(path, at); err == nil {
			k.copied++
			err = os.Chtimes(at, time.Time{}, info.ModTime())
		}
	}
	if _, gone := os.Lstat(path); errors.Is(gone, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyFile(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return fillOutput(to, nil, func(w io.Writer) error { _, err := io.Copy(w, f); return err })
}
