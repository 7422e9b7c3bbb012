package proxy

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// streamed is what the client reads of an answer, and the response that was
// remembered of it.
func streamed(t testing.TB, from, item string) (out, remembered string) {
	res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(from))}
	nativeResponses{&exchange{}}.insertItem(res, item, func(response string) { remembered = response })
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), remembered
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
	out, remembered := streamed(t, string(from), shownItem)
	if out != string(want) {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if n := len(gjson.Get(remembered, "output").Array()); n != 2 {
		t.Errorf("remembered is %s", remembered)
	}
	if out, _ := streamed(t, string(from), ""); out != string(from) {
		t.Errorf("without a compaction the stream became\n%s", out)
	}
}

// FuzzShown: a stream without a compaction passes byte for byte, whatever it is;
// with one it is shown at most once.
func FuzzShown(f *testing.F) {
	from, err := os.ReadFile("testdata/answer.sse")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(from))
	f.Add("data: {\"type\":\"response.completed\",\"response\":{\"output\":7}}\n\ndata: [DONE]\n\n")
	f.Add("event: x\r\ndata: {\r\ndata: \"type\":\"response.failed\"}\r\n\r\nrest")
	f.Fuzz(func(t *testing.T, from string) {
		if out, _ := streamed(t, from, ""); out != from {
			t.Fatalf("%q became %q", from, out)
		}
		out, _ := streamed(t, from, shownItem)
		if n := strings.Count(out, `"type":"response.output_item.added"`) - strings.Count(from, `"type":"response.output_item.added"`); n > 1 {
			t.Fatalf("%q became %q", from, out)
		}
	})
}
