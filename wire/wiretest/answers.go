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
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/property"
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
		t.Run(a.name, func(t *testing.T) { bothWays(t, r, a) })
	}
	t.Run("broken streams", func(t *testing.T) {
		property.Check(t, func(rt *rapid.T) {
			a := rapid.SampledFrom(all).Draw(rt, "answer")
			s := r.NewStream()
			for range rapid.IntRange(0, 2*len(a.events)).Draw(rt, "events") {
				s.Event(rapid.SampledFrom(a.events).Draw(rt, "event"))
				if rapid.Bool().Draw(rt, "look") {
					look(rt, s)
				}
			}
			look(rt, s)
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
		text := ""
		for line := range strings.Lines(events) {
			now, _ := s.Event(strings.TrimSuffix(line, "\n"))
			for _, d := range now.Deltas {
				text += d.Text
			}
		}
		first := look(t, s)
		if diff := cmp.Diff(first, look(t, s)); diff != "" {
			t.Error("the answer is another when asked for twice:\n" + diff)
		}
		if r, err := r.DecodeAnswer([]byte(events)); err == nil && r.Message.Role != thread.Assistant {
			t.Error("an answer of nobody")
		}
	})
}

// look reads the answer as far as it came.
func look(t interface{ Errorf(string, ...any) }, s wire.Stream) wire.Answer {
	a, err := s.Answer()
	switch {
	case err != nil && !errors.Is(err, wire.ErrAnswer):
		t.Errorf("%v does not wrap ErrAnswer", err)
	case err == nil && a.Message.Role != thread.Assistant:
		t.Errorf("the answer has the role %q", a.Message.Role)
	}
	return a
}

// bothWays reads an answer whole and as a stream.
func bothWays(t *testing.T, r Reader, a sample) {
	whole, err := r.DecodeAnswer([]byte(a.whole))
	if err != nil {
		t.Fatalf("%v\n%s", err, a.whole)
	}
	used := wire.Usage{Input: 100, CacheRead: 60, Output: 20, Known: true, Mixed: whole.Usage.Mixed} // as the tools that it ran say
	if whole.Stop == "" || whole.ID != "id_1" || whole.Model != "model-1" || whole.Usage != used {
		t.Errorf("id %q, model %q, stop %q, usage %+v", whole.ID, whole.Model, whole.Stop, whole.Usage)
	}
	s := r.NewStream()
	if _, err := s.Answer(); !errors.Is(err, wire.ErrAnswer) {
		t.Errorf("before the stream: %v", err)
	}
	var text, calls string
	var last wire.Progress
	for i, e := range a.events {
		if last, err = s.Event(e); err != nil {
			t.Fatalf("event %d: %v\n%s", i, err, e)
		}
		for _, d := range last.Deltas {
			text += d.Text
			if d.Arguments != "" {
				calls += d.Tool + "(" + d.Arguments + ")"
			}
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
		t.Errorf("whole and streamed differ (-whole +streamed):\n%s\n%s", diff, a.whole)
	}
	if last.Usage != whole.Usage || !a.endless && !last.Done {
		t.Errorf("at the end: %+v", last)
	}
	want := ""
	for _, p := range whole.Message.Parts {
		if p, ok := p.(thread.Text); ok {
			want += p.Text
		}
	}
	if text != want {
		t.Errorf("the pieces say %q, the answer %q", text, want)
	}
	for _, c := range whole.Message.Calls() {
		if c.Arguments != "" && c.Arguments != "{}" && c.Type == "" && !strings.Contains(calls, c.Name+"(") {
			t.Errorf("no piece of a call of %s in %s", c.Name, calls)
		}
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
