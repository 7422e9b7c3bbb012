package dir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestCorpus: real sessions, one from each folder or two in a long run, compacted to a third, lose nothing: each hidden
// message is kept in full, each artifact can be read, and the words that the
// index gives a message lead back to it. A20, A22, A23
func TestCorpus(t *testing.T) {
	root := corpus.Dir(t, "transcripts")
	counter, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, t.TempDir(), nil)
	sessions, hidden, first, asked := 0, 0, 0, 0
	perFolder, most := map[string]int{}, 1
	if corpus.Long() {
		most = 2
	}
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		folder := filepath.Dir(name)
		if err != nil || info.Size() < 20_000 || info.Size() > 800_000 || perFolder[folder] >= most {
			return err
		}
		f, err := transcript.Open(name, nil)
		if err != nil || len(f.Transcripts) == 0 {
			return nil // README and index files; reading is tested elsewhere
		}
		perFolder[folder]++
		th, err := thread.New(filepath.ToSlash(strings.TrimPrefix(name, root))).Append(f.Transcripts[0].Thread.Messages()...)
		if err != nil {
			return err
		}
		q := palimpsest.Request{Thread: th, Budget: 1 << 30, Profile: render.For(wire.Anthropic)}
		whole, err := c.Compact(t.Context(), q)
		if err != nil {
			return err
		}
		q.Budget = whole.Before / 3
		res, err := c.Compact(t.Context(), q)
		if errors.Is(err, palimpsest.ErrOverBudget) {
			return nil
		}
		if err != nil {
			return err
		}
		sessions++
		if err := s.Save(t.Context(), th, res.Plan); err != nil {
			return err
		}
		entries, damage, err := s.List(t.Context(), th.ID())
		if err != nil || len(damage) > 0 || len(entries) != len(res.Manifest.Hidden) {
			return fmt.Errorf("%s: %d entries of %d hidden messages, damage %v, %w", name, len(entries), len(res.Manifest.Hidden), damage, err)
		}
		x := recall.NewIndex(entries)
		for i, h := range res.Manifest.Hidden {
			at, _ := th.Index(h.ID)
			if entries[i].MessageID != h.ID || entries[i].Text != recall.FullText(th.At(at)) {
				t.Errorf("%s: message %d is not kept as it was", name, at)
			}
			hidden++
			if len(entries[i].Keywords) < 4 || i%5 > 0 && !corpus.Long() {
				continue
			}
			asked++
			for _, hit := range x.Search(strings.Join(entries[i].Keywords[:4], " "), nil) {
				if hit.MessageID == h.ID || slices.Contains(hit.Also, h.ID) {
					first++
					break
				}
			}
		}
		for _, r := range res.Plan.Externalizations {
			if _, _, err := s.Artifacts().Get(t.Context(), artifact.Requester{}, r.ArtifactID); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if damage, err := s.Check(t.Context()); err != nil || len(damage) > 0 {
		t.Errorf("check: %v, %v", damage, err)
	}
	t.Logf("%d sessions, %d hidden messages, %d of %d among the first ten for four of their keywords", sessions, hidden, first, asked)
	if sessions == 0 || first*100 < asked*90 {
		t.Errorf("%d sessions; keywords lead back to %d of %d messages", sessions, first, asked)
	}
}

// BenchmarkSave keeps a session of 1,000 messages and 600 KB, a fifth of it as
// artifacts, in a new store, and then once more. Disk included.
func BenchmarkSave(b *testing.B) {
	var messages []thread.Message
	for i := range 1000 {
		messages = append(messages, say(thread.Assistant, strings.Repeat(fmt.Sprintf("pkg%d/file%d.go handles request %d\n", i%30, i%200, i), 18)))
	}
	th := newThread(b, "bench", messages...)
	p := &plan.Plan{ThreadID: "bench", ThreadVersion: 1000, Drops: []plan.Removal{{Span: th.Range(200, 1000)}}}
	for i := range 200 {
		p.Externalizations = append(p.Externalizations, plan.Externalization{Span: th.Range(i, i+1), ArtifactID: artifact.IDOf("bench", th.At(i).Text())})
	}
	base := b.TempDir()
	for name, again := range map[string]bool{"new": false, "again": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				path := filepath.Join(base, name, fmt.Sprint(n))
				if !again {
					n++
				}
				if err := os.MkdirAll(path, 0o700); err != nil {
					b.Fatal(err)
				}
				if err := open(b, path, nil).Save(b.Context(), th, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
