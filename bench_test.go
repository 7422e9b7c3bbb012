package palimpsest_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/cputime"
	"github.com/palimpsest-ai/palimpsest/internal/test/longhistory"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// benchSizes are the sizes of the benchmarked threads, in tokens.
var benchSizes = []int{10_000, 100_000, 1_000_000}

// workBody is such a history as a request body.
func workBody(b *testing.B, tokens int) []byte {
	b.Helper()
	th, err := thread.New("bench").Append(longhistory.Messages(tokens, o200k(b).Message)...)
	if err != nil {
		b.Fatal(err)
	}
	body, err := anthropic.Codec{}.Encode(&prompt.Prompt{Model: "claude-sonnet-4-5", MaxOutput: 8000, Messages: th.Messages()})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// BenchmarkPath is each stage of a compaction to a quarter, and the whole of it
// with counts known ("all but counting").
func BenchmarkPath(b *testing.B) {
	codec := anthropic.Codec{}
	profile := render.For(codec.API())
	counter := o200k(b)
	for _, tokens := range benchSizes {
		body := workBody(b, tokens)
		p, err := codec.Decode(string(body))
		if err != nil {
			b.Fatal(err)
		}
		th, err := thread.New("bench").Append(p.Messages...)
		if err != nil {
			b.Fatal(err)
		}
		c, err := palimpsest.New(palimpsest.Config{Counter: counter})
		if err != nil {
			b.Fatal(err)
		}
		q := palimpsest.Request{Thread: th, Base: p, Budget: tokens / 4, Profile: profile}
		compact := func(c *palimpsest.Compactor, th *thread.Thread) *palimpsest.Result {
			q := q
			q.Thread = th
			res, err := c.Compact(b.Context(), q)
			if err != nil {
				b.Fatal(err)
			}
			return res
		}
		first := compact(c, th)
		run := func(name string, work func()) {
			b.Run(fmt.Sprintf("%s/%dk", name, tokens/1000), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				var clock cputime.Clock
				clock.Start()
				for b.Loop() {
					work()
				}
				clock.Report(b)
			})
		}
		run("decode", func() {
			if _, err := codec.Decode(string(body)); err != nil {
				b.Fatal(err)
			}
		})
		run("ids", func() {
			if _, err := thread.New("bench").Append(p.Messages...); err != nil {
				b.Fatal(err)
			}
		})
		run("count", func() { counter.Prompt(p) })
		run("plan first", func() { // counts of the whole messages included
			fresh, err := palimpsest.New(palimpsest.Config{Counter: counter})
			if err != nil {
				b.Fatal(err)
			}
			compact(fresh, th)
		})
		run("plan again", func() { compact(c, th) })
		tight := q
		tight.Budget = tokens / 12 // needs a summary
		run("summary again", func() {
			if res, err := c.Compact(b.Context(), tight); err != nil || len(res.Plan.Summarizations) == 0 {
				b.Fatal("no summary was made", err)
			}
		})
		run("render", func() {
			if _, _, err := render.Render(th, first.Plan, p, &render.Options{Profile: profile}); err != nil {
				b.Fatal(err)
			}
		})
		run("encode", func() {
			if _, err := codec.Encode(first.Prompt); err != nil {
				b.Fatal(err)
			}
		})
		run("all but counting", func() {
			p, err := codec.Decode(string(body))
			if err != nil {
				b.Fatal(err)
			}
			th, err := thread.New("bench").Append(p.Messages...)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := codec.Encode(compact(c, th).Prompt); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkStep is what one more step of an agent costs a compactor that knows
// the history: the request under the plan it has, and a new plan.
func BenchmarkStep(b *testing.B) {
	for _, tokens := range benchSizes {
		th, err := thread.New("bench").Append(longhistory.Messages(tokens, o200k(b).Message)...)
		if err != nil {
			b.Fatal(err)
		}
		for _, again := range []bool{false, true} {
			name := "same plan"
			if again {
				name = "new plan"
			}
			b.Run(fmt.Sprintf("%s/%dk", name, tokens/1000), func(b *testing.B) {
				c, err := palimpsest.New(palimpsest.Config{})
				if err != nil {
					b.Fatal(err)
				}
				q := palimpsest.Request{Thread: th, Budget: tokens / 4, Profile: render.For("anthropic")}
				first, err := c.Compact(b.Context(), q)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					id := fmt.Sprintf("step_%d", n)
					next, err := th.Append(call(id, "Bash", `{"command":"go test ./..."}`),
						thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Bash", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: "ok\tshop/pkg\t0.4s"}}}}})
					if err != nil {
						b.Fatal(err)
					}
					q := q
					q.Thread = next
					if again {
						_, err = c.Compact(b.Context(), q)
					} else {
						_, err = c.Render(first.Plan, q)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPrepareStep is what one more step of an agent costs at the front door
// once the history is known: the plan in force hides all but what the window can
// take, however long the history is.
func BenchmarkPrepareStep(b *testing.B) {
	memory := func(*testing.B) palimpsest.Config { return palimpsest.Config{} }
	file := func(b *testing.B) palimpsest.Config {
		db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "p.db"), &sqlite.Options{CacheBytes: 1 << 30})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { db.Close() })
		t := db.Tenant("")
		return palimpsest.Config{Store: store.Tenant{Log: t.Log, Plans: t.Plans}}
	}
	b.Run("memory", func(b *testing.B) { prepareSteps(b, memory) })
	b.Run("sqlite", func(b *testing.B) { prepareSteps(b, file) })
}

func prepareSteps(b *testing.B, config func(*testing.B) palimpsest.Config) {
	for _, messages := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d messages", messages), func(b *testing.B) {
			c, err := palimpsest.New(config(b))
			if err != nil {
				b.Fatal(err)
			}
			th := c.Session("bench")
			n := 0
			exchange := func() []thread.Message {
				n++
				id := fmt.Sprintf("step_%d", n)
				return []thread.Message{
					call(id, "Bash", `{"command":"go test ./..."}`),
					{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Bash", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: "ok\tshop/pkg\t0.4s"}}}}},
				}
			}
			if _, err := th.Append(b.Context(), plain(thread.User, "Run the tests until they fail.")); err != nil {
				b.Fatal(err)
			}
			for n < messages/2 {
				var batch []thread.Message
				for len(batch) < 1000 && n < messages/2 {
					batch = append(batch, exchange()...)
				}
				if _, err := th.Append(b.Context(), batch...); err != nil {
					b.Fatal(err)
				}
			}
			// The window of the steps is so large that none of them compacts: what
			// that costs is BenchmarkStep's to tell.
			step := palimpsest.Step{Profile: render.For("anthropic"), Window: 1 << 30}
			compact := func() {
				small := palimpsest.Step{Profile: step.Profile, Window: 3_000}
				if _, err := th.Compact(b.Context(), small, ""); err != nil {
					b.Fatal(err)
				}
				if _, err := th.PrepareStep(b.Context(), step); err != nil {
					b.Fatal(err)
				}
			}
			compact()
			b.ReportAllocs()
			shown, first := 0, 0
			var clock cputime.Clock
			clock.Start()
			for b.Loop() {
				next := step
				next.Messages = exchange()
				p, err := th.PrepareStep(b.Context(), next)
				if err != nil {
					b.Fatal(err)
				}
				if shown = len(p.Messages); first == 0 {
					first = shown
				}
				if shown > first+200 { // the prompt stays of one size, as under a policy
					b.StopTimer()
					clock.Stop()
					compact()
					first = 0
					clock.Start()
					b.StartTimer()
				}
			}
			clock.Report(b)
		})
	}
}

// BenchmarkStepOf4000 is a step of a conversation of 4,000 messages that nothing is
// hidden of yet, by who decides whether that is to change.
func BenchmarkStepOf4000(b *testing.B) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Session{ContextLimit: 1 << 30}, policy.Timeline{MaxTokens: 1 << 30}} {
		b.Run(p.Name(), func(b *testing.B) {
			c, err := palimpsest.New(palimpsest.Config{Policy: p})
			if err != nil {
				b.Fatal(err)
			}
			s := c.Session("t")
			var log []thread.Message
			for n := range 2000 {
				call, result := work(n)
				log = append(log, call, result)
			}
			if _, err := s.PrepareStep(b.Context(), palimpsest.Step{Window: 1 << 30, Messages: log}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.PrepareStep(b.Context(), palimpsest.Step{Window: 1 << 30}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFirstQuestion is the first question about what was removed, four seconds after
// the plan that removed nearly all of 4,000 messages: the time in which the model says
// what it wants to know.
func BenchmarkFirstQuestion(b *testing.B) {
	var log []thread.Message
	for n := range 2000 {
		call, result := work(n)
		log = append(log, call, result)
	}
	for b.Loop() {
		b.StopTimer()
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Loop{ContextLimit: loopBudget, MaxOutput: 1000}, Recall: &palimpsest.Recall{}})
		if err != nil {
			b.Fatal(err)
		}
		s := c.Session("t")
		if p, err := s.PrepareStep(b.Context(), palimpsest.Step{Messages: log}); err != nil || p.Compacted == nil {
			b.Fatal("nothing was removed", err)
		}
		time.Sleep(4 * time.Second)
		b.StartTimer()
		if hits, err := s.Recall(b.Context(), "handle3 in queue/file3.go", nil); err != nil || len(hits) == 0 {
			b.Fatal("nothing was found", err)
		}
	}
}

// BenchmarkOpenThreads is the memory that a thousand open threads of forty
// messages each take, after a step each: with the store's cache and without.
func BenchmarkOpenThreads(b *testing.B) {
	const threads, messages = 1000, 40
	for name, cache := range map[string]int{"cached": 1 << 30, "uncached": -1} {
		b.Run(name, func(b *testing.B) {
			db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "p.db"), &sqlite.Options{CacheBytes: cache})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			s := db.Tenant("")
			c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: s.Log, Plans: s.Plans}})
			if err != nil {
				b.Fatal(err)
			}
			for round := 0; b.Loop(); round++ {
				size := 0
				before := heap()
				var open []*palimpsest.Session
				for n := range threads {
					var list []thread.Message
					for i := range messages {
						m := plain([]thread.Role{thread.User, thread.Assistant}[i%2], fmt.Sprint(n, " ", i, strings.Repeat(" what is said in a message", 20)))
						size += len(m.Text())
						list = append(list, m)
					}
					th := c.Session(fmt.Sprint("thread ", n, " of round ", round))
					if _, err := th.PrepareStep(b.Context(), palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 100_000, Messages: list}); err != nil {
						b.Fatal(err)
					}
					open = append(open, th)
				}
				b.ReportMetric(float64(heap()-before)/(1<<20), "MiB/1000threads")
				b.ReportMetric(float64(size)/(1<<20), "MiB-of-text")
				runtime.KeepAlive(open)
			}
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
