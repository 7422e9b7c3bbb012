package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Damage is something in a store that cannot be read, or that nothing needs.
type Damage struct {
	// Path is relative to the store, with slashes; Line counts from 1, and is 0
	// for a whole file.
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason"`
}

// String writes path, line and reason.
func (d Damage) String() string {
	if d.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", d.Path, d.Line, d.Reason)
	}
	return fmt.Sprintf("%s: %s", d.Path, d.Reason)
}

// Check reads everything and reports what is damaged: lines, artifacts and plans
// that cannot be read, messages that a plan hides and the store does not have,
// and unfinished files that a crash has left. It changes nothing.
func (s *Store) Check(ctx context.Context) ([]Damage, error) {
	var damage []Damage
	err := s.checkFiles(ctx, &damage)
	if err == nil {
		err = s.checkThreads(ctx, &damage)
	}
	if err != nil {
		return damage, fmt.Errorf("dir.Check(%s): %w", s.path, err)
	}
	return damage, nil
}

func (s *Store) checkFiles(ctx context.Context, damage *[]Damage) error {
	return s.walk(ctx, func(name string, _ fs.DirEntry) error {
		file := path.Base(name)
		switch id, isMetadata := strings.CutSuffix(file, jsonSuffix); {
		case durable.IsTemp(file):
			*damage = append(*damage, Damage{Path: name, Reason: "an unfinished file, left by a crash or still being written"})
		case isMetadata && artifact.IsID(id):
			m, err := backend{s.files}.metadata(strings.TrimSuffix(name, jsonSuffix))
			if err == nil {
				_, _, err = s.artifacts.Get(ctx, artifact.Requester{TenantID: m.TenantID}, id)
			}
			if err != nil && !errors.Is(err, artifact.ErrExpired) {
				*damage = append(*damage, Damage{Path: name, Reason: err.Error()})
			}
		case artifact.IsID(file):
			if _, err := s.files.Root.Stat(name + jsonSuffix); errors.Is(err, fs.ErrNotExist) {
				*damage = append(*damage, Damage{Path: name, Reason: "content without metadata, left by a crash or still being written"})
			}
		}
		return nil
	})
}

func (s *Store) checkThreads(ctx context.Context, damage *[]Damage) error {
	folders, err := s.threadDirs()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		entries, broken, err := s.removed(ctx, folder)
		if err != nil {
			return err
		}
		*damage = append(*damage, broken...)
		have := make(map[thread.ID]bool, len(entries))
		for _, k := range entries {
			have[k.MessageID] = true
		}
		numbers, err := s.planNumbers(folder)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			name := planPath(folder, n)
			data, err := s.files.Root.ReadFile(name)
			if err != nil {
				return err
			}
			p, err := plan.Parse(data)
			if err != nil {
				*damage = append(*damage, Damage{Path: name, Reason: err.Error()})
				continue
			}
			for _, ref := range p.Refs() {
				for _, id := range p.Record(ref).Covers().MessageIDs {
					if !have[id] {
						*damage = append(*damage, Damage{Path: name, Reason: fmt.Sprintf("%s hides message %s, which the store does not have", ref, id)})
					}
				}
			}
		}
	}
	return nil
}

// abandoned is the age from which an unfinished file is taken for left behind:
// no write takes that long.
const abandoned = time.Hour

// Sweep deletes artifacts that have expired and unfinished files older than an
// hour, and returns how many of both.
func (s *Store) Sweep(ctx context.Context) (n int, err error) {
	if s.options.ReadOnly {
		return 0, fmt.Errorf("dir.Sweep(%s): %w", s.path, ErrReadOnly)
	}
	now := time.Now
	if s.options.Now != nil {
		now = s.options.Now
	}
	n, failed := s.artifacts.Sweep(ctx, artifact.Requester{}, nil)
	err = s.walk(ctx, func(name string, e fs.DirEntry) error {
		info, err := e.Info()
		if err != nil || !durable.IsTemp(path.Base(name)) || now().Sub(info.ModTime()) < abandoned {
			return nil // gone, finished, or young
		}
		if err := s.files.Root.Remove(name); err != nil {
			return err
		}
		n++
		return nil
	})
	if err = errors.Join(failed, err); err != nil {
		return n, fmt.Errorf("dir.Sweep(%s): %w", s.path, err)
	}
	return n, nil
}

// walk visits the files of the store. One that goes meanwhile is left out.
func (s *Store) walk(ctx context.Context, visit func(name string, e fs.DirEntry) error) error {
	return fs.WalkDir(s.files.Root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return nil
		}
		return visit(name, e)
	})
}
