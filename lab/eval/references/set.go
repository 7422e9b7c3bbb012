// Package references reads recorded conversations and finds what their agents refer to
// later: the identifiers that a later step writes and that only the old part of the
// history holds. It measures, for the ways to compact that package eval and the module
// lab compare, which of them a prompt shows or a lookup brings.
//
// A Session is a conversation and a Moment a place where it is compacted. A Need is a
// reference after the moment. A Contender is a way to compact, Shown is what it leaves,
// and Found says how far that gives a Need.
package references

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"iter"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Set is a corpus: conversations, read and searched once. It is safe for concurrent
// use by several runs.
type Set struct {
	// Counter is what tokens are counted with.
	Counter  *token.Counter
	Sessions []*Session
	// Skipped says which files could not be read, and why.
	Skipped []error
}

// OfSplit returns the conversations of a split, empty for all, that have at least so
// many tokens, in the order in which they were read.
func (s *Set) OfSplit(split Split, least int) []*Session {
	return slices.DeleteFunc(slices.Clone(s.Sessions), func(x *Session) bool {
		return x.Total < least || split != "" && split != All && x.split() != split
	})
}

// LargestFirst sorts conversations so that the slowest do not begin last.
func LargestFirst(sessions []*Session) []*Session {
	slices.SortStableFunc(sessions, func(a, b *Session) int { return cmp.Compare(b.Total, a.Total) })
	return sessions
}

// Progress is told how far long work has come. It is called from one goroutine at a
// time.
type Progress func(done, total int)

// Load reads the files and, below folders, all files that are transcripts. What
// cannot be read is named in Skipped; it is an error only when nothing is left.
// A nil counter counts o200k tokens, progress may be nil.
//
// The conversations of one folder are a family. Whether an identifier is common is
// decided within the family; all small families count as one.
func Load(ctx context.Context, paths []string, counter *token.Counter, progress Progress) (*Set, error) {
	if counter == nil {
		var err error
		if counter, err = token.New("o200k", nil); err != nil {
			return nil, fmt.Errorf("references.Load: %w", err)
		}
	}
	files, skipped, err := listFiles(paths)
	if err != nil {
		return nil, fmt.Errorf("references.Load: %w", err)
	}
	set := &Set{Counter: counter, Skipped: skipped}
	type opened struct {
		sessions []*Session
		err      error
	}
	read, err := Map(ctx, files, progress, func(f file) (opened, error) {
		sessions, err := open(f, counter)
		return opened{sessions, err}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("references.Load: %w", err)
	}
	for _, o := range read {
		if o.err != nil {
			set.Skipped = append(set.Skipped, o.err)
		}
		set.Sessions = append(set.Sessions, o.sessions...)
	}
	switch {
	case len(set.Sessions) > 0:
	case len(set.Skipped) > 0:
		return nil, fmt.Errorf("references.Load: no conversation in %s: %w", strings.Join(paths, ", "), errors.Join(set.Skipped...))
	case len(files) > 0:
		return nil, fmt.Errorf("references.Load: no conversation in %s has two answers of a model: nothing to measure", strings.Join(paths, ", "))
	default:
		return nil, fmt.Errorf("references.Load: no transcript in %s: no file ends in %s, or one of these and .gz", strings.Join(paths, ", "), strings.Join(endings, ", "))
	}
	for _, group := range set.corpora() {
		common := tooCommon(group)
		_, err := Map(ctx, group, nil, func(s *Session) (struct{}, error) {
			s.Link(common)
			return struct{}{}, nil
		})
		if err != nil {
			return nil, fmt.Errorf("references.Load: %w", err)
		}
	}
	return set, nil
}

// file is a transcript and the folder that names its family.
type file struct{ path, family string }

// endings are the endings of files that may be transcripts.
var endings = []string{".json", ".jsonl", ".traj", ".eval"}

// listFiles finds the files below the paths, sorted, and the folders that cannot be
// read.
func listFiles(paths []string) (files []file, skipped []error, err error) {
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
			plain := strings.TrimSuffix(d.Name(), ".gz")
			if path == root || slices.Contains(endings, filepath.Ext(plain)) && plain != "index.json" {
				files = append(files, file{path, filepath.Base(filepath.Dir(path))})
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return files, skipped, nil
}

// trailingNumber ends the names of several records of the same work.
var trailingNumber = regexp.MustCompile(`-\d+$`)

func open(f file, counter *token.Counter) ([]*Session, error) {
	read, err := transcript.Open(f.path, nil)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(filepath.Base(f.path), ".")
	work := name
	if _, rest, ok := strings.Cut(name, "-"); ok {
		work = rest
	}
	var all []*Session
	for i := range read.Transcripts {
		tr := &read.Transcripts[i]
		named, key := name, trailingNumber.ReplaceAllString(work, "")
		if len(read.Transcripts) > 1 {
			// Runs of the same task begin with the same words.
			named, key = fmt.Sprintf("%s#%d", name, i+1), firstUserText(tr)
		}
		s, err := NewSession(tr, f.family, f.family+"/"+key, counter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		if s.Name = named; len(s.Steps) > 1 {
			all = append(all, s)
		}
	}
	return all, nil
}

// firstUserText is the beginning of what the user first said.
func firstUserText(tr *transcript.Transcript) string {
	for _, m := range tr.Thread.All() {
		if m.StartsTurn() {
			text := m.Text()
			return text[:min(len(text), 60)]
		}
	}
	return tr.Name
}

// MinFamilySessions is how many sessions make a family a corpus of its own.
const MinFamilySessions = 20

func (s *Set) corpora() [][]*Session {
	byFamily := map[string][]*Session{}
	for _, x := range s.Sessions {
		byFamily[x.Family] = append(byFamily[x.Family], x)
	}
	groups := [][]*Session{nil}
	for _, x := range s.Sessions {
		group := byFamily[x.Family]
		switch {
		case len(group) < MinFamilySessions:
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

// String is the split in the words of a table.
func (s Split) String() string {
	if s == "" || s == All {
		return "both splits"
	}
	return string(s) + " split"
}

// split is the split of a session, by a hash of its key: records of the same work are in
// the same split, and new sessions move no others.
func (s *Session) split() Split {
	h := fnv.New32a()
	h.Write([]byte(s.Key))
	if h.Sum32()>>8&1 == 0 {
		return Dev
	}
	return Test
}

// tooCommon makes a filter of identifiers that tell nothing about one session: those in
// more than 30 % of the sessions, for numbers, dates and versions 5 %.
func tooCommon(sessions []*Session) func(ident.Ident) bool {
	count := map[string]int{}
	for _, s := range sessions {
		for norm := range s.norms {
			count[norm]++
		}
	}
	n := float64(len(sessions))
	return func(x ident.Ident) bool {
		share := 0.30
		switch x.Type {
		case ident.Number, ident.Date, ident.Version:
			share = 0.05
		}
		return float64(count[x.Norm]) > max(1, share*n)
	}
}

// CorpusHash is a hash over conversations: the last id of a thread is a hash chained
// over all its messages.
func CorpusHash(sessions iter.Seq[*Session]) string {
	var ids []string
	for s := range sessions {
		id := ""
		if n := s.Thread.Len(); n > 0 {
			id = string(s.Thread.At(n - 1).ID)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	sum := sha256.New()
	for _, id := range ids {
		sum.Write([]byte(id + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// IsCanceled reports whether work ended because its caller wanted it to, so that
// what is done so far can be reported.
func IsCanceled(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// Map does work for each item, on all processors, and returns the results in the
// order of the items. When the work fails or the context ends it starts no more and
// returns the results that there are, beside the error.
func Map[T, R any](ctx context.Context, items []T, progress Progress, work func(T) (R, error)) ([]R, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	results := make([]*R, len(items)) // nil: not done
	next, done := 0, 0
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= len(items) && failed == nil && ctx.Err() == nil
	}
	for range min(len(items), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				result, err := work(items[i])
				mu.Lock()
				if err == nil {
					results[i] = &result
				} else if failed == nil {
					failed = err
				}
				if done++; progress != nil {
					progress(done, len(items))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var out []R
	for _, r := range results {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out, errors.Join(failed, ctx.Err())
}
