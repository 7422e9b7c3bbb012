package thread_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// written is everything that a thread holds, and what a provider would be sent.
func written(t *rapid.T, th *thread.Thread) string {
	var b strings.Builder
	parent := thread.ID("")
	for i := range th.Len() {
		m := th.At(i)
		line, err := neutral.Marshal(th, i)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		parent = thread.ChainID(parent, m)
		b.WriteString(string(parent) + "\n")
	}
	p, _, err := render.Render(th, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := anthropic.Codec{}.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(body)
}

// scribble writes to everything in a message that can be written to.
func scribble(m *thread.Message) {
	other := thread.Text{Text: "rewritten"}
	parts := m.Parts[:cap(m.Parts)]
	for i, p := range parts {
		if r, ok := p.(thread.ToolResult); ok {
			for n := range r.Content {
				r.Content[n] = other
			}
			for name, v := range r.KeyFields {
				if list, ok := v.([]any); ok && len(list) > 0 {
					list[0] = "rewritten"
				}
				if inner, ok := v.(map[string]any); ok {
					inner["rewritten"] = true
				}
				r.KeyFields[name] = "rewritten"
			}
			if r.Determinism != nil {
				r.Determinism.ETag = "rewritten"
			}
		}
		parts[i] = other
	}
	m.ID, m.Role, m.Name, m.Turn, m.Frame = "rewritten", thread.System, "rewritten", 99, nil
	_ = append(m.Parts, other)
}

// withFields gives the results of a message what else they can share.
func withFields(m *thread.Message) {
	for i, p := range m.Parts {
		if r, ok := p.(thread.ToolResult); ok {
			r.KeyFields = thread.Fields{"path": "a.go", "lines": []any{1, []any{"x"}}, "inner": map[string]any{"k": "v"}}
			r.Determinism = &thread.Determinism{ETag: "e"}
			m.Parts[i] = r
		}
	}
}

// TestNobodyRewritesTheLog: whoever keeps what he appended, or writes to copies of his
// own or to a prompt, changes no thread: not this one, nor its prefixes and forks. A1
func TestNobodyRewritesTheLog(t *testing.T) {
	property.Few(t, 30, func(t *rapid.T) {
		given := slices.Clone(threadgen.Thread().Draw(t, "thread").Messages())
		thread.Own(given)
		for i := range given {
			withFields(&given[i])
		}
		split := rapid.IntRange(0, len(given)).Draw(t, "split")
		first, err := thread.New("t").Append(given[:split]...)
		if err != nil {
			t.Fatal(err)
		}
		th, err := first.Append(given[split:]...)
		if err != nil {
			t.Fatal(err)
		}
		fork, err := first.Append(say(thread.User, "another way"))
		if err != nil {
			t.Fatal(err)
		}
		threads := []*thread.Thread{th, first, fork, th.Prefix(split / 2)}
		var want []string
		for _, th := range threads {
			want = append(want, written(t, th))
		}
		check := func(how string) {
			t.Helper()
			for i, th := range threads {
				if got := written(t, th); got != want[i] {
					t.Fatalf("thread %d was rewritten through %s:\n%s\nwas\n%s", i, how, got, want[i])
				}
			}
		}
		for i := range given {
			scribble(&given[i])
		}
		check("what was appended")
		for _, th := range threads {
			own := slices.Clone(th.Messages())
			thread.Own(own)
			for i := range own {
				scribble(&own[i])
			}
			check("copies of its own")
			p, _, err := render.Render(th, nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Messages {
				scribble(&p.Messages[i])
			}
			check("a prompt")
		}
	})
}

// TestKeyFieldsAreValues: what JSON cannot hold becomes null, as it is written,
// and anything else is copied.
func TestKeyFieldsAreValues(t *testing.T) {
	list := []string{"a"}
	type point struct{ X, Y int }
	at := &point{1, 2}
	loop := map[string]any{}
	loop["self"] = loop
	th, err := thread.New("t").Append(thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{Tool: "x", KeyFields: thread.Fields{
		"list": list, "at": at, "nan": math.NaN(), "func": func() {}, "fields": thread.Fields{"n": 1}, "none": nil, "big": int64(math.MaxInt64),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	list[0], at.X = "b", 7
	r, _ := th.At(0).Result()
	want := `[x: success]` + "\n" + `Key data: {"at": {"X": 1, "Y": 2}, "big": 9223372036854775807, "fields": {"n": 1}, "func": null, "list": ["a"], "nan": null, "none": null}`
	if got := r.Cleared(nil); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := thread.New("t").Append(thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{KeyFields: loop}}}); err != nil {
		t.Error(err)
	}
}

// TestFinal: a thread takes what a final message holds as it is, and what it gives for changes is a copy.
func TestFinal(t *testing.T) {
	for _, final := range []bool{false, true} {
		given := []thread.Message{{Role: thread.Tool, Final: final, Parts: []thread.Part{thread.ToolResult{CallID: "c", Content: []thread.Part{thread.Text{Text: "a"}}}}}}
		log, err := thread.New("t").Append(given...)
		if err != nil {
			t.Fatal(err)
		}
		held := log.At(0)
		if shared := &held.Parts[0] == &given[0].Parts[0]; shared != final || held.Final || given[0].Final != final {
			t.Errorf("final %v: the thread shares parts: %v, and has it final: %v", final, shared, held.Final)
		}
		own := []thread.Message{given[0]}
		thread.Own(own)
		r, _ := own[0].Result()
		r.Content[0] = thread.Text{Text: "b"}
		if r, _ := held.Result(); r.Text() != "a" || own[0].Final {
			t.Errorf("final %v: what is changed in the copy is changed in the thread", final)
		}
	}
}
