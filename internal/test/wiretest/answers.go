package wiretest

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Reader is a codec that reads answers too.
type Reader interface {
	wire.Codec
	wire.Answers
}

// TestAnswers checks what wire.Answers promises. The answers are the model's own
// turns in real requests: each is read whole and as a stream of small pieces, and
// streams are broken in every way.
func TestAnswers(t *testing.T, r Reader, samples map[string][]byte) {
	var all []sample
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		p := decode(t, r, samples[name])
		seen := map[*thread.Frame]bool{}
		for i := range p.Messages {
			m := &p.Messages[i]
			if m.Role != thread.Assistant || m.Frame == nil || seen[m.Frame] {
				continue
			}
			seen[m.Frame] = true
			if a, ok := answerOf(r.API(), m.Frame.Raw()); ok {
				a.name = name
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("the samples hold no answer")
	}
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) { readBothWays(t, r, a) })
	}
	t.Run("items", func(t *testing.T) {
		property.Few(t, 40, func(rt *rapid.T) {
			for _, turn := range items.Turns(r.API(), items.Draw(rt, r.API(), 1, 8)) {
				if !items.ByModel(r.API(), turn[0]) {
					continue
				}
				if a, ok := answerOf(r.API(), strings.Join(turn, ",")); ok {
					readBothWays(rt, r, a)
				}
			}
		})
	})
	t.Run("broken streams", func(t *testing.T) {
		property.Check(t, func(rt *rapid.T) {
			a := rapid.SampledFrom(all).Draw(rt, "answer")
			s := r.NewStream()
			for range rapid.IntRange(0, 2*len(a.events)).Draw(rt, "events") {
				s.Event(rapid.SampledFrom(a.events).Draw(rt, "event"))
				if rapid.Bool().Draw(rt, "look") {
					readStream(rt, s)
				}
			}
			readStream(rt, s)
		})
	})
	t.Run("hostile", func(t *testing.T) {
		for _, body := range []string{"", "null", "7", "[]", "{}", "{", `{"content":{}}`, `{"choices":[]}`, `{"output":7}`, `{"candidates":[]}`, strings.Repeat("[", 200_000)} {
			if a, err := r.DecodeAnswer([]byte(body)); !errors.Is(err, wire.ErrAnswer) {
				t.Errorf("%.40s: %+v, %v", body, a, err)
			}
		}
	})
}

// FuzzStream reads any lines as the events of a stream.
func FuzzStream(f *testing.F, r Reader, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, events string) {
		s := r.NewStream()
		for line := range strings.Lines(events) {
			s.Event(strings.TrimSuffix(line, "\n")) // what does not fit is left out
		}
		first := readStream(t, s)
		if diff := cmp.Diff(first, readStream(t, s)); diff != "" {
			t.Error("the answer is another when asked for twice:\n" + diff)
		}
		if r, err := r.DecodeAnswer([]byte(events)); err == nil && r.Message.Role != thread.Assistant {
			t.Error("an answer of nobody")
		}
	})
}

// readStream reads the answer as far as it came.
func readStream(t interface{ Errorf(string, ...any) }, s wire.Stream) wire.Answer {
	a, err := s.Answer()
	switch {
	case err != nil && !errors.Is(err, wire.ErrAnswer):
		t.Errorf("%v does not wrap ErrAnswer", err)
	case err == nil && a.Message.Role != thread.Assistant:
		t.Errorf("the answer has the role %q", a.Message.Role)
	}
	return a
}

// sample is an answer in one piece, and the data of the events of its stream.
type sample struct {
	name, whole string
	events      []string
	once        []string // the same with StreamOptions.Once
}

// Answer is an answer in one piece, of the element that stands for it in a request, or on Responses
// of its items with commas between them. It is false for elements that no stream has in that form.
func Answer(api, element string) (whole string, streams bool) {
	a, ok := answerOf(api, element)
	return a.whole, ok
}

func answerOf(api, element string) (a sample, ok bool) {
	m := gjson.Parse(element)
	ok = true
	switch api {
	case wire.Anthropic:
		content := m.Get("content").Raw
		if strings.HasPrefix(content, `"`) {
			content = `[{"type":"text","text":` + content + `}]`
		}
		a.whole = `{"id":"id_1","type":"message","model":"model-1","role":"assistant","content":` + content +
			`,"stop_reason":"end_turn","usage":{"input_tokens":40,"cache_read_input_tokens":60,"cache_creation_input_tokens":0,"output_tokens":20}}`
	case wire.Chat:
		m.ForEach(func(name, v gjson.Result) bool {
			ok = v.Raw != `""` && name.Str != "function_call" // nobody streams nothing
			return ok
		})
		ok = ok && !m.Get("content").IsArray()
		a.whole = `{"id":"id_1","model":"model-1","choices":[{"index":0,"message":` + element +
			`,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60}}}`
	case wire.Responses:
		a.whole = `{"id":"id_1","object":"response","model":"model-1","status":"completed","output":[` + element +
			`],"usage":{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":60}}}`
	case wire.Gemini:
		parts := m.Get("parts").Array()
		for i := 1; i < len(parts); i++ { // a stream has such as one
			ok = ok && !(parts[i].Get("text").Exists() && parts[i-1].Get("text").Exists() && parts[i].Get("thought").Bool() == parts[i-1].Get("thought").Bool())
		}
		a.whole = `{"responseId":"id_1","modelVersion":"model-1","candidates":[{"index":0,"content":` + element +
			`,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":20}}`
	}
	for to, o := range map[*[]string]*StreamOptions{&a.events: nil, &a.once: {Once: true}} {
		for _, event := range Events(api, a.whole, o) {
			_, data, _ := strings.Cut(event, "data: ")
			*to = append(*to, strings.TrimSpace(data))
		}
	}
	return a, ok
}

// readBothWays reads an answer whole and as streams.
func readBothWays(t rapid.TB, r Reader, a sample) {
	t.Helper()
	whole, err := r.DecodeAnswer([]byte(a.whole))
	if err != nil {
		t.Fatalf("%v\n%s", err, a.whole)
	}
	used := wire.Usage{Input: 100, CacheRead: 60, Output: 20, Known: true, Mixed: whole.Usage.Mixed} // as the tools that it ran say
	if whole.Stop == "" || whole.ID != "id_1" || whole.Model != "model-1" || whole.Usage != used {
		t.Errorf("id %q, model %q, stop %q, usage %+v", whole.ID, whole.Model, whole.Stop, whole.Usage)
	}
	for _, events := range [][]string{a.events, a.once} {
		readStreamed(t, r, a.whole, whole, events)
	}
}

// readStreamed reads events as the answer in one piece was read.
func readStreamed(t rapid.TB, r Reader, raw string, whole wire.Answer, events []string) {
	t.Helper()
	s := r.NewStream()
	if _, err := s.Answer(); !errors.Is(err, wire.ErrAnswer) {
		t.Errorf("before the stream: %v", err)
	}
	var last wire.Progress
	var err error
	for i, e := range events {
		if last, err = s.Event(e); err != nil {
			t.Fatalf("event %d: %v\n%s", i, err, e)
		}
		if so, err := s.Answer(); err == nil && (so.Stop != "") != (last.Stop != "" || last.Done) {
			t.Errorf("event %d: stopped for %q, and the answer for %q", i, last.Stop, so.Stop)
		}
	}
	streamed, err := s.Answer()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, streamed, sameJSON, cmpopts.IgnoreFields(thread.Message{}, "Frame")); diff != "" {
		t.Errorf("whole and streamed differ (-whole +streamed):\n%s\n%s", diff, raw)
	}
	if last.Usage != whole.Usage || !last.Done && r.API() != wire.Gemini {
		t.Errorf("at the end: %+v", last)
	}
}

// sameJSON compares what a part was read from, and arguments, as JSON: the white
// space and the order of members are the sender's.
var sameJSON = cmp.Options{
	cmp.Transformer("source", func(s thread.Source) any { return [3]any{s.API, s.Cache, meaning(s.Raw)} }),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Arguments" }, cmp.Transformer("json", meaning)),
}

func meaning(doc string) any {
	var v any
	if json.Unmarshal([]byte(doc), &v) != nil {
		return doc
	}
	return v
}
