package eval

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Set is what is measured on: conversations, read and searched once. It is safe
// for concurrent use by several runs.
type Set struct {
	counter  *token.Counter
	sessions []*session
	// Skipped names the files that could not be read, and why.
	Skipped []error
}

// Len returns the number of conversations.
func (s *Set) Len() int { return len(s.sessions) }

// Counter is what tokens are counted with.
func (s *Set) Counter() *token.Counter { return s.counter }

// Threads are the conversations of a split, empty for all, and a hash over them as
// in Report.Corpus.
func (s *Set) Threads(split Split) (threads []*thread.Thread, corpus string) {
	var chosen []*session
	for _, x := range s.sessions {
		if split == "" || split == All || x.split() == split {
			chosen = append(chosen, x)
			threads = append(threads, x.thread)
		}
	}
	return threads, corpusHash(slices.Values(chosen))
}

// Progress is told how far a long work is. It is called from one goroutine at a
// time.
type Progress func(done, total int)

// Load reads the files and, below folders, all files that are transcripts. What
// cannot be read is named in Skipped; it is an error only when nothing is left.
// A nil counter counts o200k tokens, progress may be nil.
//
// Conversations below one folder are a family; whether an identifier is common
// is asked of the family, or, for one of few conversations, of all small
// families together.
func Load(ctx context.Context, paths []string, counter *token.Counter, progress Progress) (*Set, error) {
	if counter == nil {
		var err error
		if counter, err = token.New("o200k", nil); err != nil {
			return nil, fmt.Errorf("eval.Load: %w", err)
		}
	}
	files, skipped, err := list(paths)
	if err != nil {
		return nil, fmt.Errorf("eval.Load: %w", err)
	}
	set := &Set{counter: counter, Skipped: skipped}
	read := make([][]*session, len(files))
	failures := make([]error, len(files))
	err = each(ctx, len(files), progress, func(i int) error {
		read[i], failures[i] = open(files[i], counter)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("eval.Load: %w", err)
	}
	for i := range files {
		if failures[i] != nil {
			set.Skipped = append(set.Skipped, failures[i])
		}
		set.sessions = append(set.sessions, read[i]...)
	}
	switch {
	case len(set.sessions) > 0:
	case len(set.Skipped) > 0:
		return nil, fmt.Errorf("eval.Load: no conversation in %s: %w", strings.Join(paths, ", "), errors.Join(set.Skipped...))
	case len(files) > 0:
		return nil, fmt.Errorf("eval.Load: no conversation in %s has two answers of a model: nothing to measure", strings.Join(paths, ", "))
	default:
		return nil, fmt.Errorf("eval.Load: no transcript in %s: no file ends in %s, or one of these and .gz", strings.Join(paths, ", "), strings.Join(endings, ", "))
	}
	for _, group := range set.corpora() {
		common := tooCommon(group)
		if err := each(ctx, len(group), nil, func(i int) error { group[i].link(common); return nil }); err != nil {
			return nil, fmt.Errorf("eval.Load: %w", err)
		}
	}
	return set, nil
}

// file is a transcript and the folder that names its family.
type file struct{ path, family string }

// endings are those of files that may be transcripts.
var endings = []string{".json", ".jsonl", ".traj", ".eval"}

// list finds the files below the paths, sorted, and the folders that cannot be
// read.
func list(paths []string) (files []file, skipped []error, err error) {
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil && path != root:
				skipped = append(skipped, err)
				return nil
			case err != nil:
				return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
			case d.IsDir():
				return nil
			}
			name := d.Name()
			plain := strings.TrimSuffix(name, ".gz")
			if path != root && !slices.Contains(endings, filepath.Ext(plain)) {
				return nil
			}
			if path != root && plain == "index.json" {
				return nil
			}
			files = append(files, file{path, filepath.Base(filepath.Dir(path))})
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return files, skipped, nil
}

// part is the number at the end of the name of one of several records of the
// same work.
var part = regexp.MustCompile(`-\d+$`)

func open(f file, counter *token.Counter) ([]*session, error) {
	read, err := transcript.Open(f.path, nil)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(filepath.Base(f.path), ".")
	var all []*session
	for i := range read.Transcripts {
		tr := &read.Transcripts[i]
		key := f.family + "/" + part.ReplaceAllString(name, "")
		if _, work, ok := strings.Cut(name, "-"); ok && len(read.Transcripts) == 1 {
			key = f.family + "/" + part.ReplaceAllString(work, "")
		}
		if len(read.Transcripts) > 1 {
			// Runs of the same task begin with the same words.
			key = f.family + "/" + opening(tr)
		}
		s, err := newSession(tr, f.family, key, counter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		if len(read.Transcripts) > 1 {
			s.name = fmt.Sprintf("%s#%d", name, i+1)
		} else {
			s.name = name
		}
		if len(s.steps) > 1 {
			all = append(all, s)
		}
	}
	return all, nil
}

// opening is the beginning of what the user first said.
func opening(tr *transcript.Transcript) string {
	for _, m := range uncopied.All(tr.Thread) {
		if m.StartsTurn() {
			text := m.Text()
			return text[:min(len(text), 60)]
		}
	}
	return tr.Name
}

// fewest is the number of sessions from which a family is a corpus of its own.
const fewest = 20

func (s *Set) corpora() [][]*session {
	byFamily := map[string][]*session{}
	for _, x := range s.sessions {
		byFamily[x.family] = append(byFamily[x.family], x)
	}
	groups := [][]*session{nil}
	for _, x := range s.sessions {
		group := byFamily[x.family]
		switch {
		case len(group) < fewest:
			groups[0] = append(groups[0], x)
		case group[0] == x:
			groups = append(groups, group)
		}
	}
	return groups
}

// Split is a half of the sessions: policies are tuned on one and judged on the
// other.
type Split string

// The splits. The empty one is All.
const (
	All  Split = "all"
	Dev  Split = "dev"
	Test Split = "test"
)

// String is the split as a table says it.
func (s Split) String() string {
	if s == "" || s == All {
		return "both splits"
	}
	return string(s) + " split"
}

// split is that of a session: by a hash of what its work is called, so that
// records of one work never part, and more sessions change none of those before.
func (s *session) split() Split {
	h := fnv.New32a()
	h.Write([]byte(s.key))
	if h.Sum32()>>8&1 == 0 {
		return Dev
	}
	return Test
}

// brokenOff reports whether a work ended because its caller wanted it to, so that
// what is done so far can be told.
func brokenOff(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// each runs work for 0 to n-1 on all processors.
func each(ctx context.Context, n int, progress Progress, work func(i int) error) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	next, done := 0, 0
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := i >= n || failed != nil || ctx.Err() != nil
				mu.Unlock()
				if stop {
					return
				}
				err := work(i)
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				done++
				if progress != nil {
					progress(done, n)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(failed, ctx.Err())
}
