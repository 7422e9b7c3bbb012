package summarize

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// synthetic makes the thread of a coding agent of about the given number of
// bytes: requests, reads, searches, edits, test runs.
func synthetic(t testing.TB, bytes int) []thread.Message {
	var messages []thread.Message
	add := func(role thread.Role, parts ...thread.Part) {
		messages = append(messages, thread.Message{Role: role, Parts: parts})
	}
	call := func(n int, name, args string, result thread.ToolResult) {
		id := fmt.Sprintf("call_%06d", n)
		add(thread.Assistant, thread.Text{Text: fmt.Sprintf("Let me look at step %d. The issue is in module_%d because the cache key is wrong.", n, n%17)},
			thread.ToolCall{ID: id, Name: name, Arguments: args})
		result.CallID, result.Tool = id, name
		if result.Outcome == "" {
			result.Outcome = thread.Success
		}
		add(thread.Tool, result)
	}
	text := func(s string) []thread.Part { return []thread.Part{thread.Text{Text: s}} }
	size := 0
	for n := 0; size < bytes; n++ {
		before := len(messages)
		switch n % 6 {
		case 0:
			add(thread.User, thread.Text{Text: fmt.Sprintf("Please fix bug #%d in pkg/store/file_%d.go. Never touch the public API, and always run the tests with -race.", 1000+n, n%29)})
		case 1:
			var b strings.Builder
			for i := range 90 {
				fmt.Fprintf(&b, "%4d\tfunc (s *Store) LoadItem%d(ctx context.Context, key_%d string) (Item, error) { return s.items[key_%d], nil }\n", i, i*n%97, i, i)
			}
			call(n, "Read", fmt.Sprintf(`{"file_path":"/repo/pkg/store/file_%d.go","offset":1,"limit":90}`, n%29), thread.ToolResult{Content: text(b.String())})
		case 2:
			var b strings.Builder
			for i := range 40 {
				fmt.Fprintf(&b, "pkg/store/file_%d.go:%d:\treturn cacheKey(id_%d)\n", i, i*7, n)
			}
			call(n, "Grep", fmt.Sprintf(`{"pattern":"cacheKey","path":"pkg/store","output_mode":"content","-n":%d}`, n), thread.ToolResult{Content: text(b.String())})
		case 3:
			call(n, "Edit", fmt.Sprintf(`{"file_path":"/repo/pkg/store/file_%d.go","old_string":"return cacheKey(id)","new_string":"key := cacheKey(id_%d, tenant)\nif key == \"\" {\n\treturn ErrNoKey%d\n}"}`, n%29, n, n), thread.ToolResult{Content: text("The file has been updated.")})
		case 4:
			call(n, "Bash", fmt.Sprintf(`{"command":"go test -race ./pkg/store -run TestLoad%d"}`, n%11), thread.ToolResult{Outcome: thread.Failure,
				Content: text(fmt.Sprintf("Exit code 1\n--- FAIL: TestLoad%d (0.01s)\n    file_%d_test.go:%d: got \"\", want \"item-%d\"\nFAIL\nFAIL\tpkg/store\t0.02s\n", n%11, n%29, n, n))})
		case 5:
			add(thread.Assistant, thread.Text{Text: fmt.Sprintf("Fixed bug #%d: the key of file_%d.go left out the tenant. All tests pass. I decided to keep cacheKey because callers outside use it.", 1000+n, n%29)})
		}
		for i := range messages[before:] {
			size += len(plainText(&messages[before+i]))
		}
	}
	th, err := thread.New("synthetic").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th.Messages()
}

// BenchmarkExtract is the whole work on 100,000 tokens (400 KB) that nobody has
// summarised before, and on one step more of a thread that was.
func BenchmarkExtract(b *testing.B) {
	messages := synthetic(b, 400<<10)
	in := Input{Messages: messages[:len(messages)-20], Context: messages[len(messages)-20:], Budget: 8000}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (&Extractive{}).Summarize(context.Background(), in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		e := &Extractive{}
		for b.Loop() {
			if _, err := e.Summarize(context.Background(), in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkVerified checks 40 proposed items against 400 KB.
func BenchmarkVerified(b *testing.B) {
	messages := synthetic(b, 400_000)
	proposed := summary.Summary{}
	for i := range 40 {
		m := &messages[i*len(messages)/40]
		proposed.Facts = append(proposed.Facts, summary.Item{
			Text: fmt.Sprintf("The issue in pkg/store/file_%d.go is that cacheKey leaves out the tenant, step %d", i%29, i), Sources: []thread.ID{m.ID}})
	}
	v := &Verified{Inner: by(func(context.Context, Input) (summary.Summary, error) { return proposed, nil })}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Summarize(context.Background(), Input{Messages: messages, Budget: 4000}); err != nil {
			b.Fatal(err)
		}
	}
}
