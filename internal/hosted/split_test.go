package hosted_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// answers are answers of the model, each between two messages of the user, and what their pieces hold.
var answers = []struct {
	name   string
	codec  wire.Codec
	blocks []string
	want   string // a letter for each block; / between two pieces
}{
	{"searches", anthropic.Codec{}, []string{
		`{"type":"text","text":"I look."}`,
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`,
		`{"type":"server_tool_use","id":"s2","name":"web_search","input":{"query":"b"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}`,
		`{"type":"text","text":"Found."}`,
	}, "abc/de/f"},
	{"a compaction of the provider's", anthropic.Codec{}, []string{
		`{"type":"compaction","content":"So far."}`,
		`{"type":"server_tool_use","id":"s1","name":"tool_search_tool_bm25","input":{"query":"a"}}`,
		`{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"a"}]}}`,
		`{"type":"text","text":"Found."}`,
	}, "a/bc/d"},
	{"one unit", anthropic.Codec{}, []string{
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`,
		`{"type":"text","text":"Found."}`,
	}, "abc"},
	{"at once", anthropic.Codec{}, []string{
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"}}`,
		`{"type":"server_tool_use","id":"s2","name":"web_search","input":{"query":"b"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`,
		`{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}`,
		`{"type":"text","text":"Found."}`,
	}, "abcde"},
	{"a program with calls in it", anthropic.Codec{}, []string{
		`{"type":"server_tool_use","id":"p","name":"code_execution","input":{"code":"f()"}}`,
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"},"caller":{"type":"code_execution_20260120","tool_id":"p"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[],"caller":{"type":"code_execution_20260120","tool_id":"p"}}`,
		`{"type":"code_execution_tool_result","tool_use_id":"p","content":{"type":"code_execution_result","stdout":"3","stderr":"","return_code":0}}`,
		`{"type":"mcp_tool_use","id":"m","name":"find","server_name":"notes","input":{}}`,
		`{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[]}`,
	}, "abcd/ef"},
	{"an open one", anthropic.Codec{}, []string{
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`,
		`{"type":"server_tool_use","id":"s2","name":"web_search","input":{"query":"b"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}`,
		`{"type":"server_tool_use","id":"s3","name":"web_search","input":{"query":"c"}}`,
	}, "ab/cd/e"},
	{"behind a call of the client", anthropic.Codec{}, []string{
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"a"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`,
		`{"type":"server_tool_use","id":"s2","name":"web_search","input":{"query":"b"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}`,
		`{"type":"tool_use","id":"t","name":"read","input":{}}`,
		`{"type":"server_tool_use","id":"s3","name":"web_search","input":{"query":"c"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s3","content":[]}`,
	}, "ab/cd/efg"},
	{"items and their reasoning", openai.Responses{}, []string{
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a"}}`,
		`{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"search","query":"b"}}`,
		`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e"}`,
		`{"type":"code_interpreter_call","id":"ci_1","container_id":"c","status":"completed","code":"1","outputs":[]}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Found."}]}`,
	}, "abc/def"},
	{"a tool that is loaded", anthropic.Codec{}, []string{
		`{"type":"text","text":"I look for a tool."}`,
		`{"type":"server_tool_use","id":"s1","name":"tool_search_tool_regex","input":{"pattern":"weather"}}`,
		`{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"weather"}]}}`,
		`{"type":"text","text":"There."}`,
	}, "abc/d"},
	{"without reasoning", openai.Responses{}, []string{
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a"}}`,
		`{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"q","arguments":"{}","output":"o"}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Found."}]}`,
	}, "a/b/c"},
	{"code and search", gemini.Codec{}, []string{
		`{"executableCode":{"id":"e1","language":"PYTHON","code":"f()"}}`,
		`{"codeExecutionResult":{"id":"e1","outcome":"OUTCOME_OK","output":"1"}}`,
		`{"toolCall":{"id":"t1","toolType":"GOOGLE_SEARCH_WEB","args":{}}}`,
		`{"toolResponse":{"id":"t1","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`,
		`{"text":"Found."}`,
	}, "ab/cd/e"},
}

func request(api string, blocks []string) string {
	all := strings.Join(blocks, ", ")
	switch api {
	case wire.Anthropic:
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Go."},{"role":"assistant","content":[` + all + `]},{"role":"user","content":"On."}]}`
	case wire.Responses:
		return `{"model":"m","input":[{"role":"user","content":"Go."},` + all + `,{"role":"user","content":"On."}]}`
	}
	return `{"contents":[{"role":"user","parts":[{"text":"Go."}]},{"role":"model","parts":[` + all + `]},{"role":"user","parts":[{"text":"On."}]}]}`
}

func TestSplit(t *testing.T) {
	for _, a := range answers {
		t.Run(a.codec.API()+"/"+a.name, func(t *testing.T) {
			body := request(a.codec.API(), a.blocks)
			p, err := a.codec.Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			answer := p.Messages[1 : len(p.Messages)-1]
			var got []string
			n := 0
			for i := range answer {
				got = append(got, "abcdefghij"[n:n+len(answer[i].Parts)])
				n += len(answer[i].Parts)
			}
			if s := strings.Join(got, "/"); s != a.want {
				t.Fatalf("the pieces are %s, want %s", s, a.want)
			}
			if out, err := a.codec.Encode(p); err != nil || string(out) != body {
				t.Errorf("untouched, it is written as\n%s\nnot as\n%s (%v)", out, body, err)
			}
			for hidden := range answer {
				checkWithout(t, a.codec, p, 1+hidden, a.blocks)
			}
		})
	}
}

// checkWithout writes a prompt without one of its messages: that is valid, and all other blocks are there
// as they were, in order.
func checkWithout(t *testing.T, codec wire.Codec, p *prompt.Prompt, hidden int, blocks []string) {
	t.Helper()
	less := *p
	less.Messages = append(append([]thread.Message{}, p.Messages[:hidden]...), p.Messages[hidden+1:]...)
	out, err := codec.Encode(&less)
	if err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{}
	for _, part := range p.Messages[hidden].Parts {
		gone[part.From().Raw] = true
	}
	rest := string(out)
	for _, block := range blocks {
		if gone[block] {
			if strings.Contains(string(out), block) {
				t.Errorf("without message %d, %s is in\n%s", hidden, block, out)
			}
			continue
		}
		at := strings.Index(rest, block)
		if at < 0 {
			t.Errorf("without message %d, %s is not in its place in\n%s", hidden, block, out)
			continue
		}
		rest = rest[at+len(block):]
	}
	whole := codec.Validate([]byte(request(codec.API(), blocks)))
	for _, problem := range codec.Validate(out) {
		if !problem.Advice && len(whole) == 0 {
			t.Errorf("without message %d: %v in\n%s", hidden, problem, out)
		}
	}
}

// What was stored before answers were split is found again.
func TestJoin(t *testing.T) {
	for _, a := range answers {
		body := request(a.codec.API(), a.blocks)
		p, err := a.codec.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		joined := hosted.Join(p.Messages)
		if len(joined) != 3 || len(joined[1].Parts) != len(a.blocks) {
			t.Fatalf("%s: %d messages", a.name, len(joined))
		}
		if diff := cmp.Diff(p.Messages, hosted.Split(joined)); diff != "" {
			t.Errorf("%s: split again (-want +got):\n%s", a.name, diff)
		}
		p.Messages = joined
		if out, err := a.codec.Encode(p); err != nil || string(out) != body {
			t.Errorf("%s: joined, it is written as\n%s\nnot as\n%s (%v)", a.name, out, body, err)
		}
	}
}
