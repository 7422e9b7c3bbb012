package dir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ErrReadOnly is wrapped by the error of Save on a store that was opened to be
// read.
var ErrReadOnly = errors.New("store is open for reading only")

// Save keeps what p hides of t, and then p: first the content of externalized
// messages, then every removed message in full, then the plan, so that a plan
// never points at what is not there. A plan that does not hold for the thread
// is refused. Saving again writes nothing twice; an empty plan is kept only
// after another (it is the undo of all before it).
//
// When Save fails, part of what is hidden may have been kept and the plan was
// not. Then the plan should not be used.
func (s *Store) Save(ctx context.Context, t *thread.Thread, p *plan.Plan) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("dir.Save(%s): thread %q: %w", s.path, t.ID(), err)
		}
	}()
	switch {
	case s.options.ReadOnly:
		return ErrReadOnly
	case t.ID() == "":
		return errors.New("the thread has no id to be kept under")
	case p == nil:
		return errors.New("no plan was given")
	}
	if err := p.Validate(t); err != nil {
		return err
	}
	folder := threadDir(t.ID())
	entries := recall.Removed(t, p)
	if err := s.saveArtifacts(ctx, t, entries); err != nil {
		return err
	}
	if err := s.saveRemoved(ctx, folder, entries); err != nil {
		return err
	}
	if err := s.saveFirst(folder, t); err != nil {
		return err
	}
	return s.savePlan(ctx, folder, p)
}

// firstLength bounds what is kept of the user's first message, in characters: it is
// there for lists.
const firstLength = 200

// saveFirst keeps the beginning of what the user said first, by which people know a
// thread: plans seldom take that message out.
func (s *Store) saveFirst(folder string, t *thread.Thread) error {
	for _, m := range t.All() {
		words := strings.Join(strings.Fields(strings.ToValidUTF8(m.Text(), "\ufffd")), " ")
		if !m.StartsTurn() || words == "" {
			continue
		}
		if runes := []rune(words); len(runes) > firstLength {
			words = string(runes[:firstLength])
		}
		if err := s.files.Create(path.Join(folder, firstFile), []byte(words+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	return nil
}

// First is the beginning of what the user of a thread said first; empty where that
// is not known.
func (s *Store) First(threadID string) string {
	data, err := s.files.Root.ReadFile(path.Join(threadDir(threadID), firstFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), ""))
}

// writers is how many artifacts are written at a time: each waits for the disk,
// and one journal commit serves all that wait together.
const writers = 8

func (s *Store) saveArtifacts(ctx context.Context, t *thread.Thread, entries []recall.Entry) error {
	var wg sync.WaitGroup
	free := make(chan struct{}, writers)
	failures := make([]error, len(entries))
	// Messages that say the same share an artifact, and one after the other adds
	// itself to its metadata.
	byID := map[string][]int{}
	for i, e := range entries {
		if e.ArtifactID != "" {
			byID[e.ArtifactID] = append(byID[e.ArtifactID], i)
		}
	}
	for _, same := range byID {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			for _, i := range same {
				failures[i] = s.saveArtifact(ctx, t, &entries[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

// saveArtifact writes the content that the plan's pointer means: that of the
// result, or of the message. A pointer to anything else, such as one artifact
// over several messages, leads to the removed messages themselves.
func (s *Store) saveArtifact(ctx context.Context, t *thread.Thread, e *recall.Entry) error {
	i, _ := t.Index(e.MessageID)
	content, ok := recall.Content(uncopied.At(t, i), func(content string) bool { return artifact.IDOf(t.ID(), content) == e.ArtifactID })
	if !ok {
		return nil
	}
	_, err := s.artifacts.Put(ctx, artifact.Metadata{
		ThreadID: t.ID(), TTLSeconds: int(s.options.TTL / time.Second), Sensitivity: s.options.Sensitivity,
		MessageIDs: []thread.ID{e.MessageID}, Tool: e.Tool, Turn: e.Turn,
	}, content)
	if err != nil {
		return fmt.Errorf("message %s: %w", e.MessageID, err)
	}
	return nil
}

func (s *Store) saveRemoved(ctx context.Context, folder string, entries []recall.Entry) error {
	held, _, err := s.removed(ctx, folder)
	if err != nil {
		return err
	}
	known := make(map[key]bool, len(held))
	for i := range held {
		if held[i].missing == nil {
			known[keyOf(&held[i].Entry)] = true
		}
	}
	var lines bytes.Buffer
	w := json.NewEncoder(&lines)
	w.SetEscapeHTML(false) // so that a person can search the file
	for i := range entries {
		if known[keyOf(&entries[i])] {
			continue
		}
		if err := w.Encode(lineOf(&entries[i])); err != nil {
			return err
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.files.Append(path.Join(folder, removedFile), lines.Bytes())
}

// savePlan writes the plan under the next free number, unless it is the last.
func (s *Store) savePlan(ctx context.Context, folder string, p *plan.Plan) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		numbers, err := s.planNumbers(folder)
		if err != nil {
			return err
		}
		next := 1
		if n := len(numbers); n > 0 {
			next = numbers[n-1] + 1
			last, err := s.files.Root.ReadFile(planPath(folder, numbers[n-1]))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if bytes.Equal(last, data) {
				return nil
			}
		} else if p.Empty() {
			return nil
		}
		err = s.files.Create(planPath(folder, next), data)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

func planPath(folder string, n int) string {
	return path.Join(folder, plansDir, strconv.Itoa(n)+jsonSuffix)
}

// planNumbers lists the plans of a thread, the first one first.
func (s *Store) planNumbers(folder string) ([]int, error) {
	files, err := s.files.List(path.Join(folder, plansDir))
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, f := range files {
		if digits, ok := strings.CutSuffix(f.Name(), jsonSuffix); ok {
			if n, err := strconv.Atoi(digits); err == nil && n > 0 && strconv.Itoa(n) == digits {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
