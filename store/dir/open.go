package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

// ErrNotStore is wrapped by the error of Open for a directory that holds
// something else, or a store of a later format, or none where one must be.
var ErrNotStore = errors.New("not a palimpsest store")

// formatLine begins the README of a store. The number is that of the format.
const formatLine = "palimpsest store, format 1\n"

const readme = formatLine + `
What palimpsest took out of prompts is kept here, so that it can be read again.

artifacts/<2>/<id>                content that was put aside, as it was
artifacts/<2>/<id>.json           what is known about it
threads/<thread>/removed.jsonl    one removed message a line
threads/<thread>/first.txt        how the user began, for lists
threads/<thread>/plans/<n>.json   what stood in the prompt instead; 1 is the first
answers/<2>/<hash>.json           what a model answered, so that it is not asked again
keys/                             API keys (as hashes) and encrypted data keys

Everything is as private as the conversations it comes from. Deleting the whole
directory, or one thread's, harms nothing but the memory of it; without its keys,
nobody can sign in, and what was encrypted cannot be read.
`

// CompactionKeyFile and DaemonFile are files that the command may put into the usual
// place before there is a store: the key of native compactions that are emulated, and
// the daemon's own database, with what SQLite puts beside it.
const (
	CompactionKeyFile = "native-compaction.key"
	DaemonFile        = "daemon.db"
)

// Options tune a Store; nil or the zero value holds the defaults.
type Options struct {
	// ReadOnly opens a store that must be there already and refuses Save, so
	// that a mistyped name makes no directory.
	ReadOnly bool
	// TTL is how long artifacts that Save writes may be read, in whole seconds;
	// 0 is for ever.
	TTL time.Duration
	// Sensitivity is that of the artifacts that Save writes; "" is
	// artifact.Internal.
	Sensitivity artifact.Sensitivity
	// Now is the clock that dates and expires artifacts. Nil is time.Now.
	Now func() time.Time
}

// Store is a directory that keeps what was removed. It is safe for concurrent
// use, and several processes may use one directory.
type Store struct {
	path      string
	files     durable.Dir
	artifacts *artifact.Store
	options   Options
}

// Default returns the store's usual place: palimpsest under $XDG_DATA_HOME, or
// else under the directory for a user's data: ~/.local/share, on macOS
// ~/Library/Application Support, on Windows %LocalAppData%. The error says which
// variable to set.
func Default() (string, error) {
	// The XDG specification has relative paths ignored.
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "palimpsest"), nil
	}
	if runtime.GOOS == "windows" {
		if data := os.Getenv("LocalAppData"); data != "" {
			return filepath.Join(data, "palimpsest"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("dir.Default: %w; set XDG_DATA_HOME or name a store", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "palimpsest"), nil
	}
	return filepath.Join(home, ".local", "share", "palimpsest"), nil
}

// Open opens the store in a directory, which it makes with all above it, unless
// ReadOnly is set. It refuses a directory that holds other things. A store that
// cannot be written to is an error now and not after the work.
func Open(path string, o *Options) (_ *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("dir.Open(%s): %w", path, err)
		}
	}()
	if o == nil {
		o = &Options{}
	}
	if !o.ReadOnly {
		if err := os.MkdirAll(path, durable.DirMode); err != nil {
			return nil, fmt.Errorf("%w; choose a directory that can be written to", err)
		}
	}
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no such directory; nothing was kept here yet: %w", ErrNotStore, err)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, files: durable.Dir{Root: root}, options: *o}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	s.artifacts = artifact.NewStore(backend{s.files}, &artifact.Options{Now: o.Now})
	return s, nil
}

// checkFormat reads the README of a store that is there, and writes that of a
// new one.
func (s *Store) checkFormat() error {
	data, err := s.files.Root.ReadFile(readmeFile)
	switch {
	case err == nil && strings.HasPrefix(string(data), formatLine):
		if s.options.ReadOnly {
			return nil
		}
		if err := s.files.Writable(); err != nil {
			return fmt.Errorf("%w; choose a directory that can be written to", err)
		}
		return nil
	case err == nil:
		return fmt.Errorf("%w that this version reads: %s does not begin with %q", ErrNotStore, readmeFile, strings.TrimSpace(formatLine))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	entries, err := s.files.List(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case durable.IsTemp(name), name == artifactsDir, name == answersDir, name == threadsDir, name == tenantsDir, name == KeysDir, name == CompactionKeyFile, strings.HasPrefix(name, DaemonFile):
		default:
			return fmt.Errorf("%w: it holds %s; choose a new or an empty directory", ErrNotStore, name)
		}
	}
	if s.options.ReadOnly {
		if len(entries) == 0 {
			return fmt.Errorf("%w: the directory is empty", ErrNotStore)
		}
		return nil
	}
	if err := s.files.Replace(readmeFile, []byte(readme)); err != nil {
		return fmt.Errorf("%w; choose a directory that can be written to", err)
	}
	return nil
}

// Path returns the directory as it was given to Open.
func (s *Store) Path() string { return s.path }

// Artifacts returns the store of the content that was put aside.
func (s *Store) Artifacts() *artifact.Store { return s.artifacts }

// Backend returns where Artifacts keeps its records, for a program that wants an
// artifact.Store over it with keys or limits of its own. Save, List and Artifact
// know nothing of keys: they keep and read what is not encrypted.
func (s *Store) Backend() artifact.Backend { return backend{s.files} }

// Close gives the directory back to the system. Nothing is lost without it.
func (s *Store) Close() error { return s.files.Root.Close() }
