package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// finderOf finds sessions as the settings say, with an index in the data directory.
func finderOf(c *config.Config) *sessions.Finder {
	f := &sessions.Finder{Exclude: config.List(c.Text("session-exclude")), Folders: map[string][]string{}}
	for _, one := range config.List(c.Text("session-folders")) {
		agent, folder, _ := strings.Cut(one, "=")
		f.Folders[agent] = append(f.Folders[agent], folder)
	}
	for i, folder := range f.Exclude {
		if whole, err := filepath.Abs(folder); err == nil {
			f.Exclude[i] = whole
		}
	}
	f.Keep, _ = config.DataDir() // without one nothing is kept
	return f
}

// localFinder finds sessions as the user's settings say.
func localFinder() (*sessions.Finder, error) {
	c, err := loadSettings("", nil)
	if err != nil {
		return nil, err
	}
	return finderOf(c), nil
}

// findSessions lists the sessions on this machine.
func findSessions() ([]sessions.Session, error) {
	f, err := localFinder()
	if err != nil {
		return nil, err
	}
	return f.Find("")
}

// resolveSession is the session that the name of a FILE means: a number, an id or the beginning of one. It
// is nil for the name of a file and for what names none.
func resolveSession(name string) (*sessions.Session, error) {
	if name == "-" {
		return nil, nil
	}
	f, err := localFinder()
	if err != nil {
		return nil, err
	}
	s, found, err := f.Resolve(name)
	if !found {
		return nil, err
	}
	return &s, nil
}

// sessionPath is the path of the session that a name means, or else the name.
func sessionPath(name string) string {
	if s, err := resolveSession(name); err == nil && s != nil {
		return s.Path
	}
	return name
}

// indexSessions reads what sessions are about that the index does not know, the newest first.
func indexSessions(ctx context.Context, f *sessions.Finder) error {
	all, err := f.Find("")
	for some := range slices.Chunk(all, indexedAtOnce) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.Describe(some)
	}
	return err
}

// indexedAtOnce is after how many sessions the index is written.
const indexedAtOnce = 50

// indexInBackground starts this program once more for the sessions that were not read yet.
func indexInBackground(f *sessions.Finder, all []sessions.Session) {
	program, err := os.Executable()
	if err != nil || f.Keep == "" || !strings.HasPrefix(filepath.Base(program), "palimpsest") { // such as a test
		return
	}
	if slices.ContainsFunc(all, func(s sessions.Session) bool { return !s.Read }) {
		_ = ondemand.Detach([]string{program, "sessions", "--index"}, "GOMAXPROCS=1") // the next list reads them
	}
}
