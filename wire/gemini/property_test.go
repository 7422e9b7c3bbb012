package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// drawBody makes a legal request as clients send it: with and without ids, in
// one batch or several, signed or not, words beside responses or after them.
func drawBody(t *rapid.T) string {
	ids := rapid.Bool().Draw(t, "ids")
	signed := rapid.Bool().Draw(t, "signed")
	var contents []string
	for turn := range rapid.IntRange(1, 3).Draw(t, "turns") {
		contents = append(contents, user(fmt.Sprintf(`{"text":"ask %d"}`, turn)))
		for step := range rapid.IntRange(0, 3).Draw(t, "steps") {
			var asked, answered []string
			if rapid.Bool().Draw(t, "thought") {
				asked = append(asked, `{"text":"hm","thought":true}`)
			}
			for i := range rapid.IntRange(1, 3).Draw(t, "batch") {
				id, seal := "", ""
				if ids {
					id = fmt.Sprintf(`"id":"c%d.%d.%d",`, turn, step, i)
				}
				if signed && i == 0 {
					seal = `,"thoughtSignature":"c2VhbA=="`
				}
				name := rapid.SampledFrom([]string{"f", "g"}).Draw(t, "name")
				asked = append(asked, fmt.Sprintf(`{"functionCall":{%s"name":"%s","args":{"n":%d}}%s}`, id, name, i, seal))
				answered = append(answered, fmt.Sprintf(`{"functionResponse":{%s"name":"%s","response":{"output":"answer %d.%d.%d"}}}`, id, name, turn, step, i))
			}
			contents = append(contents, model(strings.Join(asked, ",")))
			words := fmt.Sprintf(`{"text":"remark %d.%d"}`, turn, step)
			switch rapid.IntRange(0, 5).Draw(t, "words") {
			case 0:
				contents = append(contents, user(strings.Join(append(answered, words), ",")))
			case 1:
				contents = append(contents, user(strings.Join(answered, ",")), user(words))
			default:
				contents = append(contents, user(strings.Join(answered, ",")))
			}
		}
		contents = append(contents, model(fmt.Sprintf(`{"text":"reply %d"}`, turn)))
	}
	return request(contents...)
}

// edit rewrites a message as a renderer does: other text in place of its own,
// shorter arguments, no frame.
func edit(t *rapid.T, m thread.Message) thread.Message {
	next := thread.Message{Role: m.Role}
	for _, part := range m.Parts {
		switch p := part.(type) {
		case thread.Text:
			part = thread.Text{Text: p.Text + " (edited)"}
		case thread.ToolCall:
			if rapid.Bool().Draw(t, "shorten") {
				part = thread.ToolCall{ID: p.ID, Name: p.Name, Arguments: "{}", Signature: p.Signature}
			}
		case thread.ToolResult:
			part = thread.ToolResult{CallID: p.CallID, Tool: p.Tool, Outcome: p.Outcome, Structured: p.Structured, Content: []thread.Part{thread.Text{Text: "cleared"}}}
		case thread.Reasoning:
			continue
		}
		next.Parts = append(next.Parts, part)
	}
	return next
}

// Whatever messages of a legal request are rewritten, and whatever notes are
// put beside them, the request stays legal, means the same, and keeps the order
// of what was said.
func TestEditsStayLegal(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		body := drawBody(t)
		if got := problems(body, false); len(got) > 0 {
			t.Fatalf("the test's own request breaks a rule: %v\n%s", got, body)
		}
		p, err := gemini.Codec{}.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		var list []thread.Message
		for _, m := range p.Messages {
			if rapid.IntRange(0, 2).Draw(t, "edit") == 0 {
				m = edit(t, m)
			}
			if m.Role == thread.User && rapid.IntRange(0, 3).Draw(t, "note") == 0 {
				list = append(list, say(rapid.SampledFrom([]thread.Role{thread.User, thread.System}).Draw(t, "as"), "a note"))
			}
			list = append(list, m)
		}
		whole := rapid.Bool().Draw(t, "keep source")
		next := *p
		next.Messages = list
		if !whole {
			next.Source = nil
		}
		out, err := gemini.Codec{}.Encode(&next)
		if err != nil {
			t.Fatal(err)
		}
		if got := problems(string(out), false); len(got) > 0 {
			t.Fatalf("%v\nfrom %s\nto   %s", got, body, out)
		}
		back, err := gemini.Codec{}.Decode(string(out))
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := (gemini.Codec{}).Encode(back); string(again) != string(out) {
			t.Fatalf("the written request does not come back:\n%s\n%s", again, out)
		}
		if want, got := spoken(list), spoken(back.Messages); want != got {
			t.Fatalf("said\n%s\nread back\n%s\nin %s", want, got, out)
		}
	})
}

// spoken lists calls, responses and words by who says them, in order; notes and
// their neighbours may share a message.
func spoken(list []thread.Message) string {
	var words []string
	for i := range list {
		for _, part := range list[i].Parts {
			switch p := part.(type) {
			case thread.Text:
				words = append(words, strings.TrimPrefix(p.Text, "[system]\n"))
			case thread.ToolCall:
				words = append(words, "call "+p.ID+" "+p.Name+p.Arguments)
			case thread.ToolResult:
				words = append(words, "answer "+p.CallID+" "+p.Tool+" "+p.Text())
			}
		}
	}
	return strings.Join(words, "\n")
}

// Legal threads of other providers become legal requests, in the package's own
// draw of them: system messages in between, ids without and with meaning, odd
// names, results in any order.
func TestTranslationsAreLegal(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		p := &prompt.Prompt{}
		texts := rapid.SampledFrom([]string{"", "a", "b c", "é\x00"})
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				p.Messages = append(p.Messages, say(thread.System, texts.Draw(t, "text")))
			case 1:
				p.Messages = append(p.Messages, say(thread.Assistant, texts.Draw(t, "text")), say(thread.User, "go on"))
			case 2:
				p.Messages = append(p.Messages, say(thread.User, texts.Draw(t, "text")))
			default:
				var asked []thread.ToolCall
				var answers []thread.Message
				for i := range rapid.IntRange(1, 4).Draw(t, "batch") {
					c := thread.ToolCall{
						ID:        rapid.SampledFrom([]string{fmt.Sprintf("id %d", i), thread.LocalID(100*len(p.Messages) + i)}).Draw(t, "id"),
						Name:      rapid.SampledFrom([]string{"f", "a b", "", strings.Repeat("n", 80)}).Draw(t, "name"),
						Arguments: rapid.SampledFrom([]string{"", "{}", "[", "null", `"a"`, `{"a":1}`, strings.Repeat("[", 5000)}).Draw(t, "arguments"),
					}
					asked = append(asked, c)
					answers = append(answers, answer(c.ID, c.Name, texts.Draw(t, "text")))
				}
				p.Messages = append(p.Messages, calls(asked...))
				p.Messages = append(p.Messages, rapid.Permutation(answers).Draw(t, "order")...)
			}
		}
		out, err := gemini.Codec{}.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := problems(string(out), false); len(got) > 0 {
			t.Fatalf("%v\n%s", got, out)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(camelBody))
	f.Add([]byte(snakeBody()))
	f.Add([]byte(request(hello, callFG, doneF, reply)))
	f.Add([]byte(`{"contents":[{"role":"function","parts":[{}]},{}],"tools":[{"functionDeclarations":[1,{}]}],"systemInstruction":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := gemini.Codec{}.Decode(string(body))
		if err != nil {
			return
		}
		out, err := gemini.Codec{}.Encode(p)
		if err != nil || string(out) != string(body) {
			t.Fatalf("came back as %q, %v", out, err)
		}
		// Written anew it must be readable, and settle after one time.
		for i := range p.Messages {
			p.Messages[i].Frame = nil
		}
		once, err := gemini.Codec{}.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := gemini.Codec{}.Decode(string(once))
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, once)
		}
		if again, _ := (gemini.Codec{}).Encode(back); string(again) != string(once) {
			t.Fatalf("does not settle:\n%s\n%s", once, again)
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(camelBody))
	f.Add([]byte(request(hello, signF, doneF, callF, doneF)))
	f.Add([]byte(`{"contents":[{"role":1,"parts":[{"text":1},{"functionCall":[]}]}],"tools":[{"functionDeclarations":[{}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range (gemini.Codec{}).Validate(body) {
			if p.Rule == "" || p.Message == "" {
				t.Fatalf("a problem without rule or message: %+v", p)
			}
		}
	})
}

// large is a session of about 100,000 tokens (400 KB): file reads of 8 KB.
func large() []byte {
	file := strings.Repeat(`\tif err != nil { return \"x\" }\n`, 240)
	contents := []string{hello}
	for i := range 50 {
		contents = append(contents,
			model(fmt.Sprintf(`{"text":"I read file %d."},{"functionCall":{"name":"read","args":{"path":"file%d.go"}},"thoughtSignature":"c2VhbA=="}`, i, i)),
			user(`{"functionResponse":{"name":"read","response":{"output":"`+file+`"}}}`))
	}
	return []byte(request(contents...))
}

func BenchmarkDecode(b *testing.B) {
	body := large()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (gemini.Codec{}).Decode(string(body)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeUntouched(b *testing.B) { benchmarkEncode(b, 0) }

func BenchmarkEncodeHalfRewritten(b *testing.B) { benchmarkEncode(b, 2) }

func benchmarkEncode(b *testing.B, every int) {
	body := large()
	p, err := gemini.Codec{}.Decode(string(body))
	if err != nil {
		b.Fatal(err)
	}
	for i := range p.Messages {
		if m := p.Messages[i]; every > 0 && i%(2*every) == 2 {
			r, _ := m.Result()
			p.Messages[i] = answer(r.CallID, r.Tool, r.Text())
		}
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (gemini.Codec{}).Encode(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	body := large()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if got := (gemini.Codec{}).Validate(body); len(got) > 0 {
			b.Fatal(got)
		}
	}
}
