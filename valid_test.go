package palimpsest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// dropping drops everything up to a position, but for what must be kept.
type dropping struct {
	policy.Policy
	to      int
	heeds   bool
	inTurn  bool // what begins inside a turn is broken
	planned *int
}

func (d dropping) Name() string { return "dropping" }

func (d dropping) Due(*policy.Situation) (bool, string) { return true, "always" }

func (d dropping) Plan(_ context.Context, s *policy.Situation) (*policy.Fitted, error) {
	*d.planned++
	var ids []thread.ID
	for i := range d.to {
		if !d.heeds || !slices.Contains(s.Keep, i) {
			ids = append(ids, s.Thread.At(i).ID)
		}
	}
	span, err := thread.NewSpan(s.Thread, ids...)
	if err != nil {
		return nil, err
	}
	p := s.Draft(d.Name())
	p.Drops = []plan.Removal{{Span: span}}
	f, err := s.Render(p)
	first := s.Thread.At(d.to - len(s.Keep))
	if breaks := first.Role == thread.Assistant || d.inTurn && first.Role == thread.Tool; err == nil && (!d.heeds || breaks) {
		broken := *f.Prompt // as a renderer that repairs nothing would leave it
		broken.Messages = append([]thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "nobodys", Content: []thread.Part{thread.Text{Text: "x"}}}}}}, f.Prompt.Messages...)
		f.Prompt = &broken
	}
	return f, err
}

// TestCutMovesToValid: a plan whose request the API would refuse is cut at the nearest place
// before; where none of eight is valid, the step goes out without it. G8
func TestCutMovesToValid(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		planned := 0
		c, err := palimpsest.New(palimpsest.Config{Policy: dropping{to: 13, heeds: heeds, planned: &planned}})
		if err != nil {
			t.Fatal(err)
		}
		var messages []thread.Message
		for n := range 10 {
			messages = append(messages, plain(thread.User, fmt.Sprintf("Question %d.", n)), plain(thread.Assistant, fmt.Sprintf("Answer %d.", n)))
		}
		messages = append(messages, plain(thread.User, "The last question."))
		p, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{
			Base: &prompt.Prompt{Model: "claude-sonnet-4-5", MaxOutput: 100}, Profile: render.For(wire.Anthropic), Messages: messages,
		})
		if err != nil {
			t.Fatal(err)
		}
		body, err := anthropic.Codec{}.Encode(p.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		if problems := (anthropic.Codec{}).Validate(body); len(problems) > 0 {
			t.Errorf("heeds %t: %v", heeds, problems)
		}
		if heeds && (len(p.Messages) != 9 || planned != 2 || p.Failed != nil) {
			t.Errorf("%d messages after %d plans, %v", len(p.Messages), planned, p.Failed)
		}
		if !heeds && (len(p.Messages) != 21 || planned != 9 || p.Failed == nil || !strings.Contains(p.Failed.Error(), "would refuse")) {
			t.Errorf("%d messages after %d plans, %v", len(p.Messages), planned, p.Failed)
		}
	}
}

// TestCutReachesTheTurn: where no place inside a turn is valid, however long it is, the cut moves before it; in a
// step as in a single compaction. Where no place is, a compaction leaves the request as it came. G8
func TestCutReachesTheTurn(t *testing.T) {
	messages := []thread.Message{plain(thread.User, "Question 0."), plain(thread.Assistant, "Answer 0."), plain(thread.User, "Question 1.")}
	for n := range 40 {
		id := fmt.Sprintf("call_%d", n)
		messages = append(messages,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "shot", Arguments: `{}`}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "shot", Content: []thread.Part{thread.Text{Text: strings.Repeat("Row. ", 50)}}}}})
	}
	messages = append(messages, plain(thread.Assistant, "Answer 1."), plain(thread.User, "The last question."))
	for _, heeds := range []bool{true, false} {
		planned := 0
		c, err := palimpsest.New(palimpsest.Config{Policy: dropping{to: 73, heeds: heeds, inTurn: true, planned: &planned}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Base: picturedBase, Profile: render.For(wire.Anthropic), Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		if left := len(p.Messages); heeds && (left != 83 || planned != 6) || !heeds && left != 85 {
			t.Errorf("heeds %t: %d messages after %d plans, %v", heeds, left, planned, p.Failed)
		}
		log, err := thread.New("t").Append(messages...)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Base: picturedBase, Profile: render.For(wire.Anthropic), Budget: 900})
		switch {
		case res == nil:
			t.Errorf("heeds %t: %v", heeds, err)
		case heeds && len(res.Prompt.Messages) != 83:
			t.Errorf("%d messages, %v", len(res.Prompt.Messages), err)
		case !heeds && (len(res.Prompt.Messages) != 85 || !errors.Is(err, policy.ErrOverBudget) || !strings.Contains(err.Error(), "would refuse")):
			t.Errorf("nothing is valid: %d messages, %v", len(res.Prompt.Messages), err)
		}
	}
}

// pngOf is the data of a picture with such a side, of about so many bytes.
func pngOf(side, bytes int) string {
	head := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), 0, 0, byte(side>>8), byte(side), 0, 0, byte(side>>8), byte(side))
	return base64.StdEncoding.EncodeToString(append(head, make([]byte, bytes*3/4)...))
}

// pictured is a conversation with n pictures, in results or in the user's messages.
func pictured(n int, data string, ofUser bool) []thread.Message {
	messages := []thread.Message{plain(thread.User, "Order the bolts.")}
	for i := range n {
		id, picture := fmt.Sprintf("call_%d", i), thread.Media{Type: thread.Image, MIME: "image/png", Data: data}
		call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "shot", Arguments: `{}`}}}
		result := thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "shot", Content: []thread.Part{thread.Text{Text: fmt.Sprintf("Seen %d.", i)}, picture}}}}
		if ofUser {
			call, result = plain(thread.Assistant, "Go on."), thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("Seen %d.", i)}, picture}}
		}
		messages = append(messages, call, result)
	}
	return messages
}

// pictures are those of a prompt, and its text with the results.
func pictures(p *prompt.Prompt) (n int, text string) {
	var b strings.Builder
	for i := range p.Messages {
		if hasMedia(&p.Messages[i]) {
			n++
		}
		r, _ := p.Messages[i].Result()
		b.WriteString(p.Messages[i].Text() + r.Text() + "\n")
	}
	return n, b.String()
}

func hasMedia(m *thread.Message) bool {
	return hasPicture(m) || slices.ContainsFunc(m.Parts, func(p thread.Part) bool { _, is := p.(thread.Media); return is })
}

var picturedBase = &prompt.Prompt{Model: "claude-sonnet-4-5", MaxOutput: 100, Tools: []prompt.Tool{{Name: "shot", Schema: `{"type":"object"}`}}}

// TestSizesAreBudgets: a request with more pictures, pixels or bytes than the API takes loses old pictures,
// in place of which a text says so, and nothing else; in a step as in a single compaction, however
// few tokens it has. G5
func TestSizesAreBudgets(t *testing.T) {
	for name, given := range map[string]struct {
		n      int
		data   string
		ofUser bool
		left   int
		note   string
	}{
		"number":           {120, pngOf(60, 0), false, 50, "[image image/png left out; call shot again to see it]"},
		"number, the user": {120, pngOf(60, 0), true, 50, "[image image/png left out; ask for it if it is needed]"},
		"34 MB":            {40, pngOf(60, 34<<20/40), false, 28, "call shot again"},
		"pixels":           {30, pngOf(3000, 0), false, 10, "call shot again"},
		"too wide":         {3, pngOf(9000, 0), false, 1, "call shot again"}, // the last was not seen yet
		"fits":             {20, pngOf(3000, 0), false, 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{})
			if err != nil {
				t.Fatal(err)
			}
			messages := pictured(given.n, given.data, given.ofUser)
			log, err := thread.New("t").Append(messages...)
			if err != nil {
				t.Fatal(err)
			}
			profile := render.For(wire.Anthropic)
			res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Base: picturedBase, Budget: 1_000_000, Profile: profile})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("t")
			step := palimpsest.Step{Base: picturedBase, Profile: profile, Window: 1_000_000, Messages: messages}
			made, err := s.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			for way, p := range map[string]*prompt.Prompt{"Compact": res.Prompt, "PrepareStep": made.Prompt} {
				left, text := pictures(p)
				if left != given.left || len(p.Messages) != log.Len() || !hasMedia(&p.Messages[log.Len()-1]) || given.note != "" && strings.Count(text, given.note) != given.n-left || strings.Count(text, "Seen ") != given.n {
					t.Errorf("%s: %d pictures left, %d messages of %d: %.300s", way, left, len(p.Messages), log.Len(), text)
				}
				body, err := anthropic.Codec{}.Encode(p)
				problems := slices.DeleteFunc(anthropic.Codec{}.Validate(body), func(p wire.Problem) bool { return given.left < 20 && p.Rule == "pixels" && name == "too wide" })
				if err != nil || len(problems) > 0 {
					t.Errorf("%s: %v, %v", way, err, problems)
				}
			}
			step.Messages = []thread.Message{plain(thread.Assistant, "Well."), plain(thread.User, "Go on.")}
			if next, err := s.PrepareStep(t.Context(), step); err != nil || next.Compacted != nil && name != "too wide" {
				t.Errorf("the next step compacted again: %v", err)
			}
		})
	}
}

// TestPicturesByModel: how many pictures a request may hold is what the catalogue's window says of a model, and for
// a model that takes more nothing is taken out. G5
func TestPicturesByModel(t *testing.T) {
	for _, m := range token.Models().All() {
		if m.Provider != "anthropic" {
			continue
		}
		want := 100
		if m.Window > 200_000 {
			want = 600
		}
		for _, name := range append([]string{m.Name, "anthropic/" + m.Name}, m.Aliases...) {
			if got := wire.LimitsOf(wire.Anthropic, name).Pictures; got != want {
				t.Errorf("%s takes %d pictures, with its window of %d tokens %d", name, got, m.Window, want)
			}
		}
	}
	for model, left := range map[string]int{"claude-opus-4-5": 50, "claude-opus-5": 120, "": 50} {
		c, err := palimpsest.New(palimpsest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		base := *picturedBase
		base.Model = model
		made, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Base: &base, Profile: render.For(wire.Anthropic), Window: 1_000_000, Messages: pictured(120, pngOf(60, 0), false)})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := pictures(made.Prompt); n != left {
			t.Errorf("%q: %d pictures are left, want %d", model, n, left)
		}
	}
}

// TestRefusalsByKind: what cures a refusal is done, and nothing else; for one of the answer's size there
// is nothing. G5
func TestRefusalsByKind(t *testing.T) {
	for kind, left := range map[llm.Kind]int{llm.ErrPictures: 10, llm.ErrBytes: 14, llm.ErrOutput: -1} {
		c, err := palimpsest.New(palimpsest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Session("t")
		made, err := s.PrepareStep(t.Context(), palimpsest.Step{Base: picturedBase, Profile: render.For(wire.Chat), Window: 1_000_000, Messages: pictured(20, pngOf(60, 100<<10), false)})
		if err != nil || made.Compacted != nil {
			t.Fatalf("%v, %v", made, err)
		}
		next, err := s.Overflowed(t.Context(), made, &llm.APIError{Kind: kind})
		if left < 0 {
			if plans, _ := s.Plans(t.Context()); !errors.Is(err, palimpsest.ErrNoRoom) || len(plans) > 0 {
				t.Errorf("%s: %v, %d plans", kind, err, len(plans))
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if n, _ := pictures(next.Prompt); n != left || len(next.Messages) != 41 {
			t.Errorf("%s: %d pictures in %d messages", kind, n, len(next.Messages))
		}
	}
}

// TestCompactedIsValid: whatever the conversation is, a compaction breaks no rule of the API that the
// whole of it does not break. G8
func TestCompactedIsValid(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Counter: o200k(t)})
	if err != nil {
		t.Fatal(err)
	}
	rules := func(api string, p *prompt.Prompt) (broken []string) {
		codec := apicodec.For(api)
		body, err := codec.Encode(p)
		if err != nil {
			return []string{"encode"}
		}
		for _, b := range codec.Validate(body) {
			if !b.Advice {
				broken = append(broken, b.Rule)
			}
		}
		return broken
	}
	compacted := 0
	property.Check(t, func(t *rapid.T) {
		drawn := threadgen.Thread().Draw(t, "thread")
		log, err := thread.New("t").Append(append(pictured(rapid.IntRange(0, 30).Draw(t, "pictures"), pngOf(3000, 0), rapid.Bool().Draw(t, "of the user")), drawn.Messages()...)...)
		if err != nil {
			t.Skip(err) // drawn ids that stand twice: another thread is drawn
		}
		for _, api := range []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini} {
			q := palimpsest.Request{Thread: log, Base: picturedBase, Profile: render.For(api)}
			whole, err := c.Render(nil, q)
			if err != nil {
				t.Fatal(err)
			}
			q.Budget = whole.Before * rapid.IntRange(30, 110).Draw(t, "percent") / 100
			res, err := c.Compact(t.Context(), q)
			if err != nil && !errors.Is(err, policy.ErrOverBudget) && !errors.Is(err, policy.ErrNothing) {
				t.Fatal(err)
			}
			if err != nil {
				continue
			}
			own := rules(api, whole.Prompt)
			for _, rule := range rules(api, res.Prompt) {
				if !slices.Contains(own, rule) {
					t.Fatalf("%s: %s is broken, and was not before", api, rule)
				}
			}
			if compacted++; slices.Contains(own, "pixels") && slices.Contains(rules(api, res.Prompt), "pixels") {
				t.Fatalf("%s: too many large pictures are left", api)
			}
		}
	})
	if compacted == 0 {
		t.Error("nothing was compacted")
	}
}

// programs is a request in which programs at the provider call a tool of the client, each several times, with a
// small and a last, open one. sizes are the bytes of the results, by program.
func programs(api string, sizes [][]int) string {
	var b strings.Builder
	items := func(format string, args ...any) { fmt.Fprintf(&b, ","+format, args...) }
	row := func(p, r, n int) string { return fmt.Sprintf("row %d.%d %s", p, r, strings.Repeat("x", n)) }
	for p, results := range sizes {
		open := p == len(sizes)-1
		if api == wire.Anthropic {
			items(`{"role":"user","content":"Count shelf %d."}`, p)
			code := fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"code_execution","input":{"code":"read()"}},`, p)
			for r, n := range results {
				items(`{"role":"assistant","content":[%s{"type":"tool_use","id":"toolu_%d_%d","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_%d"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d_%d","content":%q}]}`, code, p, r, p, p, r, row(p, r, n))
				code = ""
			}
			if !open {
				items(`{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_%d","content":{"type":"code_execution_result","stdout":"%d","stderr":"","return_code":0,"content":[]}},{"type":"text","text":"Counted %d."}]}`, p, p, p)
			}
			continue
		}
		items(`{"role":"user","content":"Count shelf %d."},{"type":"program","id":"prog_%d","call_id":"call_%d","code":"read()","fingerprint":"f"}`, p, p, p)
		for r, n := range results {
			items(`{"type":"function_call","call_id":"call_%d_%d","name":"read","arguments":"{}","caller":{"type":"program","caller_id":"call_%d"}},{"type":"function_call_output","call_id":"call_%d_%d","output":%q,"caller":{"type":"program","caller_id":"call_%d"}}`, p, r, p, p, r, row(p, r, n), p)
		}
		if !open {
			items(`{"type":"program_output","id":"out_%d","call_id":"call_%d","result":"%d","status":"completed"},{"role":"assistant","content":"Counted %d."}`, p, p, p, p)
		}
	}
	if api == wire.Anthropic {
		return `{"model":"claude-opus-5","max_tokens":9,"tools":[{"name":"read","input_schema":{"type":"object"}},{"type":"code_execution_20260120","name":"code_execution"}],"messages":[` + b.String()[1:] + `]}`
	}
	return `{"model":"gpt-5.6","tools":[{"type":"function","name":"read","parameters":{"type":"object"}},{"type":"programmatic_tool_calling"}],"input":[` + b.String()[1:] + `]}`
}

// TestProgramResultsByBytes: of a request that is too large in bytes the results for programs that have ended go,
// all of a program or none; those of one that runs stay, and nothing else changes. G2, G5
func TestProgramResultsByBytes(t *testing.T) {
	property.Few(t, 30, func(t *rapid.T) {
		api := rapid.SampledFrom([]string{wire.Anthropic, wire.Responses}).Draw(t, "api")
		sizes := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]int{10, 5_000, 40_000, 90_000, 200_000}), 1, 4), 1, 5).Draw(t, "sizes")
		sizes = append(append([][]int{{70_000, 70_000}}, sizes...), []int{10, 200})
		body := programs(api, sizes)
		codec := apicodec.For(api)
		p, err := codec.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		c, err := palimpsest.New(palimpsest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		base := *p
		base.Messages = nil
		s := c.Session("t")
		made, err := s.PrepareStep(context.Background(), palimpsest.Step{Base: &base, Profile: render.For(api), Window: 10_000_000, Messages: p.Messages})
		if err != nil || made.Compacted != nil {
			t.Fatalf("before the refusal: %v, %v", made, err)
		}
		made, err = s.Overflowed(context.Background(), made, llm.ErrBytes)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := codec.Encode(made.Prompt)
		if err != nil || len(sent) > len(body)*8/10 {
			t.Fatalf("%d of %d bytes are left, %v", len(sent), len(body), err)
		}
		for _, broken := range codec.Validate(sent) {
			if !broken.Advice {
				t.Fatalf("%s would refuse: %v", api, broken)
			}
		}
		for program, results := range sizes {
			left := 0
			for r, n := range results {
				if strings.Contains(string(sent), fmt.Sprintf("row %d.%d %s\"", program, r, strings.Repeat("x", n))) {
					left++
				}
			}
			if left != len(results) && (left != 0 || program == len(sizes)-1) {
				t.Fatalf("%s: of program %d, %d of %d results are left", api, program, left, len(results))
			}
			if asked := fmt.Sprintf("Count shelf %d.", program); !strings.Contains(string(sent), asked) || program < len(sizes)-1 && !strings.Contains(string(sent), fmt.Sprintf("Counted %d.", program)) {
				t.Fatalf("%s: the words around program %d are gone", api, program)
			}
		}
	})
}

// neverDue is a policy that compacts only what was refused.
type neverDue struct{ policy.Policy }

func (neverDue) Due(*policy.Situation) (bool, string) { return false, "" }

// hostedAnswers are requests of ten answers, in each of which what ran at the provider left 72,000 bytes, by the
// item that holds them.
func hostedAnswers() map[string][2]string {
	messages, input, contents := `{"model":"claude-opus-5","max_tokens":9,"messages":[%s]}`, `{"model":"gpt-5.6","input":[%s]}`, `{"contents":[%s]}`
	all := map[string][2]string{}
	for name, row := range map[string]struct{ api, request, asked, answer string }{
		"web_fetch":                  {wire.Anthropic, messages, `{"role":"user","content":"Ask N."}`, `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_N","name":"web_fetch","input":{"url":"https://a.example/N"}},{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_N","content":{"type":"web_fetch_result","url":"https://a.example/N","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"LARGE"}}}},{"type":"text","text":"Told N."}]}`},
		"mcp_tool_use, thought over": {wire.Anthropic, messages, `{"role":"user","content":"Ask N."}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm N.","signature":"c2ln"},{"type":"mcp_tool_use","id":"mcptoolu_N","name":"find","server_name":"notes","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_N","is_error":false,"content":[{"type":"text","text":"LARGE"}]},{"type":"mcp_tool_use","id":"mcptoolu_bN","name":"find","server_name":"notes","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_bN","is_error":false,"content":[{"type":"text","text":"small"}]},{"type":"text","text":"Told N."}]}`},
		"mcp_call":                   {wire.Responses, input, `{"role":"user","content":"Ask N."}`, `{"type":"mcp_call","id":"mcp_N","server_label":"notes","name":"find","arguments":"{}","output":"LARGE"},{"type":"message","role":"assistant","id":"msg_N","status":"completed","content":[{"type":"output_text","text":"Told N.","annotations":[]}]}`},
		"image_generation":           {wire.Responses, input, `{"role":"user","content":"Ask N."}`, `{"type":"image_generation_call","id":"ig_N","status":"completed","result":"LARGE"},{"type":"message","role":"assistant","id":"msg_N","status":"completed","content":[{"type":"output_text","text":"Told N.","annotations":[]}]}`},
		"code_interpreter":           {wire.Responses, input, `{"role":"user","content":"Ask N."}`, `{"type":"code_interpreter_call","id":"ci_N","container_id":"c","status":"completed","code":"f()","outputs":[{"type":"logs","logs":"LARGE"}]},{"type":"message","role":"assistant","id":"msg_N","status":"completed","content":[{"type":"output_text","text":"Told N.","annotations":[]}]}`},
		"program_output":             {wire.Responses, input, `{"role":"user","content":"Ask N."}`, `{"type":"program","id":"prog_N","call_id":"call_N","code":"f()","fingerprint":"f"},{"type":"program_output","id":"out_N","call_id":"call_N","result":"LARGE","status":"completed"},{"type":"message","role":"assistant","id":"msg_N","status":"completed","content":[{"type":"output_text","text":"Told N.","annotations":[]}]}`},
		"arguments":                  {wire.Responses, input, `{"role":"user","content":"Ask N."}`, `{"type":"function_call","id":"fc_N","call_id":"call_N","name":"write","arguments":"{\"text\":\"LARGE\"}"},{"type":"function_call_output","call_id":"call_N","output":"ok"},{"type":"message","role":"assistant","id":"msg_N","status":"completed","content":[{"type":"output_text","text":"Told N.","annotations":[]}]}`},
		"toolResponse":               {wire.Gemini, contents, `{"role":"user","parts":[{"text":"Ask N."}]}`, `{"role":"model","parts":[{"toolCall":{"id":"cN","toolType":"GOOGLE_SEARCH_WEB","args":{}},"thoughtSignature":"c2ln"},{"toolResponse":{"id":"cN","toolType":"GOOGLE_SEARCH_WEB","response":{"text":"LARGE"}}},{"text":"Told N."}]}`},
		"picture of the model":       {wire.Gemini, contents, `{"role":"user","parts":[{"text":"Ask N."}]}`, `{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"LARGE"}},{"text":"Told N."}]}`},
	} {
		var items []string
		for n := range 10 {
			items = append(items, strings.NewReplacer("N", fmt.Sprint(n), "LARGE", strings.Repeat("abcd", 18_000)).Replace(row.asked+","+row.answer))
		}
		all[name] = [2]string{row.api, fmt.Sprintf(row.request, strings.Join(append(items, strings.ReplaceAll(row.asked, "N", "last")), ","))}
	}
	return all
}

// TestHostedResultsByBytes: of a request that is too large in bytes old answers whose bytes are in what ran at the
// provider become texts, and only as many as must. G5
func TestHostedResultsByBytes(t *testing.T) {
	for name, given := range hostedAnswers() {
		t.Run(name, func(t *testing.T) {
			codec := apicodec.For(given[0])
			p, err := codec.Decode(given[1])
			if err != nil {
				t.Fatal(err)
			}
			c, err := palimpsest.New(palimpsest.Config{Policy: neverDue{policy.Auto{}}})
			if err != nil {
				t.Fatal(err)
			}
			base := *p
			base.Messages = nil
			s := c.Session("t")
			made, err := s.PrepareStep(t.Context(), palimpsest.Step{Base: &base, Profile: render.For(given[0]), Window: 10_000_000, Messages: p.Messages})
			if err != nil || made.Compacted != nil {
				t.Fatalf("before the refusal: %v, %v", made, err)
			}
			made, err = s.Overflowed(t.Context(), made, llm.ErrBytes)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := codec.Encode(made.Prompt)
			if err != nil || len(sent) > len(given[1])*77/100 || len(sent) < len(given[1])*60/100 {
				t.Fatalf("%d of %d bytes are left, %v", len(sent), len(given[1]), err)
			}
			for _, broken := range codec.Validate(sent) {
				if !broken.Advice {
					t.Errorf("%s would refuse: %v", given[0], broken)
				}
			}
			for _, want := range []string{"Ask 0.", "Told 0.", "Told 7.", "Told 9.", "Ask last."} {
				if !strings.Contains(string(sent), want) {
					t.Errorf("no %q in what is sent", want)
				}
			}
		})
	}
}
