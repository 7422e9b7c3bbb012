package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// target is what a command is about. The name that the user gives means, in this order: a file, or "-" for standard
// input; the session of an agent, by its number in the list last shown, its id or the beginning of that, or "latest";
// a stored conversation, by its id or the beginning of that.
type target struct {
	named  string
	path   string            // the file to read; "-" for standard input, and for a stored conversation
	taken  *sessions.Session // nil for any other
	stored string            // the id of a stored conversation; empty for any other
	store  *storeFlag        // where it is sought; nil is the usual store
}

// latestName means the newest session that an agent has worked in.
const latestName = "latest"

// find finds what the name means. A stored conversation it reads.
func (in *input) find(ctx context.Context, name string) (err error) {
	in.named, in.path = name, name
	if in.taken, err = resolveSession(name); err != nil || name == "-" {
		return err
	}
	if in.taken != nil {
		in.path = in.taken.Path
		return nil
	}
	file, _, _ := strings.Cut(name, "#") // a session in a database is named behind it
	if _, err = os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return nil // what is wrong with it is told when it is read
	}
	if err = in.findStored(ctx, name); in.stored != "" || err != nil {
		return err
	}
	return fmt.Errorf("there is no file, no session and no stored conversation %s%s: `palimpsest sessions` and `palimpsest threads%s` list what there is",
		printable(name), nearestName(name), cmp.Or(in.store, &storeFlag{}).arguments())
}

// findStored reads the stored conversation that a name means, if there is one. The only errors are that it means
// several, and those of ctx: a store that cannot be read has none.
func (in *input) findStored(ctx context.Context, name string) error {
	err := cmp.Or(in.store, &storeFlag{}).withTenant(ctx, func(k *tenantStore) error {
		info, err := k.thread(ctx, name)
		if err != nil {
			return err
		}
		log, err := k.Log.Load(ctx, info.ID)
		if err != nil {
			return err
		}
		in.setStored(transcript.Transcript{Name: info.ID, Thread: log})
		if session, err := k.session(info.ID); err == nil { // the model is told where it is known
			if last, err := session.LastStep(ctx); err == nil && last.Base != nil {
				in.file.Transcripts[0].Model = last.Base.Model
			}
		}
		return nil
	})
	if errors.Is(err, errUsage) {
		return err
	}
	return ctx.Err()
}

// thread describes the stored conversation that a THREAD means: an id, the only one that begins so, or the
// number of its session in the list last shown. The error says how to list what there is.
func (k *tenantStore) thread(ctx context.Context, name string) (store.Info, error) {
	info, err := k.Catalog.Thread(ctx, name)
	if !errors.Is(err, store.ErrNotFound) {
		return info, err
	}
	all, failed := care.AllThreads(ctx, k.Catalog)
	if failed != nil {
		return info, failed
	}
	idOf := func(i store.Info) string { return i.ID }
	found := suggest.ByID(all, name, idOf)
	s, _ := resolveSession(name)
	if s != nil && len(found) == 0 {
		found = suggest.ByID(all, s.ID, idOf)
	}
	switch len(found) {
	case 0:
		if s != nil {
			return info, fmt.Errorf("%w: %s is the session %s of %s, of which nothing was stored: `palimpsest compact %[2]s --budget 32000` stores it (--store names another store)",
				store.ErrNotFound, printable(name), printable(s.ID), s.Agent)
		}
		short := ""
		if len(name) < suggest.MinID {
			short = fmt.Sprintf(", and the beginning of an id needs at least %d characters", suggest.MinID)
		}
		return info, fmt.Errorf("%w: there is no stored conversation %s%s: `palimpsest threads` lists them (--store names another store)", store.ErrNotFound, printable(name), short)
	case 1:
		return found[0], nil
	}
	return info, fmt.Errorf("%w: %d stored conversations begin with %s: %s; give more of the id", errUsage, len(found), printable(name), printable(joinEach(firstN(found, maxNamed), idOf)))
}

// session is a stored conversation whose plans can be changed.
func (k *tenantStore) session(id string) (*palimpsest.Session, error) {
	c, err := palimpsest.New(palimpsest.Config{Store: k.Tenant, Requester: artifact.Requester{TenantID: k.id}})
	if err != nil {
		return nil, err
	}
	return c.Session(id), nil
}

// complete makes the THREAD of a flag, unless it is empty, the id that it means.
func (k *tenantStore) complete(ctx context.Context, name *string) error {
	if *name == "" {
		return nil
	}
	info, err := k.thread(ctx, *name)
	*name = info.ID
	return err
}

// setStored makes a stored conversation the input.
func (in *input) setStored(t transcript.Transcript) {
	in.stored, in.path = t.Name, "-"
	in.file = &transcript.File{Transcripts: []transcript.Transcript{t}}
}

// resolveSession is the session that a name means: "latest", a number, an id or the beginning of one. It
// is nil for the name of a file and for what names none.
func resolveSession(name string) (*sessions.Session, error) {
	if name == "-" || name == "" {
		return nil, nil
	}
	f, err := localFinder()
	if err != nil {
		return nil, err
	}
	if _, missing := os.Lstat(name); name == latestName && missing != nil {
		all, err := f.Find("")
		if all = f.InUse(all, 1); err == nil && len(all) == 0 {
			err = fmt.Errorf("%w: no sessions were found on this machine: name a FILE", errUsage)
		}
		return &append(all, sessions.Session{})[0], err
	}
	s, found, err := f.Resolve(name)
	if !found {
		return nil, err
	}
	return &s, nil
}

// namesFile reports whether a name is that of a file or a session, or standard input.
func namesFile(name string) bool {
	_, err := os.Stat(name)
	if err == nil || name == "-" {
		return true
	}
	s, err := resolveSession(name)
	return s != nil || err != nil
}

// nearestName asks whether a file or a session was meant whose name is like one that is not there; "" without any.
func nearestName(name string) string {
	dir, base := filepath.Split(name)
	var known []string
	if f, err := os.Open(cmp.Or(dir, ".")); err == nil {
		known, _ = f.Readdirnames(1000)
		f.Close()
	}
	other := func(file string) bool { return max(len(file), len(base)) > min(len(file), len(base))+2 } // Name also takes a part of the name
	near := suggest.Name(base, slices.DeleteFunc(known, other))
	if all, err := findSessions(); near == "" && dir == "" && err == nil {
		near = suggest.Name(base, mapSlice(all, func(s sessions.Session) string { return s.ID[:min(len(s.ID), max(len(base), leastID))] }))
	}
	if near != "" {
		near = dir + near
	}
	return didYouMean(near)
}

// didYouMean asks whether a name was meant; "" without one.
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return " (did you mean " + printable(name) + "?)"
}

// printTaken names the session or the stored conversation that the name means, unless it is its whole id.
func (in *target) printTaken(w io.Writer) {
	s := in.taken
	printTwins(w, s)
	switch {
	case in.stored != "" && in.stored != in.named:
		fmt.Fprintf(w, "palimpsest: %s is the stored conversation %s\n", printable(in.named), printable(in.stored))
	case s == nil || s.ID == in.named:
	default:
		words := ""
		if title := cmp.Or(s.Title, s.First); title != "" {
			words = fmt.Sprintf(": %q", shorten(title, 60))
		}
		fmt.Fprintf(w, "palimpsest: %s is the session %s of %s, changed %s%s\n", printable(in.named), printable(s.ID), s.Agent, s.Changed.Local().Format("2006-01-02 15:04"), words)
	}
}

// printTwins names the older sessions with the id of one that was taken.
func printTwins(w io.Writer, s *sessions.Session) {
	if s != nil && len(s.Twins) > 0 {
		fmt.Fprintf(w, "palimpsest: %s is the newest session with its id; older are %s\n", printable(s.Path), printable(strings.Join(s.Twins, ", ")))
	}
}

// command names the target for another command.
func (in *target) command() string {
	switch {
	case in.stored != "":
		return printable(shellQuote(in.stored))
	case in.taken != nil:
		return shellQuote(in.taken.ID)
	}
	return shellQuote(in.path)
}

// name names the target in reports.
func (in *target) name() string {
	switch {
	case in.stored != "":
		return in.stored
	case in.path == "-":
		return "standard input"
	}
	return filepath.Base(in.path)
}

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

func findSessions() ([]sessions.Session, error) {
	f, err := localFinder()
	if err != nil {
		return nil, err
	}
	return f.Find("")
}
