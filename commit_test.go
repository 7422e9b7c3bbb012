package palimpsest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	storemem "github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// counting counts how often contents are read.
type counting struct {
	artifact.Backend
	reads map[string]int
}

func (c *counting) Get(ctx context.Context, tenant, id string) (artifact.Metadata, []byte, error) {
	c.reads[id]++
	return c.Backend.Get(ctx, tenant, id)
}

// TestCompactionsLengthenNoLife: what a tool allows to be kept for an hour is gone after an
// hour, however often the thread is compacted in between and after, and compactions do
// not read what earlier ones have stored. The same content under a new call is new. A8
func TestCompactionsLengthenNoLife(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	backend := &counting{new(artifact.Memory), map[string]int{}}
	artifacts := artifact.NewStore(backend, &artifact.Options{Now: clock})
	c, err := palimpsest.New(palimpsest.Config{
		Policy: policy.Ladder{DisableSummarization: true, DisableDropping: true}, Artifacts: artifacts, Now: clock,
		Tools: toolpolicy.New(map[string]toolpolicy.Policy{"Lookup": {TTL: time.Hour}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	secret := strings.Repeat("The customer lives in street 17 and pays by invoice. ", 200)
	id, asked := artifact.IDOf("t", secret), 0
	compact := func(text string) {
		t.Helper()
		asked++
		call := fmt.Sprint("c", asked)
		step := palimpsest.Step{Budget: 1_500 + 1_500*asked, Messages: []thread.Message{
			plain(thread.User, fmt.Sprintf("Question %d.", asked)),
			{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: call, Name: "Lookup", Arguments: fmt.Sprintf(`{"n":%d}`, asked)}}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: call, Tool: "Lookup", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}},
			plain(thread.Assistant, strings.Repeat("I see. ", 20)),
		}}
		if _, err := s.Compact(t.Context(), step, ""); err != nil && !errors.Is(err, policy.ErrNothing) {
			t.Fatal(err)
		}
	}
	other := func(n int) string { return strings.Repeat(fmt.Sprintf("Order %d is of no interest here. ", n), 300) }
	compact(secret)
	compact(other(1))
	m, err := artifacts.Metadata(t.Context(), artifact.Requester{}, id)
	if err != nil {
		t.Fatal(err)
	}
	ends, _ := m.Expires()
	stored := backend.reads[id]
	for n := range 3 {
		now = now.Add(15 * time.Minute)
		compact(other(2 + n))
	}
	if m, err = artifacts.Metadata(t.Context(), artifact.Requester{}, id); err != nil {
		t.Fatal(err)
	}
	if later, _ := m.Expires(); !later.Equal(ends) {
		t.Errorf("it ended at %s, after three compactions at %s", ends, later)
	}
	if backend.reads[id] != stored {
		t.Errorf("three compactions read it %d times", backend.reads[id]-stored)
	}
	now = now.Add(3 * time.Hour)
	compact(other(9))
	if _, err := artifacts.Metadata(t.Context(), artifact.Requester{}, id); !errors.Is(err, artifact.ErrExpired) && !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("after three hours and a compaction: %v", err)
	}
	compact(secret)
	compact(other(10))
	if _, err := artifacts.Metadata(t.Context(), artifact.Requester{}, id); err != nil {
		t.Errorf("looked up again: %v", err)
	}
}

// keyed is a store of artifacts with keys of its own, whose ids nobody can guess.
func keyed(t *testing.T, b artifact.Backend) *artifact.Store {
	t.Helper()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	return artifact.NewStore(b, &artifact.Options{Keyring: keyring.New(masters, &keyringtest.Memory{}, nil), KeyedIDs: true})
}

// TestKeyedIDs: with keyed ids no pointer of a plan follows from its content
// alone, all lead to it, and those of plans from before stay true: after a change
// from plain ids, and in a store with other keys that the thread was moved to. A20
func TestKeyedIDs(t *testing.T) {
	ctx, acme := t.Context(), artifact.Requester{TenantID: "acme"}
	compactor := func(db store.DB, artifacts *artifact.Store) *palimpsest.Compactor {
		t.Helper()
		s := db.Tenant("acme")
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{}, Store: store.Tenant{Log: s.Log, Plans: s.Plans}, Artifacts: artifacts, Requester: acme, Recall: &palimpsest.Recall{}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// goOn goes on with the thread, from one step to another.
	goOn := func(c *palimpsest.Compactor, from, to int) *palimpsest.Session {
		t.Helper()
		th := c.Session("ticket-4711")
		step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
		for n := from; n < to; n++ {
			if _, err := th.PrepareStep(ctx, step); err != nil {
				t.Fatal(err)
			}
			call, result := work(n)
			if n == from || n == to-3 { // too much to be shown whole, also right after the change
				r := result.Parts[0].(thread.ToolResult)
				var text strings.Builder
				for i := range 1500 {
					fmt.Fprintf(&text, "line of file %d.%d: func Handle%d_%d()\n", n, i, n, i)
				}
				r.Content = []thread.Part{thread.Text{Text: text.String()}}
				result.Parts = []thread.Part{r}
			}
			step.Messages = []thread.Message{call, result}
		}
		return th
	}
	// pointers counts those that are new by whether they are plain hashes, and reads
	// all.
	known := map[string]bool{}
	pointers := func(db store.DB, th *palimpsest.Session, artifacts *artifact.Store) (plainIDs, keyedIDs int) {
		t.Helper()
		log, err := db.Tenant("acme").Log.Load(ctx, "ticket-4711")
		if err != nil {
			t.Fatal(err)
		}
		plans, err := th.Plans(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			for _, x := range p.Externalizations {
				i, _ := log.Index(x.Span.MessageIDs[0])
				r, _ := log.At(i).Result()
				switch {
				case known[x.ArtifactID]:
				case x.ArtifactID == artifact.IDOf(log.ID(), r.Text()):
					plainIDs++
				default:
					keyedIDs++
				}
				known[x.ArtifactID] = true
				if _, content, err := artifacts.Get(ctx, acme, x.ArtifactID); err != nil || content != r.Text() {
					t.Errorf("%s: %.40q, %v", x.ArtifactID, content, err)
				}
				if text, outcome := answer(t, th, "read_artifact", map[string]any{"artifact_id": x.ArtifactID}); outcome != thread.Success || !strings.Contains(text, "line of file") {
					t.Errorf("%s cannot be read: %s", x.ArtifactID, text)
				}
			}
		}
		return plainIDs, keyedIDs
	}
	sound := func(db store.DB, artifacts *artifact.Store) {
		t.Helper()
		if _, err := care.Check(ctx, db, func(p care.Problem) { t.Error(p) }, artifacts); err != nil {
			t.Error(err)
		}
	}

	// Plain ids, and then keys.
	db := storemem.New()
	before := artifact.NewStore(db.Artifacts(), nil)
	if plainIDs, keyedIDs := pointers(db, goOn(compactor(db, before), 0, 60), before); plainIDs == 0 || keyedIDs > 0 {
		t.Errorf("without keys: %d plain ids, %d keyed", plainIDs, keyedIDs)
	}
	sealed := keyed(t, db.Artifacts())
	if plainIDs, keyedIDs := pointers(db, goOn(compactor(db, sealed), 60, 100), sealed); plainIDs > 0 || keyedIDs < 2 {
		t.Errorf("with keys: %d plain ids, %d keyed", plainIDs, keyedIDs)
	}
	sound(db, sealed)

	// Another store, with other keys.
	var all bytes.Buffer
	if _, err := care.Export(ctx, db, &all, sealed); err != nil {
		t.Fatal(err)
	}
	moved := storemem.New()
	other := keyed(t, moved.Artifacts())
	if _, err := care.Import(ctx, moved, &all, other, nil); err != nil {
		t.Fatal(err)
	}
	if plainIDs, keyedIDs := pointers(moved, goOn(compactor(moved, other), 100, 140), other); plainIDs > 0 || keyedIDs < 2 {
		t.Errorf("after the move: %d plain ids, %d keyed", plainIDs, keyedIDs)
	}
	sound(moved, other)
}

// screenshot is a picture of about 1,300 tokens.
func screenshot(t testing.TB) thread.Media {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1000, 1000))); err != nil {
		t.Fatal(err)
	}
	return thread.Media{Type: thread.Image, MIME: "image/png", Data: base64.StdEncoding.EncodeToString(b.Bytes())}
}

func hasPicture(m *thread.Message) bool {
	r, _ := m.Result()
	for _, p := range r.Content {
		if _, ok := p.(thread.Media); ok {
			return true
		}
	}
	return false
}

// TestPicturesAreNotExternalized: an artifact holds only text, so no pointer promises the
// full content of a result with a picture. Old pictures go in other ways, and the newest,
// which the model has not seen, stays. A7
func TestPicturesAreNotExternalized(t *testing.T) {
	for _, tool := range []string{"browser_screenshot", "WebFetch"} {
		for _, words := range []string{"", strings.Repeat("A button says Order. The list shows bolts. ", 150)} {
			for _, p := range []policy.Policy{policy.Auto{}, policy.Ladder{MaxInputTokens: 14_000}} {
				t.Run(fmt.Sprintf("%s, %s, %d bytes of text", tool, p.Name(), len(words)), func(t *testing.T) {
					artifacts := artifact.NewStore(new(artifact.Memory), nil)
					c, err := palimpsest.New(palimpsest.Config{Policy: p, Recall: &palimpsest.Recall{}, Artifacts: artifacts})
					if err != nil {
						t.Fatal(err)
					}
					s := c.Session("t")
					step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 14_000, Messages: []thread.Message{plain(thread.User, "Order the bolts.")}}
					for n := range 40 {
						p, err := s.PrepareStep(t.Context(), step)
						if err != nil || p.Failed != nil || p.Tokens > 14_000 {
							t.Fatalf("step %d: %v, %v, %d tokens", n, err, p.Failed, p.Tokens)
						}
						if newest := &p.Messages[len(p.Messages)-1]; n > 0 && !hasPicture(newest) {
							t.Fatalf("step %d does not show the new picture: %v", n, newest.Parts)
						}
						id := fmt.Sprint("shot_", n)
						call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{
							thread.Text{Text: fmt.Sprintf("I click on button %d.", n)}, thread.ToolCall{ID: id, Name: tool, Arguments: fmt.Sprintf(`{"n":%d}`, n)},
						}}
						if err := s.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
							t.Fatal(err)
						}
						var content []thread.Part
						if words != "" {
							content = append(content, thread.Text{Text: fmt.Sprintf("Page %d. ", n) + words})
						}
						step.Messages = []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Content: append(content, screenshot(t))}}}}
					}
					plans, err := s.Plans(t.Context())
					if err != nil || len(plans) == 0 {
						t.Fatalf("%d plans, %v", len(plans), err)
					}
					for v, p := range plans {
						for _, x := range p.Externalizations {
							t.Errorf("plan %d externalizes %s as %s", v+1, x.Span.First(), x.ArtifactID)
						}
						for _, x := range p.Externalized() {
							if x.ArtifactID == artifact.IDOf("t", "") {
								t.Errorf("plan %d keeps an artifact of nothing: %s", v+1, x.Path)
							}
						}
					}
				})
			}
		}
	}
}

// TestLastingResults: what a search of the web found is externalized before
// anything summarizes or drops it, and can be read word for word ever after. A7
func TestLastingResults(t *testing.T) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Ladder{DisableExternalization: true}, policy.Ladder{DisableSummarization: true}} {
		for _, budget := range []int{12_000, 4_000} {
			t.Run(fmt.Sprintf("%+v, %d tokens", p, budget), func(t *testing.T) {
				artifacts := artifact.NewStore(new(artifact.Memory), nil)
				c, err := palimpsest.New(palimpsest.Config{Policy: p, Recall: &palimpsest.Recall{}, Artifacts: artifacts, Requester: artifact.Requester{TenantID: "acme"}})
				if err != nil {
					t.Fatal(err)
				}
				s := c.Session("t")
				step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: budget, Messages: []thread.Message{plain(thread.User, "Find out who sells bolts.")}}
				found := map[string]string{}
				for n := range 60 {
					if _, err := s.PrepareStep(t.Context(), step); err != nil {
						t.Fatal(err)
					}
					id := fmt.Sprintf("search_%d", n)
					text := strings.Repeat(fmt.Sprintf("Shop %d sells bolts of size M%d for %d cents. ", n, n%12, 100+n), 12)
					found[artifact.IDOf("t", text)] = text
					call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "WebSearch", Arguments: fmt.Sprintf(`{"query":"bolts %d"}`, n)}}}
					if err := s.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
						t.Fatal(err)
					}
					step.Messages = []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "WebSearch", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}}}
				}
				appended, err := s.Append(t.Context(), step.Messages...)
				if err != nil {
					t.Fatal(err)
				}
				plans, err := s.Plans(t.Context())
				if err != nil || len(plans) == 0 {
					t.Fatalf("%d plans, %v", len(plans), err)
				}
				aside, removed := map[thread.ID]bool{}, 0
				for v, p := range plans {
					for _, a := range p.Externalized() {
						for _, id := range a.Messages {
							aside[id] = true
						}
					}
					for id, ref := range p.Actions() {
						i, _ := appended.Log.Index(id)
						if appended.Log.At(i).Role != thread.Tool || ref.Action != plan.Summarize && ref.Action != plan.Drop {
							continue
						}
						if removed++; !aside[id] {
							t.Errorf("plan %d: the result %s is gone by %s and was never externalized", v+1, id, ref.Action)
						}
					}
				}
				for id, text := range found {
					if _, got, err := artifacts.Get(t.Context(), artifact.Requester{TenantID: "acme"}, id); err == nil && got != text {
						t.Errorf("%s reads %q", id, got)
					}
				}
				t.Logf("%d plans, %d results in summaries or dropped", len(plans), removed)
			})
		}
	}
}

// TestLadderNamesWhatItExternalized: a summary over results that were externalized before
// names the newest of them, and each name can be read; and a question about a file that
// was externalized brings its content back for the turn. A5, A10
func TestLadderNamesWhatItExternalized(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: 14_000}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Messages: []thread.Message{plain(thread.User, "Look after the warehouses.")}}
	depots := []string{"frankfurt", "hamburg", "lisbon", "gdansk", "turin", "malmo", "leeds", "nantes"}
	aside := map[thread.ID]bool{}
	summaries, named := 0, map[string]bool{}
	for n := range 60 {
		if n%4 == 0 && n > 0 {
			step.Messages = append(step.Messages, plain(thread.User, fmt.Sprintf("Now the one of %s.", depots[n%len(depots)])))
		}
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if p.Compacted != nil {
			for _, e := range p.Compacted.Externalizations {
				aside[e.Span.First()] = true
			}
			for _, r := range p.Compacted.Summarizations {
				held := 0
				for _, id := range r.Span.MessageIDs {
					if aside[id] {
						held++
					}
				}
				if held == 0 {
					continue
				}
				if summaries++; len(r.Summary.Artifacts) == 0 || len(r.Kept) > 0 {
					t.Errorf("a summary over %d results that were externalized names %d of them; %d must be kept", held, len(r.Summary.Artifacts), len(r.Kept))
				}
				for _, a := range r.Summary.Artifacts {
					if named[a.ArtifactID] = true; !strings.Contains(a.Description, "(depot/") {
						t.Errorf("%s is described as %q", a.ArtifactID, a.Description)
					}
				}
			}
		}
		id := fmt.Sprint("c", n)
		file := fmt.Sprintf("depot/%s%d.go", depots[n%len(depots)], n)
		call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":%q}`, file)}}}
		if err := s.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		text := "package depot\n" + strings.Repeat(fmt.Sprintf("func rate%d(weight int) int { return weight*%d }\n", n, n), 90)
		step.Messages = []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}}}
	}
	if summaries < 10 || len(named) < 5 {
		t.Errorf("%d summaries, %d names: the test shows little", summaries, len(named))
	}
	for id := range named {
		if text, outcome := answer(t, s, "read_artifact", map[string]any{"artifact_id": id}); outcome != thread.Success || !strings.Contains(text, "package depot") {
			t.Errorf("%s reads %.100q", id, text)
		}
	}
	step.Messages = append(step.Messages, plain(thread.Assistant, "All of them are looked after."))
	p, err := s.PrepareStep(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	current := p.Compacted
	if current == nil {
		all, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		current = all[len(all)-1]
	}
	for _, e := range current.Externalizations {
		_, file, _ := strings.Cut(e.RehydrateHint, "(depot/")
		files = append(files, strings.TrimSuffix(file, ")"))
	}
	if len(files) < 4 {
		t.Fatalf("%d results are externalized", len(files))
	}
	for n, question := range []string{"What rates did depot/%s have?", "Which functions are in %s?", "What was in %s of the depot?", "Did depot/%s say more than that?"} {
		step.Messages = []thread.Message{plain(thread.User, fmt.Sprintf(question, files[n]))}
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		back := ""
		for _, m := range p.Messages {
			if strings.Contains(m.Text(), "[Rehydrated Content") {
				back = m.Text()
			}
		}
		if i := strings.TrimLeft(strings.TrimSuffix(files[n], ".go"), "abcdefghijklmnopqrstuvwxyz"); !strings.Contains(back, "func rate"+i+"(") {
			t.Errorf("%s brings back %.200q", fmt.Sprintf(question, files[n]), back)
		}
		if err := s.FinishStep(t.Context(), nil, wire.Usage{}, plain(thread.Assistant, "I see.")); err != nil {
			t.Fatal(err)
		}
	}
}
