package emulate

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// streamed is what the client reads of an answer.
func streamed(t testing.TB, from, item string) string {
	res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(from))}
	work{Emulator: New(Config{})}.insertItem(res, item)
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const shownItem = `{"id":"cmp_1","type":"compaction","encrypted_content":"sealed"}`

// TestShownStream: the compaction stands first in a stream, everything behind it
// is numbered anew, and the last event has it too (golden file).
func TestShownStream(t *testing.T) {
	from, err := os.ReadFile("testdata/answer.sse")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/answer-compacted.sse")
	if err != nil {
		t.Fatal(err)
	}
	if out := streamed(t, string(from), shownItem); out != string(want) {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// FuzzShown: whatever a stream is, the compaction is shown at most once.
func FuzzShown(f *testing.F) {
	from, err := os.ReadFile("testdata/answer.sse")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(from))
	f.Add("data: {\"type\":\"response.completed\",\"response\":{\"output\":7}}\n\ndata: [DONE]\n\n")
	f.Add("event: x\r\ndata: {\r\ndata: \"type\":\"response.failed\"}\r\n\r\nrest")
	f.Fuzz(func(t *testing.T, from string) {
		out := streamed(t, from, shownItem)
		if n := strings.Count(out, `"type":"response.output_item.added"`) - strings.Count(from, `"type":"response.output_item.added"`); n > 1 {
			t.Fatalf("%q became %q", from, out)
		}
	})
}
