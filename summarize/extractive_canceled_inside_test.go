package summarize

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// leaving is a context that is done from the n-th look at it on; 0 is never.
type leaving struct {
	context.Context
	looks, n int
}

func (l *leaving) Err() error {
	if l.looks++; l.n > 0 && l.looks >= l.n {
		return context.Canceled
	}
	return nil
}

// calls are messages with a call, each with its result behind it.
type calls []thread.Message

func (l *calls) add(tool, arguments, result string) {
	id := fmt.Sprint("c", len(*l))
	*l = append(*l,
		thread.Message{ID: thread.ID(id), Turn: 1, Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: arguments}}},
		thread.Message{ID: thread.ID(id + "r"), Turn: 1, Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: result}}}}})
}

// TestCanceledInside: a summary ends soon after its context does, whatever analysis it is in: of the
// edits that are made again, most are not any more. Work is measured by the bytes that it makes.
func TestCanceledInside(t *testing.T) {
	var log calls
	log.add("Write", `{"file_path":"plan.md","content":"- [ ] a\n- [ ] b\n- [ ] c\n`+strings.Repeat(`words of the plan\n`, 20_000)+`"}`, "File created successfully at: plan.md")
	for i := range 100 {
		log.add("Edit", fmt.Sprintf(`{"file_path":"plan.md","old_string":"- [ ] a\n","new_string":"- [ ] %d\n- [ ] a\n"}`, i), "The file has been updated.")
	}
	in := Input{Messages: log, Budget: 2000}
	e := &Extractive{}
	made := func(ctx context.Context) (bytes uint64, err error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = e.Summarize(ctx, in)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	if _, err := made(t.Context()); err != nil { // now all messages are read
		t.Fatal(err)
	}
	whole := &leaving{Context: t.Context()}
	all, err := made(whole)
	if err != nil {
		t.Fatal(err)
	}
	// The looks of the reading come first; those of the edits are the last but for the counting.
	pool := &leaving{Context: t.Context()}
	newPool(pool, &in, e.reading(pool))
	edits := &leaving{Context: t.Context(), n: pool.looks / 2}
	some, err := made(edits)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it went on: %v", err)
	}
	if some > all/2 {
		t.Errorf("%d bytes were made before it ended, %d without", some, all)
	}
}

// TestCanceledInMessage: reading one large message looks at the context again and again, and ends soon
// after it is done; what was read until then is not kept. Work is measured by the bytes that it makes.
func TestCanceledInMessage(t *testing.T) {
	const size = 1 << 20
	line := "The relay in src/relay_7.go calls bootRelay(9) twice.\n"
	lines := strings.Repeat(line, size/len(line))
	var many []thread.Part
	for i := range size / 200 {
		many = append(many, thread.ToolCall{ID: fmt.Sprint(i), Name: "fetch", Arguments: fmt.Sprintf(`{"url":"https://example.com/%d","text":%q}`, i, line)})
	}
	result := func(tool, text string) []thread.Message {
		return []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "c", Tool: tool, Content: []thread.Part{thread.Text{Text: text}}}}}}
	}
	call := func(tool, arguments string) []thread.Message {
		return []thread.Message{{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "c", Name: tool, Arguments: arguments}}}}
	}
	repeated := func(piece string) string { return strings.Repeat(piece, size/len(piece)) }
	quoted := rawjson.Quote(lines)
	for name, messages := range map[string][]thread.Message{
		"a line":                {{Role: thread.User, Parts: []thread.Part{thread.Text{Text: repeated("relay_7.go ")}}}},
		"a run":                 {{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: repeated("ab:")}}}},
		"a call":                call("fetch", `{"url":"https://example.com","text":`+quoted+`}`),
		"a call of many values": call("fetch", `{"a":[1`+repeated(",1")+`]}`),
		"a call in plain text":  call("fetch", lines),
		"an edit":               call("Edit", `{"file_path":"a.go","old_string":`+quoted+`,"new_string":`+quoted+`}`),
		"a new file":            call("Write", `{"file_path":"a.go","content":`+rawjson.Quote(repeated("\n"))+`}`),
		"a patch":               call("apply_patch", `{"input":`+rawjson.Quote("*** Begin Patch\n"+repeated("*** Add File: a.go\n+relay_7.go\n"))+`}`),
		"a command":             call("Bash", `{"command":`+rawjson.Quote(repeated("cat relay_7.go\n"))+`}`),
		"a search":              result("Grep", repeated("relay_7.go:12: bootRelay(9)\n")),
		"an output":             result("Bash", repeated("ok\n")),
		"rows":                  result("fetch", `[{"id":1}`+repeated(`,{"id":"relay_7"}`)+`]`),
		"words":                 {{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: lines}}}},
		"results":               {{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "c", Tool: "fetch", Content: []thread.Part{thread.Text{Text: lines}}}}}},
		"calls":                 {{Role: thread.Assistant, Parts: many}},
		"summary":               {{Role: thread.User, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: lines}}}},
	} {
		t.Run(name, func(t *testing.T) {
			made := func(n int) (bytes uint64, looks, kept int) {
				c, l := NewMemory(0), &leaving{Context: t.Context(), n: n}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				c.facts(effort.New(l, 0), &messages[0])
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc, l.looks, c.Bytes()
			}
			all, looks, _ := made(0)
			if looks < 500 {
				t.Errorf("%d bytes are read with %d looks at the context", size, looks)
			}
			in := Input{Messages: messages, Budget: 2000}
			whole := &leaving{Context: t.Context()}
			if _, err := (&Extractive{}).Summarize(whole, in); err != nil {
				t.Fatal(err)
			}
			for part := range 6 {
				ctx := &leaving{Context: t.Context(), n: 2 + part*(whole.looks-2)/6}
				if _, err := (&Extractive{}).Summarize(ctx, in); !errors.Is(err, context.Canceled) {
					t.Errorf("after %d of %d looks: %v", ctx.n, whole.looks, err)
				}
				(&Extractive{}).Excerpts(&leaving{Context: t.Context(), n: ctx.n}, messages).Shorten(lines, "", 500, true)
			}
			if some, _, kept := made(looks / 40); all > 1<<16 && 3*some > 2*all || kept > 0 { // arguments are taken out of their quotes first
				t.Errorf("%d bytes were made before it ended, %d without, and %d are kept", some, all, kept)
			}
		})
	}
}
