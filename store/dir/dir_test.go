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
	"time"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/property"
	"github.com/palimpsest-ai/palimpsest/internal/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func open(t testing.TB, path string, o *dir.Options) *dir.Store {
	t.Helper()
	s, err := dir.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

func call(id, name, arguments string) thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.Reasoning{Text: "let me look"}, thread.ToolCall{ID: id, Name: name, Arguments: arguments},
	}}
}

func result(id, tool, text string) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: id, Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}

func newThread(t testing.TB, id string, messages ...thread.Message) *thread.Thread {
	t.Helper()
	th, err := thread.New(id).Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// session is a small thread and a plan with every action in it.
func session(t testing.TB, id string) (*thread.Thread, *plan.Plan) {
	t.Helper()
	th := newThread(t, id,
		say(thread.User, "why does the worker stop?"),
		call("c1", "Read", `{"file_path":"dispatch/worker.go"}`),
		result("c1", "Read", "package dispatch\n\nfunc (w *Worker) Run() { /* gullwing */ }\n"),
		call("c2", "Bash", `{"command":"go test ./dispatch"}`),
		result("c2", "Bash", "--- FAIL: TestRun\n    worker_test.go:41: quokka was not drained"),
		say(thread.Assistant, "It never drains the queue (marmoset)."),
		say(thread.User, "then fix it"),
	)
	text := th.At(2).Parts[0].(thread.ToolResult).Text()
	return th, &plan.Plan{
		ThreadID: id, ThreadVersion: th.Version(), CreatedAt: time.Date(2025, 5, 12, 10, 0, 0, 0, time.UTC),
		Externalizations: []plan.Externalization{{Span: th.Range(2, 3), ArtifactID: artifact.IDOf(id, text), Origin: plan.Origin{Reason: "large"}}},
		Clearings:        []plan.Clearing{{Span: th.Range(4, 5)}},
		Summarizations:   []plan.Summarization{{Span: th.Range(5, 6)}},
		Drops:            []plan.Removal{{Span: th.Range(0, 1)}},
	}
}

// TestSaveAndReadBack: every hidden message comes back by its id, by a part of
// its id and by a word; artifacts come back by theirs. A20, A22, A23
func TestSaveAndReadBack(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "a", "store"), nil)
	th, p := session(t, "ticket/../4711")
	for range 2 {
		if err := s.Save(t.Context(), th, p); err != nil {
			t.Fatal(err)
		}
	}
	entries, damage, err := s.List(t.Context(), "")
	if err != nil || len(damage) > 0 || len(entries) != 4 {
		t.Fatalf("%d entries, damage %v, %v", len(entries), damage, err)
	}
	for word, at := range map[string]int{"stop": 0, "GULLWING": 2, "quokka": 4, "marmoset": 5, "worker.go": 2} {
		m := th.At(at)
		hits, _, err := s.Recall(t.Context(), word, nil)
		if err != nil || len(hits) == 0 || hits[0].MessageID != m.ID {
			t.Errorf("recall %s: %+v, %v", word, hits, err)
		}
		for _, id := range []thread.ID{m.ID, m.ID[:6]} {
			c, err := s.Artifact(t.Context(), string(id), "")
			if err != nil || c.Text != recall.FullText(m) || c.ThreadID != th.ID() {
				t.Errorf("%s: %+v, %v", id, c, err)
			}
		}
	}
	id := p.Externalizations[0].ArtifactID
	for _, id := range []string{id, id[:8]} {
		c, err := s.Artifact(t.Context(), id, "")
		if err != nil || !strings.Contains(c.Text, "gullwing") || !slices.Equal(c.MessageIDs, []thread.ID{th.At(2).ID}) || c.Tool != "Read" {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
	plans, damage, err := s.Plans(t.Context(), th.ID())
	if err != nil || len(plans) != 1 || len(damage) > 0 || plans[0].Drops[0].Span.First() != th.At(0).ID {
		t.Errorf("plans %v, %v, %v", plans, damage, err)
	}
	for _, id := range []string{"", "art", "zzzzzzzz", "art_0000000000000000", "../../../etc/passwd", string(th.At(6).ID)} {
		if _, err := s.Artifact(t.Context(), id, ""); !errors.Is(err, artifact.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if damage, err := s.Check(t.Context()); err != nil || len(damage) > 0 {
		t.Errorf("check: %v, %v", damage, err)
	}
}

// TestUndoAndGrow: later plans are added, an empty one is an undo, and a message
// that becomes an artifact later is read from either id.
func TestUndoAndGrow(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	th, p := session(t, "t")
	none := &plan.Plan{ThreadID: "t", ThreadVersion: th.Version()}
	first := &plan.Plan{ThreadID: "t", ThreadVersion: th.Version(), Clearings: []plan.Clearing{{Span: th.Range(2, 3)}}}
	for _, p := range []*plan.Plan{none, first, none, p} {
		if err := s.Save(t.Context(), th, p); err != nil {
			t.Fatal(err)
		}
	}
	plans, _, err := s.Plans(t.Context(), "t")
	if err != nil || len(plans) != 3 || !plans[1].Empty() || len(plans[2].Drops) != 1 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	entries, _, err := s.List(t.Context(), "t")
	if err != nil || len(entries) != 4 || entries[1].ArtifactID == "" || entries[1].Action != plan.Externalize {
		t.Errorf("entries %+v, %v", entries, err)
	}
}

// TestSaveRefuses names what cannot be kept.
func TestSaveRefuses(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, nil)
	th, p := session(t, "t")
	other := *p
	other.ThreadID = "other"
	if err := s.Save(t.Context(), th, &other); !errors.Is(err, plan.ErrInvalid) {
		t.Errorf("another thread's plan: %v", err)
	}
	if err := s.Save(t.Context(), th, nil); err == nil {
		t.Error("no plan was saved")
	}
	nameless, p0 := session(t, "")
	if err := s.Save(t.Context(), nameless, p0); err == nil {
		t.Error("a thread without id was saved")
	}
	reader := open(t, path, &dir.Options{ReadOnly: true})
	if err := reader.Save(t.Context(), th, p); !errors.Is(err, dir.ErrReadOnly) {
		t.Errorf("read only: %v", err)
	}
	if _, err := reader.Sweep(t.Context()); !errors.Is(err, dir.ErrReadOnly) {
		t.Errorf("read only: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(path, "threads")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v, %v", entries, err)
	}
}

// TestAmbiguous lists what an id may mean.
func TestAmbiguous(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	for _, id := range []string{"one", "two"} {
		a, b := say(thread.User, "shared"), say(thread.Assistant, "only of "+id)
		a.ID, b.ID = "message-a", "message-b"
		th := newThread(t, id, a, b)
		err := s.Save(t.Context(), th, &plan.Plan{ThreadID: id, ThreadVersion: 2, Drops: []plan.Removal{{Span: th.Range(0, 2)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.Artifact(t.Context(), "message-a", ""); err != nil || c.Text != "shared" {
		t.Errorf("two threads that say the same: %+v, %v", c, err)
	}
	for id, want := range map[string]int{"message-b": 2, "messag": 3} {
		_, err := s.Artifact(t.Context(), id, "")
		var ambiguous *dir.AmbiguousError
		if !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != want {
			t.Errorf("%s: %v", id, err)
		}
	}
	if c, err := s.Artifact(t.Context(), "message-b", "two"); err != nil || c.Text != "only of two" {
		t.Errorf("in one thread: %+v, %v", c, err)
	}
}

// TestSharedPointer: a plan of another maker may point at several messages, or
// by an id that is no content's; they are read through the messages.
func TestSharedPointer(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	th := newThread(t, "t", say(thread.User, "alpha"), say(thread.Assistant, "beta"), say(thread.User, "go on"))
	p := &plan.Plan{ThreadID: "t", ThreadVersion: 3, Externalizations: []plan.Externalization{{Span: th.Range(0, 2), ArtifactID: "blob-00012"}}}
	if err := s.Save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"blob-00012", "blob-0"} {
		if c, err := s.Artifact(t.Context(), id, ""); err != nil || c.Text != "alpha\nbeta" || len(c.MessageIDs) != 2 {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
}

// TestExpiry: an artifact whose time is over is not read by any way. A20
func TestExpiry(t *testing.T) {
	now := time.Date(2025, 5, 12, 10, 0, 0, 0, time.UTC)
	s := open(t, t.TempDir(), &dir.Options{TTL: time.Minute, Sensitivity: artifact.Confidential, Now: func() time.Time { return now }})
	th, p := session(t, "t")
	if err := s.Save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
	m, err := s.Artifacts().Metadata(t.Context(), artifact.Requester{}, p.Externalizations[0].ArtifactID)
	if err != nil || m.TTLSeconds != 60 || m.Sensitivity != artifact.Confidential {
		t.Errorf("metadata %+v, %v", m, err)
	}
	now = now.Add(time.Hour)
	for _, id := range []string{m.ID, m.ID[:8], string(th.At(2).ID)} {
		if c, err := s.Artifact(t.Context(), id, ""); !errors.Is(err, artifact.ErrExpired) {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
	hits, damage, err := s.Recall(t.Context(), "/* gullwing */", nil)
	if err != nil || len(damage) > 0 {
		t.Fatal(damage, err)
	}
	for _, h := range hits {
		if strings.Contains(h.Excerpt, "gullwing") {
			t.Errorf("expired content was found: %+v", h)
		}
	}
	if n, err := s.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if err := s.Save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Artifact(t.Context(), string(th.At(2).ID), ""); err != nil || !strings.Contains(c.Text, "gullwing") {
		t.Errorf("saved again: %+v, %v", c, err)
	}
}

// marked gives every message of a thread a word of its own, and every result a
// length that is worth putting aside.
func marked(t *rapid.T, th *thread.Thread) *thread.Thread {
	var messages []thread.Message
	for i, m := range th.All() {
		mark := thread.Text{Text: fmt.Sprintf("zmark%dq", i)}
		parts := slices.Clone(m.Parts)
		if r, ok := m.Result(); ok {
			r.Content = append(slices.Clone(r.Content), mark, thread.Text{Text: strings.Repeat("one line of a long output\n", 40)})
			parts = []thread.Part{r}
		} else {
			parts = append(parts, mark)
		}
		messages = append(messages, thread.Message{Role: m.Role, Kind: m.Kind, Parts: parts})
	}
	out, err := thread.New("fuzz/" + th.ID()).Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNothingIsLost: whatever a compaction hides can be read back in full by its
// message id, and is found by a word that it alone holds. A20, A22, A23
func TestNothingIsLost(t *testing.T) {
	counter, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	ladders := map[string]strategy.Ladder{
		"auto": strategy.Auto(), "seed": strategy.Seed(), "aside": {strategy.Externalize{Threshold: 20}, strategy.Drop{}}, "drop": {strategy.Drop{}},
		"clear": {strategy.Clear{Arguments: true}, strategy.Drop{}},
	}
	hidden := map[plan.Action]int{}
	base := t.TempDir()
	runs := 0
	property.Check(t, func(rt *rapid.T) {
		th := marked(rt, threadgen.Thread().Draw(rt, "thread"))
		ladder := rapid.SampledFrom([]string{"auto", "seed", "aside", "drop", "clear"}).Draw(rt, "ladder")
		c, err := palimpsest.New(palimpsest.Config{Counter: counter, Ladder: ladders[ladder]})
		if err != nil {
			rt.Fatal(err)
		}
		q := palimpsest.Request{Thread: th, Budget: 1 << 30, Profile: render.For(wire.Anthropic)}
		whole, err := c.Compact(t.Context(), q)
		if err != nil {
			rt.Fatal(err)
		}
		q.Budget = whole.Before * rapid.IntRange(20, 99).Draw(rt, "percent") / 100
		res, err := c.Compact(t.Context(), q)
		if errors.Is(err, palimpsest.ErrOverBudget) {
			return // there is no plan, so nothing is hidden
		}
		if err != nil {
			rt.Fatal(err)
		}
		runs++
		s, err := dir.Open(filepath.Join(base, fmt.Sprint(runs)), nil)
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		if err := s.Save(t.Context(), th, res.Plan); err != nil {
			rt.Fatal(err)
		}
		for _, h := range res.Manifest.Hidden {
			hidden[h.Record.Action]++
			i, _ := th.Index(h.ID)
			content, err := s.Artifact(t.Context(), string(h.ID), th.ID())
			if err != nil {
				rt.Fatal(err)
			}
			for _, text := range texts(th.At(i)) {
				if !strings.Contains(content.Text, text) {
					rt.Fatalf("message %d: %q lacks %q", i, content.Text, text)
				}
			}
			hits, damage, err := s.Recall(t.Context(), fmt.Sprintf("zmark%dq", i), &recall.Options{Limit: 1})
			if err != nil || len(damage) > 0 || len(hits) != 1 || hits[0].MessageID != h.ID {
				rt.Fatalf("message %d is not found: %+v, %v, %v", i, hits, damage, err)
			}
		}
		for _, x := range res.Plan.Externalizations {
			if _, _, err := s.Artifacts().Get(t.Context(), artifact.Requester{}, x.ArtifactID); err != nil {
				rt.Fatal(err)
			}
		}
		if damage, err := s.Check(t.Context()); err != nil || len(damage) > 0 {
			rt.Fatal(damage, err)
		}
	})
	for _, a := range []plan.Action{plan.Clear, plan.Summarize, plan.Externalize, plan.Drop} {
		if hidden[a] == 0 {
			t.Errorf("no message was hidden by %s: the test shows nothing for it", a)
		}
	}
	t.Logf("hidden messages read back, by action: %v", hidden)
}

// texts are the pieces of a message that a reader must get back, found without
// the code under test.
func texts(m *thread.Message) []string { return textsOf(m.Parts) }

func textsOf(parts []thread.Part) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case thread.Text:
			out = append(out, p.Text)
		case thread.Reasoning:
			out = append(out, p.Text)
		case thread.ToolCall:
			out = append(out, p.Name, p.Arguments)
		case thread.ToolResult:
			out = append(out, textsOf(p.Content)...)
		case thread.Media:
			out = append(out, string(p.Type), p.MIME)
		case thread.Opaque:
			out = append(out, p.Text)
		}
	}
	return out
}
