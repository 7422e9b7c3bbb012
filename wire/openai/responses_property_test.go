package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// responsesDrawBody draws a legal body, as an agent with a reasoning model
// sends it. It returns the body and, for each item with an id, the reasoning
// that it was made after, and for each reasoning the item that followed it.
func responsesDrawBody(rt *rapid.T) (body string, reasonOf, follower map[string]string) {
	reasonOf, follower = map[string]string{}, map[string]string{}
	var items []string
	n := 0
	for range rapid.IntRange(1, 4).Draw(rt, "turns") {
		n++
		items = append(items, fmt.Sprintf(`{"role":"user","content":"question %d"}`, n))
		for range rapid.IntRange(0, 3).Draw(rt, "responses") {
			var outputs []string
			reason := ""
			for range rapid.IntRange(1, 4).Draw(rt, "steps") {
				n++
				if rapid.Bool().Draw(rt, "reasons") {
					reason = fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"e%d"}`, n, n)
					items = append(items, reason)
				}
				var item string
				switch rapid.IntRange(0, 3).Draw(rt, "item") {
				case 0:
					item = fmt.Sprintf(`{"type":"message","id":"msg_%d","role":"assistant","content":[{"type":"output_text","text":"answer %d"},{"type":"output_text","text":"more %d"}]}`, n, n, n)
				case 1:
					item = fmt.Sprintf(`{"type":"web_search_call","id":"ws_%d","status":"completed","action":{"type":"search","query":"q"}}`, n)
				case 2:
					item = fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"c%d","name":"f","arguments":"{}"}`, n, n)
					outputs = append(outputs, fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":"done %d"}`, n, n))
				case 3:
					item = fmt.Sprintf(`{"type":"custom_tool_call","id":"ctc_%d","call_id":"c%d","name":"p","input":"x"}`, n, n)
					outputs = append(outputs, fmt.Sprintf(`{"type":"custom_tool_call_output","call_id":"c%d","output":"patched %d"}`, n, n))
				}
				reasonOf[gjson.Get(item, "id").Str] = reason
				if len(items) > 0 && items[len(items)-1] == reason {
					follower[reason] = item
				}
				items = append(items, item)
			}
			items = append(items, outputs...)
			items = append(items, fmt.Sprintf(`{"role":"user","content":"on %d"}`, n))
		}
	}
	return `{"model":"m","store":false,"input":[` + strings.Join(items, ",") + `]}`, reasonOf, follower
}

// responsesDrawEdit draws what becomes of a message: parts go, texts and
// arguments are shortened; calls stay, since their results do.
func responsesDrawEdit(rt *rapid.T, m thread.Message) (thread.Message, bool) {
	if rapid.Bool().Draw(rt, "keep") {
		return m, false
	}
	next := thread.Message{Role: m.Role}
	for _, part := range m.Parts {
		switch p := part.(type) {
		case thread.ToolCall:
			if rapid.Bool().Draw(rt, "shorten") {
				part = thread.ToolCall{ID: p.ID, Name: p.Name, Type: p.Type, Arguments: `{"cut":true}`}
			}
		case thread.ToolResult:
			part = thread.ToolResult{CallID: p.CallID, Tool: p.Tool, Outcome: p.Outcome, Content: []thread.Part{thread.Text{Text: p.Cleared(nil)}}}
		default:
			switch rapid.IntRange(0, 2).Draw(rt, "part") {
			case 0:
				continue
			case 1:
				if text, ok := part.(thread.Text); ok {
					part = thread.Text{Text: "short " + text.Text}
				}
			}
		}
		next.Parts = append(next.Parts, part)
	}
	return next, true
}

// However a request is edited, OpenAI takes it: all pairs stay whole, and
// reasoning stands only where it stood.
func TestResponsesEditedBodiesAreValid(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		body, reasonOf, follower := responsesDrawBody(rt)
		p, err := (Responses{}).Decode(body)
		if err != nil {
			rt.Fatal(err)
		}
		kept := map[string]bool{} // the bytes that stay
		for i, m := range p.Messages {
			edited, changed := responsesDrawEdit(rt, m)
			if !changed && m.Frame.Messages() == 1 {
				kept[m.Frame.Raw()] = true
			}
			for _, part := range m.Parts {
				if !changed && m.Frame.Messages() > 1 && part.From().Raw != "" {
					kept[part.From().Raw] = true
				}
			}
			p.Messages[i] = edited
		}
		encoded, err := (Responses{}).Encode(p)
		if err != nil {
			rt.Fatal(err)
		}
		out := string(encoded)
		for _, problem := range (Responses{}).Validate(encoded) {
			if !problem.Advice {
				rt.Errorf("%v", problem)
			}
		}
		for raw := range kept {
			if !strings.Contains(out, raw) {
				rt.Errorf("an untouched message lost its bytes: %s", raw)
			}
		}
		items := responsesInputOf(out)
		for i, item := range items {
			if next, ok := follower[item]; ok && (i+1 == len(items) || items[i+1] != next) {
				rt.Errorf("%s without the item that followed it", item)
			}
			reason := reasonOf[gjson.Get(item, "id").Str]
			if reason != "" && !strings.Contains(strings.Join(items[:i], "\n"), reason) {
				rt.Errorf("%s without its reasoning", item)
			}
		}
		if rt.Failed() {
			rt.Logf("from %s\nto   %s", body, out)
		}
	})
}

func FuzzResponsesDecode(f *testing.F) {
	f.Add([]byte(responsesZoo))
	f.Add([]byte(`{"model":"m","input":"a\ud800"}`))
	f.Add([]byte(`{"input":[{"type":"message"},{"role":"assistant","content":[{},1,{"type":"output_text"}]}],"input":[]}`))
	f.Add([]byte(`{"input":[{"type":"reasoning","summary":{}},{"type":"shell_call_output","output":[1]}],"tools":[{"name":3}]}`))
	f.Add([]byte("{\"input\":[\"\\\\\\\"\"]}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := (Responses{}).Decode(string(body))
		if err != nil {
			return
		}
		out, err := (Responses{}).Encode(p)
		if err != nil || string(out) != string(body) {
			t.Fatalf("round trip: %v\n%s\n%s", err, body, out)
		}
		// Written anew and translated it still is a request.
		for i, m := range p.Messages {
			p.Messages[i] = thread.Message{Role: m.Role, Parts: m.Parts}
		}
		for range 2 {
			out, err = (Responses{}).Encode(p)
			if err != nil {
				t.Fatalf("rebuilt: %v", err)
			}
			if _, err := (Responses{}).Decode(string(out)); err != nil {
				t.Fatalf("rebuilt: %v\n%s", err, out)
			}
			p.Source = nil
		}
	})
}

func FuzzResponsesValidate(f *testing.F) {
	f.Add([]byte(responsesZoo))
	f.Add([]byte(`{"model":"m","input":[1,{"role":"user","content":[1]}],"tools":[{"type":"namespace","tools":[[]]}],"context_management":[1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := gjson.ValidBytes(body)
		problems := (Responses{}).Validate(body)
		if !valid && len(problems) == 0 {
			t.Fatalf("no problem with %q", body)
		}
		for _, p := range problems {
			if p.Path == "" || p.Rule == "" || p.Message == "" {
				t.Fatalf("%+v says too little", p)
			}
		}
	})
}

// responsesLong is a request of about 400,000 characters (100,000 tokens): 100
// steps of an agent, each with reasoning, a call and a result.
func responsesLong() string {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-5","store":false,"input":[{"role":"user","content":"start"}`)
	line := strings.Repeat(`the worker wrote \"ledger.go\" and ran the tests again\n`, 60)
	for i := range 100 {
		fmt.Fprintf(&b, `,{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"%s"}`, i, strings.Repeat("gAAAAB", 80))
		fmt.Fprintf(&b, `,{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"read","arguments":"{\"path\":\"notes/%d.md\"}"}`, i, i, i)
		fmt.Fprintf(&b, `,{"type":"function_call_output","call_id":"call_%d","output":"%s"}`, i, line)
	}
	b.WriteString(`]}`)
	return b.String()
}

func BenchmarkResponsesDecode(b *testing.B) {
	body := []byte(responsesLong())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Responses{}).Decode(string(body)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResponsesEncode(b *testing.B) {
	body := []byte(responsesLong())
	whole, err := (Responses{}).Decode(string(body))
	if err != nil {
		b.Fatal(err)
	}
	edited, _ := (Responses{}).Decode(string(body))
	for i := range len(edited.Messages) / 2 {
		m := edited.Messages[i]
		if r, ok := m.Result(); ok {
			r = thread.ToolResult{CallID: r.CallID, Tool: r.Tool, Content: []thread.Part{thread.Text{Text: r.Cleared(nil)}}}
			edited.Messages[i] = thread.Message{Role: m.Role, Parts: []thread.Part{r}}
		} else if m.Role == thread.Assistant {
			edited.Messages[i] = thread.Message{Role: m.Role, Parts: m.Parts[1:]}
		}
	}
	b.Run("untouched", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = (Responses{}).Encode(whole)
		}
	})
	b.Run("half cleared", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = (Responses{}).Encode(edited)
		}
	})
}

func BenchmarkResponsesValidate(b *testing.B) {
	body := []byte(responsesLong())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		(Responses{}).Validate(body)
	}
}
