package palimpsest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// benchSizes are the sizes of the benchmarked threads, in tokens.
var benchSizes = []int{10_000, 100_000, 1_000_000}

// longWork makes the history of a coding agent of about the given number of
// tokens: requests, prose, files, searches, JSON, failing and passing tests.
func longWork(b *testing.B, tokens int) []thread.Message {
	b.Helper()
	counter := o200k(b)
	var out []thread.Message
	size := 0
	add := func(m thread.Message) {
		out = append(out, m)
		size += counter.Message(&m)
	}
	for n := 0; size < tokens; n++ {
		id := fmt.Sprintf("toolu_%06d", n)
		if n%25 == 0 {
			add(plain(thread.User, fmt.Sprintf("Please go on with ticket SHOP-%04d: the queue in pkg/part%d must not lose orders. Never touch the public API.", 1000+n, n%17)))
		}
		var words, tool, args, text string
		outcome := thread.Success
		switch n % 5 {
		case 0:
			words = fmt.Sprintf("I'll read the worker of part %d first, because the lease of an order may run out while it waits.", n%17)
			tool, args = "Read", fmt.Sprintf(`{"file_path":"/repo/pkg/part%d/worker%d.go"}`, n%17, n)
			var code strings.Builder
			for line := range 60 {
				fmt.Fprintf(&code, "%4d\tif err := w.claim%d(ctx, orderID, %q); err != nil { return fmt.Errorf(\"claim %%s: %%w\", orderID, err) }\n", line+1, (line*31+n)%97, fmt.Sprintf("lease-%d", line*n))
			}
			text = code.String()
		case 1:
			tool, args = "Grep", fmt.Sprintf(`{"pattern":"claim%d","path":"pkg"}`, n%97)
			var hits strings.Builder
			for line := range 25 {
				fmt.Fprintf(&hits, "pkg/part%d/file%d.go:%d:\treturn w.claim%d(ctx, id)\n", line%17, line, line*13+n%100, n%97)
			}
			text = hits.String()
		case 2:
			words = "The claim is not renewed, so a second worker takes the order. I will renew it before each attempt."
			tool, args = "Edit", fmt.Sprintf(`{"file_path":"/repo/pkg/part%d/worker%d.go","old_string":"return w.claim%d(ctx, id)","new_string":"if err := w.renew(ctx, id, %d); err != nil {\n\treturn err\n}\nreturn w.claim%d(ctx, id)"}`, n%17, n, n%97, n, n%97)
			text = "The file has been updated."
		case 3:
			tool, args = "Bash", fmt.Sprintf(`{"command":"go test ./pkg/part%d -run TestLease%d"}`, n%17, n)
			outcome = thread.Failure
			text = fmt.Sprintf("--- FAIL: TestLease%d (0.02s)\n    worker_test.go:%d: got 2 labels for ORD-%05d, want 1\nFAIL\nFAIL\tshop/pkg/part%d\t0.4s\nexit status 1", n, n%300, n*7%99999, n%17)
		case 4:
			tool, args = "fetch_orders", fmt.Sprintf(`{"page":%d}`, n)
			var rows strings.Builder
			for row := range 20 {
				fmt.Fprintf(&rows, `{"order":"ORD-%05d","state":"claimed","attempts":%d,"total_cents":%d,"city":"Kraków"},`, n*20+row, row%4, row*1999)
			}
			text = "[" + strings.TrimSuffix(rows.String(), ",") + "]"
		}
		m := call(id, tool, args)
		if words != "" {
			m.Parts = append([]thread.Part{thread.Text{Text: words}}, m.Parts...)
		}
		add(m)
		add(thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: outcome, Content: []thread.Part{thread.Text{Text: text}}}}})
	}
	return out
}

// workBody is longWork as a request body.
func workBody(b *testing.B, tokens int) []byte {
	b.Helper()
	th, err := thread.New("bench").Append(longWork(b, tokens)...)
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
		p, err := codec.Decode(body)
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
				for b.Loop() {
					work()
				}
			})
		}
		run("decode", func() {
			if _, err := codec.Decode(body); err != nil {
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
			p, err := codec.Decode(body)
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
		th, err := thread.New("bench").Append(longWork(b, tokens)...)
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
		return palimpsest.Config{Log: t.Log, Plans: t.Plans}
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
			th := c.Thread("bench")
			n := 0
			exchange := func() []thread.Message {
				n++
				id := fmt.Sprintf("step_%d", n)
				return []thread.Message{
					call(id, "Bash", `{"command":"go test ./..."}`),
					{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Bash", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: "ok\tshop/pkg\t0.4s"}}}}},
				}
			}
			if err := th.Append(b.Context(), plain(thread.User, "Run the tests until they fail.")); err != nil {
				b.Fatal(err)
			}
			for n < messages/2 {
				var batch []thread.Message
				for len(batch) < 1000 && n < messages/2 {
					batch = append(batch, exchange()...)
				}
				if err := th.Append(b.Context(), batch...); err != nil {
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
					compact()
					first = 0
					b.StartTimer()
				}
			}
		})
	}
}
