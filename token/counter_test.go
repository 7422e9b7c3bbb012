package token

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var allCounters = []string{"o200k", "cl100k", "claude", "claude-4.7", "gemini", "chars/4", "chars/3.5", "bytes/4"}

func counter(t testing.TB, name string) *Counter {
	t.Helper()
	c, err := New(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The number of tokens of short texts in OpenAI's public tokenizer page.
func TestKnownCounts(t *testing.T) { // A13
	for _, k := range []struct {
		text          string
		o200k, cl100k int
	}{
		{"", 0, 0},
		{"hello world", 2, 2},
		{"antidisestablishmentarianism", 6, 6},
		{"2 + 2 = 4", 7, 7},
		{"お誕生日おめでとう", 8, 9},
		{"tiktoken is great!", 6, 6},
		{"<|endoftext|>", 7, 7}, // plain text, not one special token
	} {
		for name, want := range map[string]int{"o200k": k.o200k, "cl100k": k.cl100k} {
			if got := counter(t, name).Text(k.text); got != want {
				t.Errorf("%s counts %d tokens in %q, want %d", name, got, k.text, want)
			}
		}
	}
}

func TestInvalidUTF8CountsAsReplacement(t *testing.T) {
	for _, name := range []string{"o200k", "cl100k", "claude", "claude-4.7", "gemini", "chars/4"} {
		c := counter(t, name)
		if got, want := c.Text("a\xff\xfeb\xe2\x82"), c.Text("a\ufffd\ufffdb\ufffd\ufffd"); got != want {
			t.Errorf("%s: %d tokens in invalid text, %d in its replacement", name, got, want)
		}
	}
}

func TestNew(t *testing.T) {
	for _, name := range allCounters {
		c := counter(t, name)
		exact := name == "o200k" || name == "cl100k"
		if c.Name() != name || c.Exact() != exact || exact != (c.Band() == 0) {
			t.Errorf("New(%q): name %q, exact %v, band %v", name, c.Name(), c.Exact(), c.Band())
		}
	}
	for _, name := range []string{"", "gpt", "chars/", "chars/0", "chars/-4", "chars/NaN", "chars/Inf", "words/4", "chars/4/4"} {
		if _, err := New(name, nil); !errors.Is(err, errUnknownCounter) {
			t.Errorf("New(%q): %v", name, err)
		}
	}
	if _, err := New("gpt", nil); !strings.Contains(err.Error(), "o200k, cl100k, claude") {
		t.Errorf("the error does not list the names: %v", err)
	}
	if _, err := New("o200k", &Options{Family: "acme"}); err == nil {
		t.Error("an unknown family is no error")
	}
	if _, err := New("o200k", &Options{Images: "acme"}); err == nil {
		t.Error("an unknown image formula is no error")
	}
	if got := counter(t, "chars/4").Text("vierä"); got != 2 {
		t.Errorf("chars/4 counts %d tokens in 5 characters, want 2", got)
	}
	if got := counter(t, "bytes/4").Text("vierää"); got != 2 {
		t.Errorf("bytes/4 counts %d tokens in 8 bytes, want 2", got)
	}
}

// OpenAI's frame: three tokens and the role for a message, one for a name,
// three to prime the answer.
func TestOpenAIChatFrame(t *testing.T) { // A13
	c := counter(t, "o200k")
	p := &prompt.Prompt{
		System:   []prompt.System{{Text: "Answer in one word."}},
		Messages: []thread.Message{{Role: thread.User, Name: "ana", Parts: []thread.Part{thread.Text{Text: "Is it done?"}}}},
	}
	want := 3 + (4 + c.Text("Answer in one word.")) + (4 + c.Text("Is it done?") + 1 + c.Text("ana"))
	if got := c.Prompt(p); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

func TestTools(t *testing.T) { // A13
	tool := prompt.Tool{Name: "read", Description: "Read a file.", Schema: `{"type":"object","properties":{"path":{"type":"string"}}}`}
	for _, name := range allCounters {
		c := counter(t, name)
		if c.Tools(nil) != 0 {
			t.Errorf("%s: no tools cost %d tokens", name, c.Tools(nil))
		}
		one, two := c.Tools([]prompt.Tool{tool}), c.Tools([]prompt.Tool{tool, tool})
		text := c.Text(tool.Name) + c.Text(tool.Description) + c.Text(tool.Schema)
		if one < text || two-one < text {
			t.Errorf("%s: one tool costs %d tokens, two %d, the text alone %d", name, one, two, text)
		}
	}
	server := prompt.Tool{Name: "web_search", Source: thread.Source{Raw: `{"type":"web_search_20250305","name":"web_search","max_uses":5}`}}
	c := counter(t, "o200k")
	if c.Tools([]prompt.Tool{server}) <= c.Tools([]prompt.Tool{{Name: "web_search"}}) {
		t.Error("the definition of a provider's tool is not counted")
	}
}

func TestReasoningAndOpaque(t *testing.T) {
	claude, openai := counter(t, "claude"), counter(t, "o200k")
	seal := strings.Repeat("AbC9", 1000)
	count := func(c *Counter, p thread.Part) int {
		return c.Message(&thread.Message{Role: thread.Assistant, Parts: []thread.Part{p}}) - c.Message(&thread.Message{Role: thread.Assistant})
	}
	if got, want := count(claude, thread.Reasoning{Text: "I will look first.", Signature: seal}), claude.Text("I will look first."); got != want {
		t.Errorf("signed thinking costs %d tokens, its text %d", got, want)
	}
	// Three quarters of 4,000 less 650, a token to four bytes.
	if got := count(openai, thread.Reasoning{Text: "Looked.", Signature: seal}); got != (3000-650)/4 {
		t.Errorf("sealed reasoning costs %d tokens", got)
	}
	if got := count(claude, thread.Reasoning{Signature: seal}); got != (3000-650)/4 {
		t.Errorf("thinking without text costs %d tokens", got)
	}
	if got, want := count(openai, thread.Opaque{Kind: "x", Text: "readable", Source: thread.Source{Raw: `{"readable":"and more"}`}}), openai.Text("readable"); got != want {
		t.Errorf("an opaque block with text costs %d tokens, its text %d", got, want)
	}
	raw := `{"type":"compaction","encrypted_content":"` + seal + `","note":"kept"}`
	want := openai.Text(`{"type":"compaction","encrypted_content":"`) + (3000-650)/4 + openai.Text(`","note":"kept"}`)
	if got := count(openai, thread.Opaque{Kind: "compaction", Source: thread.Source{Raw: raw}}); got != want {
		t.Errorf("an opaque block with sealed content costs %d tokens, want %d", got, want)
	}
	result := thread.ToolResult{Structured: `{"rows":3}`}
	if got := count(openai, result); got < openai.Text(result.Structured) {
		t.Errorf("a result that is only data costs %d tokens", got)
	}
}

func genParts(depth int) *rapid.Generator[[]thread.Part] {
	s := text()
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) thread.Part {
		switch rapid.IntRange(0, 4+depth).Draw(t, "part") {
		case 0:
			return thread.Text{Text: s.Draw(t, "text")}
		case 1:
			return thread.Reasoning{Text: s.Draw(t, "text"), Signature: s.Draw(t, "signature")}
		case 2:
			return thread.Media{Type: rapid.SampledFrom([]thread.MediaType{thread.Image, thread.Document, thread.Audio, thread.Video, thread.File, "?"}).Draw(t, "type"), Data: s.Draw(t, "data"), Text: s.Draw(t, "text")}
		case 3:
			return thread.ToolCall{Name: s.Draw(t, "name"), Arguments: s.Draw(t, "args")}
		case 4:
			return thread.Opaque{Kind: "x", Text: s.Draw(t, "text"), Source: thread.Source{Raw: s.Draw(t, "raw")}}
		}
		return thread.ToolResult{Structured: s.Draw(t, "data"), Content: genParts(0).Draw(t, "content")}
	}), 0, 3)
}

func genPrompt() *rapid.Generator[*prompt.Prompt] {
	return rapid.Custom(func(t *rapid.T) *prompt.Prompt {
		p := &prompt.Prompt{}
		for range rapid.IntRange(0, 2).Draw(t, "systems") {
			p.System = append(p.System, prompt.System{Text: text().Draw(t, "system")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "tools") {
			p.Tools = append(p.Tools, prompt.Tool{Name: "tool", Description: text().Draw(t, "description"), Schema: text().Draw(t, "schema")})
		}
		for range rapid.IntRange(0, 4).Draw(t, "messages") {
			p.Messages = append(p.Messages, thread.Message{
				ID:    thread.ID(rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "id")),
				Role:  rapid.SampledFrom([]thread.Role{thread.User, thread.Assistant, thread.Tool, thread.System}).Draw(t, "role"),
				Name:  rapid.SampledFrom([]string{"", "ana"}).Draw(t, "name"),
				Parts: genParts(1).Draw(t, "parts"),
			})
		}
		return p
	})
}

// The law that budget fitting relies on, and remembered counts against fresh ones.
func TestPromptIsTheSumOfItsParts(t *testing.T) { // A13
	for _, name := range allCounters {
		c := counter(t, name)
		memo := c.Remembering(nil)
		t.Run(name, property.Test(func(t *rapid.T) {
			p := genPrompt().Draw(t, "prompt")
			sum := c.Overhead() + c.System(p.System) + c.Tools(p.Tools)
			for i := range p.Messages {
				n := c.Message(&p.Messages[i])
				if n < 0 {
					t.Fatalf("message %d costs %d tokens", i, n)
				}
				sum += n
			}
			if got := c.Prompt(p); got != sum {
				t.Fatalf("the prompt costs %d tokens, its parts %d", got, sum)
			}
			for range 2 {
				if got := memo.Prompt(p); got != sum {
					t.Fatalf("from memory the prompt costs %d tokens, counted anew %d", got, sum)
				}
			}
		}))
	}
}

// Joining two texts may merge tokens at the seam, and cut a run of white space
// or a word in another place, but never adds more than this. Estimates add more
// where letters and digits at the seam come to look like base64: then the whole
// run costs so much for each character.
const seam = 4

// joiningAddsLittle is what Counter.Text promises of two texts that are joined.
func joiningAddsLittle(t fataler, c *Counter, a, b string) {
	t.Helper()
	most := seam
	if e, ok := map[string]estimate{"claude": claude, "claude-4.7": claude47, "gemini": gemini}[c.Name()]; ok {
		left, right := a[len(strings.TrimRight(a, alnum)):], b[:len(b)-len(strings.TrimLeft(b, alnum))]
		if n := len(left) + len(right); n >= denseLength {
			most += max(0, (n*int(e.dense)+999)/1000-c.Text(left)-c.Text(right))
		}
	}
	if both, sum := c.Text(a+b), c.Text(a)+c.Text(b); both > sum+most {
		t.Fatalf("%s: %q and %q cost %d tokens apart and %d together, %d more were to be expected", c.Name(), a, b, sum, both, most)
	}
}

const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func TestJoiningAddsLittle(t *testing.T) {
	for _, name := range allCounters {
		c := counter(t, name)
		t.Run(name, property.Test(func(t *rapid.T) {
			joiningAddsLittle(t, c, text().Draw(t, "a"), text().Draw(t, "b"))
		}))
	}
}

// TestJoiningWhatLooksLikeBase64: a word before a run that looks like base64 is
// counted as base64 too, so joining adds more than a few tokens there.
func TestJoiningWhatLooksLikeBase64(t *testing.T) {
	cases := []struct{ a, b string }{
		{"aaaaaaaaa", strings.Repeat("aA", 40) + "A"},
		{"aaaaaaa", strings.Repeat("aA", 40) + "A"},
		{"aaaaaaaaaa", strings.Repeat("aA", 40) + "A"},
		{strings.Repeat("a", 200), strings.Repeat("a1", 60)},
		{strings.Repeat("a1", 60), strings.Repeat("a", 200)},
		{"see " + strings.Repeat("a", 7), "B2c3D4e5F "},
	}
	for _, name := range allCounters {
		c := counter(t, name)
		for _, k := range cases {
			joiningAddsLittle(t, c, k.a, k.b)
		}
	}
	c := counter(t, "claude")
	if a, b := cases[0].a, cases[0].b; c.Text(a+b) <= c.Text(a)+c.Text(b)+seam {
		t.Error("joining adds no more than the seam; then the promise can be a shorter one")
	}
}

func FuzzText(f *testing.F) {
	for _, s := range tricky {
		f.Add(s)
	}
	var counters []*Counter
	for _, name := range allCounters {
		counters = append(counters, counter(f, name))
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range counters {
			n := c.Text(s)
			if n < 0 || (n == 0) != (s == "") {
				t.Fatalf("%s counts %d tokens in %q", c.Name(), n, s)
			}
			if c.Exact() && n > 3*len(s) {
				t.Fatalf("%s counts %d tokens in %d bytes", c.Name(), n, len(s))
			}
			m := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Source: thread.Source{Raw: s}}, thread.Media{Type: thread.Image, Data: s}}}
			if c.Message(&m) < 0 {
				t.Fatalf("%s counts a negative number of tokens", c.Name())
			}
		}
	})
}

// TestScaled: a scaled counter gives every figure times the factor, never less,
// and its parts still add up to the whole request. A13
func TestScaled(t *testing.T) {
	c, err := New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &prompt.Prompt{
		System:   []prompt.System{{Text: "Be careful."}},
		Tools:    []prompt.Tool{{Name: "Read", Description: "Reads a file.", Schema: `{"type":"object"}`}},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: strings.Repeat("all work and no play ", 100)}}}},
	}
	for _, factor := range []float64{0.5, 1.25, 3} {
		s := c.Scaled(factor)
		sum := s.Overhead() + s.System(p.System) + s.Tools(p.Tools) + s.Message(&p.Messages[0])
		if got, want := s.Prompt(p), float64(c.Prompt(p))*factor; got != sum || float64(got) < want || float64(got) > want+4 {
			t.Errorf("times %v: %d, the parts %d, want %.1f", factor, got, sum, want)
		}
		if s.Text("") != 0 || s.Exact() || s.Name() == c.Name() {
			t.Errorf("times %v: %s, exact %v", factor, s.Name(), s.Exact())
		}
		if back := s.Scaled(1 / factor); back.Prompt(p) != c.Prompt(p) {
			t.Errorf("scaled back: %d, want %d", back.Prompt(p), c.Prompt(p))
		}
	}
	if c.Scaled(0) != c || c.Scaled(1) != c {
		t.Error("no factor makes another counter")
	}
}

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

// TestUntil: counting one text looks at its context again and again, also in one unbroken run, ends
// soon after it is done, and until then counts as ever.
func TestUntil(t *testing.T) {
	const size = 1 << 19
	for _, name := range []string{"o200k", "cl100k"} {
		for _, piece := range []string{"a", "\"", "é", "word ", "a.go:1: b\n", "0123456789abcdef"} {
			c, text := counter(t, name).Scaled(1.5), strings.Repeat(piece, size/len(piece))
			whole := &leaving{Context: t.Context()}
			if got, want := c.Until(whole).Text(text), c.Text(text); got != want {
				t.Errorf("%s, %q: %d tokens, want %d", name, piece, got, want)
			}
			if whole.looks < size/(16<<10) {
				t.Errorf("%s, %q: %d bytes are counted with %d looks at the context", name, piece, size, whole.looks)
			}
			gone := &leaving{Context: t.Context(), n: whole.looks / 2}
			c.Until(gone).Text(text)
			if gone.looks > gone.n {
				t.Errorf("%s, %q: it went on for %d looks", name, piece, gone.looks-gone.n)
			}
		}
	}
}
