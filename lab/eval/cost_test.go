package eval

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// worked is an agent that reads a file of about 1,000 tokens in each of so many
// steps, twenty seconds apart, and pauses for ten minutes before some of them.
func worked(t *testing.T, counter *token.Counter, steps int, pauses ...int) *replay {
	t.Helper()
	return workedOn(t, counter, steps, -1, pauses...)
}

// workedOn is the same, with a file of 25,000 tokens in one of the steps.
func workedOn(t *testing.T, counter *token.Counter, steps, large int, pauses ...int) *replay {
	t.Helper()
	now := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	messages := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Find the leak."}}, Time: now}}
	for n := range steps {
		var text strings.Builder
		lines := 100
		if n == large {
			lines = 2_500
		}
		for line := range lines {
			fmt.Fprintf(&text, "%d: pool_%d takes from shelf_%d\n", line, n*7+line, n)
		}
		id := fmt.Sprint("call", n)
		args, err := json.Marshal(map[string]string{"file_path": fmt.Sprintf("/w/part%d/pool.go", n)})
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(20 * time.Second)
		if slices.Contains(pauses, n) {
			now = now.Add(10 * time.Minute)
		}
		messages = append(messages,
			thread.Message{Role: thread.Assistant, Time: now, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "Read", Arguments: string(args)}}},
			thread.Message{Role: thread.Tool, Time: now, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Content: []thread.Part{thread.Text{Text: text.String()}}}}})
	}
	messages = append(messages, thread.Message{Role: thread.Assistant, Time: now, Parts: []thread.Part{thread.Text{Text: "Found."}}})
	th, err := thread.New("leak").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	tr := &transcript.Transcript{Name: "leak", Thread: th, System: []prompt.System{{Text: strings.Repeat("Be careful. ", 1000)}}}
	s, err := references.NewSession(tr, "tests", "leak", counter)
	if err != nil {
		t.Fatal(err)
	}
	s.Link(func(ident.Ident) bool { return false })
	m, err := token.Models().Find(defaultCostModel)
	if err != nil {
		t.Fatal(err)
	}
	return newReplay(s, m, "", counter)
}

func counterOf(t *testing.T) *token.Counter {
	t.Helper()
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// TestBillWithoutCompaction: the ledger bills an append-only session as the
// closed form says: all that is new is written, all before it is read, and after
// a pause longer than the cache lives all is written again.
func TestBillWithoutCompaction(t *testing.T) {
	for _, pauses := range [][]int{nil, {30, 50}} {
		r := worked(t, counterOf(t), 60, pauses...)
		x, err := r.spend(costContenders(counterOf(t), false)[0].make(r))
		if err != nil {
			t.Fatal(err)
		}
		want, last := 0.0, 0
		for k, a := range r.requests {
			size := r.Fixed + r.historyTokens(k)
			if a.cold {
				last = 0
			}
			want += r.rates.Read*float64(last) + r.rates.Write*float64(size-last)
			last = size
		}
		if math.Abs(x.input-want) > 1e-6*want {
			t.Errorf("pauses %v: %.0f, want %.0f", pauses, x.input, want)
		}
		if x.rewrites != 0 || x.same != x.next || x.compactions != 0 {
			t.Errorf("an append-only session is rewritten: %+v", x)
		}
		cold := 0
		for _, a := range r.requests {
			if a.cold {
				cold++
			}
		}
		if cold != len(pauses) {
			t.Errorf("%d cold requests, want %d", cold, len(pauses))
		}
	}
}

// TestPriceOfLongPrompts: where a provider asks more for a long prompt, each request costs what
// its own size does, in units of a token of a short one.
func TestPriceOfLongPrompts(t *testing.T) {
	r := worked(t, counterOf(t), 60)
	const above = 30_000
	r.model.Prices = []token.Price{{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5}, {Above: above, Input: 4, Output: 15, CacheRead: 0.6, CacheWrite: 6}}
	r.rates, _ = r.model.Rates(0)
	x, err := r.spend(costContenders(counterOf(t), false)[0].make(r))
	if err != nil {
		t.Fatal(err)
	}
	input, output, uncached, last, long := 0.0, 0.0, 0.0, 0, 0
	for k, a := range r.requests {
		size := r.Fixed + r.historyTokens(k)
		p := r.model.Prices[0]
		if size > above {
			p = r.model.Prices[1]
			long++
		}
		input += (p.CacheRead*float64(last) + p.CacheWrite*float64(size-last)) / 2
		output += p.Output * float64(a.output) / 2
		uncached += p.Input * float64(size) / 2
		last = size
	}
	if long == 0 || long == len(r.requests) {
		t.Fatalf("%d of %d prompts are long", long, len(r.requests))
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6*b }
	if !near(x.input, input) || !near(x.output, output) || !near(r.uncachedCost(), uncached) {
		t.Errorf("input %.0f, output %.0f, uncached %.0f; want %.0f, %.0f, %.0f", x.input, x.output, r.uncachedCost(), input, output, uncached)
	}
}

// TestBestSchedule: no trigger is cheaper than the best schedule of the same
// renderer, that is what the ledger bills it, and nothing is cheaper than the
// bound.
func TestBestSchedule(t *testing.T) {
	r := worked(t, counterOf(t), 120, 40, 80)
	left := func(k int) int {
		return r.Fixed + tokens(r.fittingBlocks(r.requests[k].at, batchLeft))
	}
	best := r.cheapestSchedule(left)
	least, compactions := best.input, best.compactions
	if compactions == 0 || r.lowerBound() >= least {
		t.Fatalf("best %.0f with %d compactions, bound %.0f", least, compactions, r.lowerBound())
	}
	nearest := math.Inf(1)
	for mark := 21_000; mark < 120_000; mark += 1_500 {
		x, err := r.spend(r.batchSender(batchLeft, func(k, size int) bool { return size > mark }))
		if err != nil {
			t.Fatal(err)
		}
		nearest = min(nearest, x.input)
	}
	for _, cold := range []bool{false, true} {
		x, err := r.spend(r.batchSender(batchLeft, r.squareRootLaw(cold, batchLeft)))
		if err != nil {
			t.Fatal(err)
		}
		nearest = min(nearest, x.input)
		if x.input > 1.2*least {
			t.Errorf("the law (cold %v) costs %.0f, the best schedule %.0f", cold, x.input, least)
		}
	}
	if nearest < least*0.999 {
		t.Errorf("a trigger costs %.0f, the best schedule %.0f", nearest, least)
	}
}

// TestHandleIsBilled: auto sends the session through the real thread handle; the
// prefix changes only where it compacts, and each change is billed.
func TestHandleIsBilled(t *testing.T) {
	counter := counterOf(t)
	r := worked(t, counter, 100, 60)
	h, err := r.agentLoop(t.Context(), policy.Auto{Favor: policy.FavorCost}, counter)
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.spend(h.send)
	if err != nil {
		t.Fatal(err)
	}
	if x.compactions == 0 || x.rewrites > x.compactions {
		t.Errorf("%d compactions, %d rewrites", x.compactions, x.rewrites)
	}
	plain, err := r.spend(costContenders(counter, false)[0].make(r))
	if err != nil {
		t.Fatal(err)
	}
	if x.input >= 0.8*plain.input {
		t.Errorf("auto costs %.0f of %.0f", x.input, plain.input)
	}
	whole := x.bill.Input()
	if sum := x.bill.Read + x.bill.Write + x.bill.Plain; sum != whole || x.sum != whole {
		t.Errorf("billed %d tokens, sent %d", whole, x.sum)
	}
}

// TestBestScheduleOfAuto: what auto leaves is measured before each request, so that
// the schedule is never dearer than what auto did by itself.
func TestBestScheduleOfAuto(t *testing.T) {
	counter := counterOf(t)
	r := workedOn(t, counter, 60, 20, 30)
	h, err := r.agentLoop(t.Context(), policy.Auto{Favor: policy.FavorCost}, counter)
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.spend(h.send)
	if err != nil {
		t.Fatal(err)
	}
	after, err := h.sizesAfter()
	if err != nil {
		t.Fatal(err)
	}
	for k, left := range after {
		if whole := r.Fixed + r.historyTokens(k) + h.tools; left > whole {
			t.Errorf("request %d: %d tokens are left of %d", k, left, whole)
		}
	}
	best := r.cheapestSchedule(func(k int) int { return after[k] }).input
	if x.input < 0.99*best {
		t.Errorf("auto costs %.0f, its best schedule %.0f", x.input, best)
	}
}
