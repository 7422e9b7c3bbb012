package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
)

// estimated is seed B's estimate of a message, written from the document: two for the
// role, and a quarter of the characters of each text, of each tool's name and arguments,
// and of each result as JSON, rounded up one by one.
func estimated(t *testing.T, m neutral.Message) int {
	t.Helper()
	quarter := func(s string) int { return (len(utf16.Encode([]rune(s))) + 3) / 4 }
	quoted := func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	total := 2
	for _, p := range m.Parts {
		switch {
		case p.Type == neutral.TextPart:
			total += quarter(p.Text)
		case p.Type == neutral.ToolCallPart:
			total += quarter(p.Tool) + quarter(p.Arguments)
		case len(p.Structured) > 0:
			total += quarter(string(p.Structured))
		default:
			total += quarter(quoted(p.Content[0].Text))
		}
	}
	return total
}

// TestSessionEstimateOverHTTP: over HTTP too texts, calls and results, as text and as
// data, count as seed B says: the step by which they reach floor((30,000 − 11,000) × 0.80)
// compacts, and none before it. B1, B2
func TestSessionEstimateOverHTTP(t *testing.T) {
	k := talking(t, palimpsest.Config{Policy: policy.Session{ContextLimit: 30_000}}, api.Step{Window: 60_000, Output: 1_000})
	total := estimated(t, said("system", k.step.Base.System[0].Text))
	news := []neutral.Message{said("user", "Zähle die Kisten: \"alle\" <jetzt> 👍.")}
	for n := range 80 {
		for _, m := range news {
			total += estimated(t, m)
		}
		p := k.ask(news...)
		if due := total >= 15_200; due != (p.PlanVersion == 1) {
			t.Fatalf("step %d: %d tokens by the document, plan %d", n, total, p.PlanVersion)
		} else if due {
			return
		}
		id := fmt.Sprint("c", n)
		call := calling(id, "inspect", fmt.Sprintf(`{"shelf":%d,"of":"the hall"}`, n))
		call.Parts = append([]neutral.Part{{Type: neutral.TextPart, Text: fmt.Sprintf("I look at shelf %d.", n)}}, call.Parts...)
		total += estimated(t, call)
		k.answer(call)
		result := resulting(id, "inspect", strings.Repeat(fmt.Sprintf("a \"box\" of <shelf> %d & more\n", n), 30+n))
		if n%3 == 1 {
			result.Parts[0].Structured = json.RawMessage(fmt.Sprintf(`{"boxes":[%s0]}`, strings.Repeat("17,", 200+n)))
		}
		news = []neutral.Message{result}
	}
	t.Error("nothing was compacted")
}

// unwritable is a store that fails to commit plans for a while.
type unwritable struct {
	store.DB
	broken *atomic.Bool
}

type unwritablePlans struct {
	store.Plans
	broken *atomic.Bool
}

func (u unwritable) Tenant(id string) store.Tenant {
	t := u.DB.Tenant(id)
	t.Plans = unwritablePlans{t.Plans, u.broken}
	return t
}

func (u unwritablePlans) Commit(ctx context.Context, id string, expected int, c store.Commit) (int, error) {
	if u.broken.Load() {
		return 0, errors.New("disk full")
	}
	return u.Plans.Commit(ctx, id, expected, c)
}

// TestSessionCommitsOnceOverHTTP: the plan, its marks and its event come together: where
// the store cannot write them none of them is there, the agent goes on with its messages
// as they are, and the next step makes the same round. B8, B10, B11
func TestSessionCommitsOnceOverHTTP(t *testing.T) {
	config := palimpsest.Config{Policy: policy.Session{ContextLimit: 20_000}}
	k := talking(t, config, api.Step{Window: 200_000, Output: 1_000})
	broken := &atomic.Bool{}
	k.db = unwritable{k.db, broken}
	config.Events = k.told
	k.connect(config)
	k.add(talkOf(40, "queue")...)
	broken.Store(true)
	log, _ := k.log()
	if p := k.ask(); p.PlanVersion != 0 || len(p.Prompt.Messages) != len(log) || len(k.told.of(event.Completed)) != 0 || len(k.told.of(event.Failed)) == 0 {
		t.Errorf("plan %d, %d of %d messages, %d compactions told", p.PlanVersion, len(p.Prompt.Messages), len(log), len(k.told.of(event.Completed)))
	}
	broken.Store(false)
	p := k.ask()
	marks, err := k.db.Tenant("").Plans.Compacted(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	made := k.inForce()
	done := k.told.of(event.Completed)
	if p.PlanVersion != 1 || made.Round != 1 || len(marks) != len(log)-10 || made.Summarizations[0].Span.Len() != len(marks) || len(done) != 1 || done[0].Details["round"] != 1 || done[0].TokensAfter >= done[0].TokensBefore {
		t.Errorf("plan %d, round %d, %d of %d messages marked, told %+v", p.PlanVersion, made.Round, len(marks), len(log), done)
	}
}
