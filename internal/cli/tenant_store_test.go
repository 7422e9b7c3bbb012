package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// openKept opens a store that is empty at first.
func openKept(t testing.TB, name string) *tenantStore {
	t.Helper()
	f := storeFlag{name: name}
	db, err := f.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db.forTenant("")
}

func save(t testing.TB, k *tenantStore, th *thread.Thread, p *plan.Plan) {
	t.Helper()
	if _, err := k.save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
}

func removedOf(t testing.TB, k *tenantStore, threadID string) []recall.Entry {
	t.Helper()
	entries, unread, err := k.listEntries(t.Context(), threadID, recall.Removed)
	if err != nil || len(unread) > 0 {
		t.Fatal(unread, err)
	}
	return entries
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

// small is a small thread and a plan with every action in it.
func small(t testing.TB, id string) (*thread.Thread, *plan.Plan) {
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
	k := openKept(t, filepath.Join(t.TempDir(), "a", "store")+string(filepath.Separator))
	th, p := small(t, "ticket/../4711")
	for range 2 {
		save(t, k, th, p)
	}
	entries := removedOf(t, k, "")
	if len(entries) != 4 {
		t.Fatalf("%d entries", len(entries))
	}
	for word, at := range map[string]int{"stop": 0, "GULLWING": 2, "quokka": 4, "marmoset": 5, "worker.go": 2} {
		m := th.At(at)
		hits := recall.NewIndex(entries).Search(word, nil)
		if len(hits) == 0 || hits[0].MessageID != m.ID {
			t.Errorf("recall %s: %+v", word, hits)
		}
		for _, id := range []thread.ID{m.ID, m.ID[:6]} {
			c, err := k.findContent(t.Context(), string(id), "")
			if err != nil || c.Text != recall.FullText(m) || c.ThreadID != th.ID() {
				t.Errorf("%s: %+v, %v", id, c, err)
			}
		}
	}
	id := p.Externalizations[0].ArtifactID
	for _, id := range []string{id, id[:8]} {
		c, err := k.findContent(t.Context(), id, "")
		if err != nil || !strings.Contains(c.Text, "gullwing") || !slices.Equal(c.MessageIDs, []thread.ID{th.At(2).ID}) || c.Tool != "Read" {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
	for _, id := range []string{"", "art", "zzzzzzzz", "art_0000000000000000", "../../../etc/passwd"} {
		if _, err := k.findContent(t.Context(), id, ""); !errors.Is(err, artifact.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestPlanSize: the counter is named where it is known, and is another.
func TestPlanSize(t *testing.T) {
	for counter, want := range map[string]string{"": "7 tokens", "claude": "7 tokens", "o200k": "7 tokens, counted with o200k"} {
		if got := (earlierPlan{Tokens: 7, Counter: counter}).size("claude"); got != want {
			t.Errorf("%q: got %q, want %q", counter, got, want)
		}
	}
}

// TestUndoAndGrow: later plans are added, an empty one is an undo, and a message
// that becomes an artifact later is read from either id.
func TestUndoAndGrow(t *testing.T) {
	k := openKept(t, "memory:")
	th, p := small(t, "t")
	none := &plan.Plan{ThreadID: "t", ThreadVersion: th.Version()}
	first := &plan.Plan{ThreadID: "t", ThreadVersion: th.Version(), Clearings: []plan.Clearing{{Span: th.Range(2, 3)}}}
	for _, p := range []*plan.Plan{none, first, none, p} {
		save(t, k, th, p)
	}
	entries := removedOf(t, k, "t")
	if len(entries) != 4 || entries[1].ArtifactID == "" || entries[1].Action != plan.Externalize {
		t.Errorf("entries %+v", entries)
	}
	// What the plans before took out can be read as long as a prompt may point to it.
	save(t, k, th, &plan.Plan{ThreadID: "t", ThreadVersion: th.Version(), Drops: []plan.Removal{{Span: th.Range(2, 3)}}})
	for _, id := range []string{p.Externalizations[0].ArtifactID, string(th.At(0).ID), string(th.At(5).ID)} {
		if c, err := k.findContent(t.Context(), id, ""); err != nil || c.Text == "" {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
}

// TestAmbiguous lists what an id may mean.
func TestAmbiguous(t *testing.T) {
	k := openKept(t, "memory:")
	for _, id := range []string{"one", "two"} {
		a, b := say(thread.User, "shared"), say(thread.Assistant, "only of "+id)
		a.ID, b.ID = "message-a", "message-b"
		th := newThread(t, id, a, b)
		save(t, k, th, &plan.Plan{ThreadID: id, ThreadVersion: 2, Drops: []plan.Removal{{Span: th.Range(0, 2)}}})
	}
	if c, err := k.findContent(t.Context(), "message-a", ""); err != nil || c.Text != "shared" {
		t.Errorf("two threads that say the same: %+v, %v", c, err)
	}
	for id, want := range map[string]int{"message-b": 2, "messag": 3} {
		_, err := k.findContent(t.Context(), id, "")
		var ambiguous *rehydrate.AmbiguousError
		if !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != want {
			t.Errorf("%s: %v", id, err)
		}
	}
	if c, err := k.findContent(t.Context(), "message-b", "two"); err != nil || c.Text != "only of two" {
		t.Errorf("in one thread: %+v, %v", c, err)
	}
}

// TestSharedPointer: a plan of another maker may point at several messages, or
// by an id that is no content's; they are read through the messages.
func TestSharedPointer(t *testing.T) {
	k := openKept(t, "memory:")
	th := newThread(t, "t", say(thread.User, "alpha"), say(thread.Assistant, "beta"), say(thread.User, "go on"))
	p := &plan.Plan{ThreadID: "t", ThreadVersion: 3, Externalizations: []plan.Externalization{{Span: th.Range(0, 2), ArtifactID: "blob-00012"}}}
	save(t, k, th, p)
	for _, id := range []string{"blob-00012", "blob-0"} {
		if c, err := k.findContent(t.Context(), id, ""); err != nil || c.Text != "alpha\nbeta" || len(c.MessageIDs) != 2 {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
}

// marked gives every message of a thread a word of its own, and every result a
// length that is worth externalizing.
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
		"auto": strategy.Auto(), "seed": policy.Ladder{}.Rungs(), "aside": {strategy.Externalize{Threshold: 20}, strategy.Drop{}}, "drop": {strategy.Drop{}},
		"clear": {strategy.Clear{Arguments: true}, strategy.Drop{}},
	}
	hidden := map[plan.Action]int{}
	property.Check(t, func(rt *rapid.T) {
		th := marked(rt, threadgen.Thread().Draw(rt, "thread"))
		ladder := rapid.SampledFrom([]string{"auto", "seed", "aside", "drop", "clear"}).Draw(rt, "ladder")
		c, err := palimpsest.New(palimpsest.Config{Counter: counter, Policy: policy.Custom{Ladder: ladders[ladder]}})
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
		if errors.Is(err, policy.ErrOverBudget) {
			return // there is no plan, so nothing is hidden
		}
		if err != nil {
			rt.Fatal(err)
		}
		k := openKept(t, "memory:")
		save(t, k, th, res.Plan)
		index := recall.NewIndex(removedOf(t, k, ""))
		for _, h := range res.Manifest.Hidden {
			hidden[h.Record.Action]++
			i, _ := th.Index(h.ID)
			content, err := k.findContent(t.Context(), string(h.ID), th.ID())
			if err != nil {
				rt.Fatal(err)
			}
			for _, text := range texts(th.At(i)) {
				if !strings.Contains(content.Text, text) {
					rt.Fatalf("message %d: %q lacks %q", i, content.Text, text)
				}
			}
			hits := index.Search(fmt.Sprintf("zmark%dq", i), &recall.Options{Limit: 1})
			if len(hits) != 1 || hits[0].MessageID != h.ID {
				rt.Fatalf("message %d is not found: %+v", i, hits)
			}
		}
		for _, x := range res.Plan.Externalizations {
			if _, err := k.findContent(t.Context(), x.ArtifactID, ""); err != nil {
				rt.Fatal(err)
			}
		}
	})
	for _, a := range []plan.Action{plan.Clear, plan.Summarize, plan.Externalize, plan.Drop} {
		if hidden[a] == 0 && !testing.Short() { // few are drawn then
			t.Errorf("no message was hidden by %s: the test shows nothing for it", a)
		}
	}
	t.Logf("hidden messages read back, by action: %v", hidden)
}

// texts are the pieces of a message that a reader must get back, found without
// the code under test.
func texts(m *thread.Message) []string { return saidIn(m.Parts) }

func saidIn(parts []thread.Part) []string {
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
			out = append(out, saidIn(p.Content)...)
		case thread.Media:
			out = append(out, string(p.Type), p.MIME)
		case thread.Opaque:
			out = append(out, p.Text)
		}
	}
	return out
}

// TestKeptCorpus: real sessions, one from each folder or two in a long run, compacted to a third, lose nothing: each hidden
// message is kept in full, each artifact can be read, and the words that the
// index gives a message lead back to it. A20, A22, A23
func TestKeptCorpus(t *testing.T) {
	root := corpus.Dir(t, "transcripts")
	counter, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	k := openKept(t, filepath.Join(t.TempDir(), "p.db"))
	sessions, hidden, first, asked := 0, 0, 0, 0
	perFolder, most, folders := map[string]int{}, 1, 0
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
		if perFolder[folder]++; perFolder[folder] == 1 {
			folders++
		}
		if !corpus.Long() && folders%2 == 0 {
			return nil // every other folder
		}
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
		if errors.Is(err, policy.ErrOverBudget) {
			return nil
		}
		if err != nil {
			return err
		}
		sessions++
		save(t, k, th, res.Plan)
		entries := removedOf(t, k, th.ID())
		if len(entries) != len(res.Manifest.Hidden) {
			return fmt.Errorf("%s: %d entries of %d hidden messages", name, len(entries), len(res.Manifest.Hidden))
		}
		recall.AddKeywords(entries)
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
			if _, err := k.findContent(t.Context(), r.ArtifactID, th.ID()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions, %d hidden messages, %d of %d among the first ten for four of their keywords", sessions, hidden, first, asked)
	if sessions == 0 || first*100 < asked*90 {
		t.Errorf("%d sessions; keywords lead back to %d of %d messages", sessions, first, asked)
	}
}
