// Package longhistory makes long histories for benchmarks: the same for the
// benchmarks of the module and for what is measured beside it.
package longhistory

import (
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Messages are the history of a coding agent of about so many tokens, as count
// counts them: requests, prose, files, searches, JSON, failing and passing tests.
// The same size gives the same messages.
func Messages(tokens int, count func(*thread.Message) int) []thread.Message {
	var out []thread.Message
	size := 0
	add := func(m thread.Message) {
		out = append(out, m)
		size += count(&m)
	}
	for n := 0; size < tokens; n++ {
		id := fmt.Sprintf("toolu_%06d", n)
		if n%25 == 0 {
			add(said(thread.User, fmt.Sprintf("Please go on with ticket SHOP-%04d: the queue in pkg/part%d must not lose orders. Never touch the public API.", 1000+n, n%17)))
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
		m := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: args}}}
		if words != "" {
			m.Parts = append([]thread.Part{thread.Text{Text: words}}, m.Parts...)
		}
		add(m)
		add(thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: outcome, Content: []thread.Part{thread.Text{Text: text}}}}})
	}
	return out
}

func said(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}
