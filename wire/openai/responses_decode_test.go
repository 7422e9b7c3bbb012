package openai

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func responsesDecode(t testing.TB, body string) *prompt.Prompt {
	t.Helper()
	p, err := (Responses{}).Decode(body)
	if err != nil {
		t.Fatalf("Decode: %v\n%s", err, body)
	}
	return p
}

func responsesEncode(t testing.TB, p *prompt.Prompt) string {
	t.Helper()
	out, err := (Responses{}).Encode(p)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return string(out)
}

// responsesLayout shows messages one line a part.
func responsesLayout(messages []thread.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s", m.Role)
		if m.Frame != nil {
			fmt.Fprintf(&b, " %d+%d", m.Frame.Position(), m.Frame.Elements())
		}
		b.WriteString("\n")
		responsesLayoutParts(&b, "  ", m.Parts)
	}
	return b.String()
}

func responsesLayoutParts(b *strings.Builder, indent string, parts []thread.Part) {
	for _, part := range parts {
		switch p := part.(type) {
		case thread.Text:
			fmt.Fprintf(b, "%stext %q\n", indent, p.Text)
		case thread.Reasoning:
			fmt.Fprintf(b, "%sreasoning %q %q\n", indent, p.Text, p.Signature)
		case thread.Media:
			fmt.Fprintf(b, "%s%s mime=%s name=%s detail=%s data=%s url=%s file=%s\n", indent, p.Type, p.MIME, p.Name, p.Detail, p.Data, p.URL, p.FileID)
		case thread.ToolCall:
			fmt.Fprintf(b, "%scall %s %s %s %s\n", indent, p.ID, p.Name, p.Type, p.Arguments)
		case thread.ToolResult:
			fmt.Fprintf(b, "%sresult %s %s %s\n", indent, p.CallID, p.Tool, p.Outcome)
			responsesLayoutParts(b, indent+"  ", p.Content)
		case thread.Opaque:
			fmt.Fprintf(b, "%sopaque %s %q\n", indent, p.Kind, p.Text)
		}
	}
}

// responsesZoo holds every kind of item, most of them valid.
const responsesZoo = `{
  "model": "gpt-5", "instructions": "Be \"brief\".", "max_output_tokens": 900, "future": {"a": [1, 2]},
  "tools": [
    {"type":"function","name":"f","description":"does f","parameters":{"type":"object"},"strict":true},
    {"type":"namespace","name":"team","tools":[{"type":"function","name":"ask","parameters":{}}]},
    {"type":"mcp","server_label":"docs"}, {"type":"web_search"}
  ],
  "input": [
    {"role":"developer","content":"rules"},
    {"type":"message","role":"system","content":[{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]},
    {"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"},
       {"type":"input_image","image_url":"https://example.com/x.png"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,BBBB"},
       {"type":"input_file","file_id":"file-1"},{"type":"input_audio","input_audio":{"data":"CCCC","format":"wav"}},{"type":"input_smell","text":"roses"}]},
    {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"first"},{"type":"summary_text","text":"second"}],"encrypted_content":"gAAA"} ,
    {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[]},{"type":"refusal","refusal":"not that"}]},
    {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"a\":1}"},
    {"type":"function_call","id":"fc_2","call_id":"c2","name":"ask","namespace":"team","arguments":"{}"},
    {"type":"custom_tool_call","call_id":"c3","name":"patch","input":"*** Begin"},
    {"type":"local_shell_call","id":"lsh_1","call_id":"c4","action":{"type":"exec","command":["ls"]},"status":"completed"},
    {"type":"shell_call","call_id":"c5","action":{"commands":["ls"]}},
    {"type":"apply_patch_call","call_id":"c6","operation":{"type":"delete_file","path":"a"},"status":"completed"},
    {"type":"computer_call","id":"cu_1","call_id":"c7","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"},
    {"type":"tool_search_call","call_id":"c8","execution":"client","arguments":{"q":"x"}},
    {"type":"mcp_approval_request","id":"mcpr_1","server_label":"docs","name":"rm","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"done","status":"completed"},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/jpeg;base64,DDDD"}]},
    {"type":"custom_tool_call_output","call_id":"c3","output":"no","status":"incomplete"},
    {"type":"local_shell_call_output","call_id":"c4","output":"a b"},
    {"type":"shell_call_output","call_id":"c5","output":[{"stdout":"out","stderr":"err","outcome":{"type":"exit","exit_code":1}}]},
    {"type":"apply_patch_call_output","call_id":"c6","status":"failed","output":"no such file"},
    {"type":"computer_call_output","call_id":"c7","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,EEEE"}},
    {"type":"tool_search_output","call_id":"c8","tools":[{"type":"function","name":"found"}]},
    {"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false},
    {"role":"developer","content":"a reminder"},
    {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go"}},
    {"type":"code_interpreter_call","id":"ci_1","container_id":"k","code":"1+1","outputs":[{"type":"logs","logs":"2"}]},
    {"type":"mcp_call","id":"mcp_1","server_label":"docs","name":"q","arguments":"{}","output":"found it"},
    {"type":"tool_search_output","call_id":null,"tools":[{"name":"hidden"}]},
    {"type":"compaction","id":"cmp_1","encrypted_content":"zzz"},
    {"type":"item_reference","id":"msg_9"},
    {"type":"thought_bubble","content":[{"type":"text","text":"hm"}]},
    {"role":"assistant","content":""},
    {"role":"user","content":"and now?"},
    {"type":"compaction_trigger"}
  ]
}`

const responsesZooLayout = `user 2+1
  text "look"
  image mime=image/png name= detail=low data=AAAA url= file=
  image mime= name= detail= data= url=https://example.com/x.png file=
  document mime=application/pdf name=a.pdf detail= data=BBBB url= file=
  file mime= name= detail= data= url= file=file-1
  audio mime=audio/wav name= detail= data=CCCC url= file=
  opaque input_smell "roses"
assistant 3+11
  reasoning "first\nsecond" "gAAA"
  text "I look."
  text "not that"
  call c1 f  {"a":1}
  call c2 team.ask  {}
  call c3 patch custom *** Begin
  call c4 local_shell local_shell_call {"type":"exec","command":["ls"]}
  call c5 shell shell_call {"commands":["ls"]}
  call c6 apply_patch apply_patch_call {"type":"delete_file","path":"a"}
  call c7 computer computer_call {"type":"screenshot"}
  call c8 tool_search tool_search_call {"q":"x"}
  call mcpr_1 rm mcp_approval_request {}
tool 14+1
  result c1 f success
    text "done"
tool 15+1
  result c2 team.ask success
    text "see"
    image mime=image/jpeg name= detail= data=DDDD url= file=
tool 16+1
  result c3 patch failure
    text "no"
tool 17+1
  result c4 local_shell success
    text "a b"
tool 18+1
  result c5 shell success
    text "out\nerr"
tool 19+1
  result c6 apply_patch failure
    text "no such file"
tool 20+1
  result c7 computer success
    image mime=image/png name= detail= data=EEEE url= file=
tool 21+1
  result c8 tool_search success
    opaque tools "found"
tool 22+1
  result mcpr_1 rm failure
    text "approve: false"
system 23+1
  text "a reminder"
assistant 24+8
  opaque web_search_call "go"
assistant 24+8
  opaque code_interpreter_call "1+1\n2"
assistant 24+8
  opaque mcp_call "q\n{}\nfound it"
assistant 24+8
  opaque tool_search_output "hidden"
assistant 24+8
  opaque compaction ""
assistant 24+8
  opaque item_reference ""
  opaque thought_bubble "hm"
  text ""
user 32+1
  text "and now?"
system 33+1
  opaque compaction_trigger ""
`

func TestResponsesDecodeEveryItem(t *testing.T) {
	p := responsesDecode(t, responsesZoo)
	if diff := cmp.Diff(responsesZooLayout, responsesLayout(p.Messages)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if p.Model != "gpt-5" || p.MaxOutput != 900 {
		t.Errorf("model %q, max output %d", p.Model, p.MaxOutput)
	}
	var system, tools []string
	for _, s := range p.System {
		system = append(system, s.Role+": "+s.Text)
	}
	for _, tool := range p.Tools {
		tools = append(tools, tool.Name+"|"+tool.Description+"|"+tool.Schema)
	}
	if diff := cmp.Diff([]string{`instructions: Be "brief".`, "developer: rules", "system: one\ntwo"}, system); diff != "" {
		t.Errorf("system (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`f|does f|{"type":"object"}`, "team||", "docs||", "web_search||"}, tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if p.Source.System != 3 || p.Source.Tools != 4 || p.Source.Elements != 32 {
		t.Errorf("source counts %d system, %d tools, %d elements", p.Source.System, p.Source.Tools, p.Source.Elements)
	}
	// Separators inside a response belong to its frame.
	if frame := p.Messages[1].Frame.Raw(); !strings.Contains(frame, "} ,\n    {") {
		t.Errorf("the frame of the response is not the text of the body:\n%s", frame)
	}
	// The item goes with the first content part, the others carry their own.
	if raw := p.Messages[1].Parts[1].From().Raw; !strings.HasPrefix(raw, `{"type":"message","id":"msg_1"`) {
		t.Errorf("first content part carries %s", raw)
	}
	if raw := p.Messages[1].Parts[2].From().Raw; raw != `{"type":"refusal","refusal":"not that"}` {
		t.Errorf("second content part carries %s", raw)
	}
	if got := responsesEncode(t, p); got != responsesZoo {
		t.Errorf("round trip: %s", cmp.Diff(responsesZoo, got))
	}
}

func TestResponsesDecodeStringInput(t *testing.T) {
	p := responsesDecode(t, `{"model":"m","input":"say \"hi\""}`)
	if want, got := "user 0+1\n  text \"say \\\"hi\\\"\"\n", responsesLayout(p.Messages); got != want {
		t.Errorf("got %s", got)
	}
}

func TestResponsesDecodeErrorsNameThePath(t *testing.T) {
	for body, path := range map[string]string{
		`{"model":1,"input":[]}`:                "model",
		`{"instructions":["a"]}`:                "instructions",
		`{"input":7}`:                           "input",
		`{"input":[{"role":"user"},3]}`:         "input[1]",
		`{"tools":{}}`:                          "tools",
		`{"tools":[{},"x"]}`:                    "tools[1]",
		`{"input":[}`:                           "body",
		`[]`:                                    "body",
		`{"input":` + strings.Repeat("[", 5000): "body",
	} {
		_, err := (Responses{}).Decode(body)
		if !errors.Is(err, wire.ErrFormat) || !strings.HasPrefix(err.Error(), "openai responses: "+path+": ") {
			t.Errorf("%.40s: got %v, want an error at %s", body, err, path)
		}
	}
	if _, _, err := DecodeItems(`{"input":[]}`); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("DecodeItems of an object: %v", err)
	}
	if _, _, err := DecodeItems(`[1]`); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("DecodeItems of a number: %v", err)
	}
}

// Codex keeps the items of a session in its transcript, one a line.
func TestResponsesDecodeItemsOfRollouts(t *testing.T) {
	for file, want := range map[string]struct{ messages, calls, results int }{
		"own-runs/codex-rollout.jsonl.gz":            {83, 40, 40},
		"agent-sessions-schema/codex-small.jsonl.gz": {0, 6, 6},
	} {
		var items []string
		for _, line := range responsesLines(t, filepath.Join(corpus.Dir(t, "transcripts"), file)) {
			if gjson.Get(line, "type").Str == "response_item" {
				items = append(items, gjson.Get(line, "payload").Raw)
			}
		}
		messages, _, err := DecodeItems("[" + strings.Join(items, ",\n") + "]")
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		calls, results := 0, 0
		for i := range messages {
			calls += len(messages[i].Calls())
			if r, ok := messages[i].Result(); ok {
				results++
				if r.Text() == "" && len(r.Content) == 0 {
					t.Errorf("%s: an empty result: %s", file, r.Raw)
				}
			}
		}
		if want.messages > 0 && len(messages) != want.messages || calls != want.calls || results != want.results {
			t.Errorf("%s: %d messages, %d calls, %d results; want %+v", file, len(messages), calls, results, want)
		}
	}
}

func responsesLines(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	scanner := bufio.NewScanner(unzip)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
