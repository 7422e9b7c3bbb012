package neutral_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestStored: what is read is what was written, for any thread, frames and
// ids included. A1
func TestStored(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		want := threadgen.Thread().Draw(t, "thread")
		var got []thread.Message
		for i := range want.Len() {
			data, err := neutral.Marshal(want, i)
			if err != nil {
				t.Fatal(err)
			}
			m, err := neutral.Unmarshal(data, func(back int) *thread.Frame { return got[i-back].Frame })
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
		for i := range got {
			w := *want.At(i)
			w.Turn = 0
			if diff := cmp.Diff(w, got[i], cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("message %d (-want +got):\n%s", i, diff)
			}
			if i > 0 && (got[i].Frame != nil && got[i].Frame == got[i-1].Frame) != (w.Frame != nil && w.Frame == want.At(i-1).Frame) {
				t.Fatalf("message %d: shares its frame, or not", i)
			}
		}
		again, err := thread.New(want.ID()).Append(strip(got)...)
		if err != nil || again.Last() != strip1(t, want).Last() {
			t.Fatalf("the chain of ids is another: %v", err)
		}
	})
}

// strip takes the ids off, so that they are made anew from the content.
func strip(list []thread.Message) []thread.Message {
	out := append([]thread.Message(nil), list...)
	for i := range out {
		out[i].ID = ""
	}
	return out
}

func strip1(t *rapid.T, th *thread.Thread) *thread.Thread {
	out, err := thread.New(th.ID()).Append(strip(th.Messages())...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func log(t testing.TB, messages ...thread.Message) *thread.Thread {
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// TestBadValues: what JSON cannot hold is an error that names the message.
func TestBadValues(t *testing.T) {
	for name, m := range map[string]thread.Message{
		"year": {ID: "m1", Time: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)},
		"nan":  {ID: "m1", Parts: []thread.Part{thread.ToolResult{KeyFields: thread.Fields{"n": math.NaN()}}}},
		"inf":  {ID: "m1", Parts: []thread.Part{thread.ToolResult{Determinism: &thread.Determinism{MTime: math.Inf(1)}}}},
		"kind": {ID: "m1", Kind: 9},
	} {
		if _, err := neutral.Marshal(log(t, m), 0); err == nil || !strings.Contains(err.Error(), "m1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, data := range []string{`{"v":4,"role":"user"}`, `{"role":"user"}`, `{"v":1,"kind":"x"}`, `{"v":1,"parts":[{"type":"hologram"}]}`} {
		if _, err := neutral.Unmarshal([]byte(data), nil); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// TestTextsOnce: a long text that stands in the frame as JSON is written once, and what earlier
// revisions wrote twice is read.
func TestTextsOnce(t *testing.T) {
	long, other := strings.Repeat("a \"line\" of output\n", 500), strings.Repeat("häßlich\t", 900)
	element := func(texts ...string) *thread.Frame {
		return thread.NewFrame("anthropic", `{"content":[`+strings.Join(texts, ", ")+`],"x":1}`, 0, 1, 1)
	}
	text := func(s string) thread.Text { return thread.Text{Text: s} }
	result := thread.ToolResult{CallID: "c", Content: []thread.Part{text(long), text("short"), text(other)}}
	for name, c := range map[string]struct {
		message thread.Message
		times   int // that a long text is written
	}{
		"in a result":     {thread.Message{Role: thread.Tool, Parts: []thread.Part{result}, Frame: element(rawjson.Quote(long), `"short"`, rawjson.Quote(other))}, 1},
		"held in two":     {thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "c", Content: []thread.Part{text(long)}}}, Frame: element().With(`{"x":,"y":1}`, 5, long, rawjson.Quote)}, 1},
		"another in two":  {thread.Message{Role: thread.User, Parts: []thread.Part{text(other)}, Frame: element().With(`{"x":,"y":1}`, 5, long, rawjson.Quote)}, 1},
		"same text twice": {thread.Message{Role: thread.User, Parts: []thread.Part{text(long), text(long)}, Frame: element(rawjson.Quote(long), rawjson.Quote(long))}, 2},
		"other order":     {thread.Message{Role: thread.User, Parts: []thread.Part{text(long), text(other)}, Frame: element(rawjson.Quote(other), rawjson.Quote(long))}, 1},
		"other escapes":   {thread.Message{Role: thread.User, Parts: []thread.Part{text(long)}, Frame: element(strings.ReplaceAll(rawjson.Quote(long), "l", `\u006c`))}, 2},
	} {
		written := log(t, c.message)
		data, err := neutral.Marshal(written, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), `output`); n > c.times*500 {
			t.Errorf("%s: the text stands %d times", name, n/500)
		}
		got, err := neutral.Unmarshal(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := *written.At(0)
		want.Turn = 0
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	quoted := rawjson.Quote(long)
	m, err := neutral.Unmarshal([]byte(`{"v":2,"role":"user","parts":[{"type":"text","text":`+quoted+`}],"frame":{"raw":`+rawjson.Quote(`[`+quoted+`]`)+`}}`), nil)
	if err != nil || m.Frame.Raw() != `[`+quoted+`]` {
		t.Errorf("a row of version 2: %v", err)
	}
	for _, at := range []string{"-1", "9"} {
		if _, err := neutral.Unmarshal([]byte(`{"v":3,"role":"user","parts":[{"type":"text","text_at":`+at+`,"text":`+quoted+`}],"frame":{"raw":"{}"}}`), nil); err == nil {
			t.Errorf("text_at %s of a frame of two bytes", at)
		}
	}
}

// TestFirstVersion: what earlier revisions wrote is read.
func TestFirstVersion(t *testing.T) {
	for data, want := range map[string]thread.Part{
		`{"v":1,"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"Read","arguments":"{}"}]}`:                                       thread.ToolCall{ID: "c", Name: "Read", Arguments: "{}"},
		`{"v":1,"role":"tool","parts":[{"type":"tool_result","id":"c","bytes":{"name":"/w=="},"structured":"[1]"}]}`:                              thread.ToolResult{CallID: "c", Tool: "\xff", Structured: "[1]"},
		`{"v":1,"role":"user","parts":[{"type":"media","media":"file","name":"a.pdf","text":"words","api":"anthropic","raw":"{}","cache":"5m"}]}`: thread.Media{Type: thread.File, Name: "a.pdf", Text: "words", Source: thread.Source{API: "anthropic", Raw: "{}", Cache: "5m"}},
	} {
		m, err := neutral.Unmarshal([]byte(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]thread.Part{want}, m.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	}
}

// FuzzUnmarshal: any bytes give a message that can be written again, or an error.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"role":"user","parts":[{"type":"text","text":"hi"}]}`,
		`{"v":1,"role":"tool","bytes":{"name":"/w=="},"parts":[{"type":"tool_result","key_fields":{"n":9007199254740993,"l":[1e3]},"content":[{"type":"media"}]}],"frame":{"raw":"x"}}`,
		`{"v":1,"frame_back":1,"kind":"recap","time":"2025-01-02T03:04:05Z","parts":[{"type":"text","raw_at":[2,30]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		shared := thread.NewFrame("", "the frame of an earlier message, long enough to be cut", 0, 0, 0)
		frame := func(back int) *thread.Frame {
			if back == 1 {
				return shared
			}
			return nil
		}
		m, err := neutral.Unmarshal(data, frame)
		if err != nil {
			return
		}
		first, err := neutral.Marshal(log(t, thread.Message{Frame: shared}, m), 1)
		if err != nil {
			return // such as a time that only parses
		}
		again, err := neutral.Unmarshal(first, frame)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := neutral.Marshal(log(t, thread.Message{Frame: shared}, again), 1); err != nil || string(second) != string(first) {
			t.Fatalf("%s\n%s\n%v", first, second, err)
		}
	})
}
