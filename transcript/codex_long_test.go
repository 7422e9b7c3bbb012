package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestLongRollout: a rollout that is decoded in pieces says what a short one says, also of an output that
// comes after the user has spoken, of a compaction and of developers' messages.
func TestLongRollout(t *testing.T) {
	read := func(pad int) (all []string) {
		text := strings.Repeat("x", pad)
		var b strings.Builder
		line := func(kind, payload string) {
			fmt.Fprintf(&b, `{"timestamp":"2026-11-01T00:00:00Z","type":%q,"payload":%s}`+"\n", kind, payload)
		}
		line("session_meta", `{"id":"s","cwd":"/w"}`)
		line("response_item", `{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}`)
		for n := range 6 {
			line("response_item", fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Task %d"}]}`, n))
			if n > 0 {
				line("response_item", fmt.Sprintf(`{"type":"function_call_output","call_id":"late%d","output":"exec command rejected by user"}`, n-1))
			}
			line("response_item", `{"type":"reasoning","summary":[],"encrypted_content":"`+text+`"}`)
			line("response_item", fmt.Sprintf(`{"type":"function_call","name":"shell","arguments":"{}","call_id":"c%d"}`, n))
			line("response_item", fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":"%s"}`, n, text))
			line("response_item", `{"type":"message","role":"developer","content":[{"type":"input_text","text":"Go on."}]}`)
			line("response_item", fmt.Sprintf(`{"type":"function_call","name":"shell","arguments":"{}","call_id":"late%d"}`, n))
			if n == 3 {
				line("compacted", `{"message":"What happened."}`)
			}
		}
		f, err := transcript.Read(strings.NewReader(b.String()), nil)
		if err != nil {
			t.Fatal(err)
		}
		one := f.Transcripts[0]
		for _, m := range one.Thread.All() {
			row := fmt.Sprint(m.Role, m.Kind, m.Turn, len(m.Parts), len(m.Calls()), m.Time)
			if r, ok := m.Result(); ok {
				row += fmt.Sprint(r.CallID, r.Tool, r.Outcome, r.Denied)
			}
			all = append(all, row)
		}
		for _, c := range one.Compactions {
			all = append(all, fmt.Sprint(c.At, c.Summary != "", f.Report.Warnings, one.System))
		}
		return all
	}
	if diff := cmp.Diff(read(1), read(400_000)); diff != "" {
		t.Error(diff)
	}
}

// TestLongOutputs: a long output stands in the frame as it is in the file, however its text is written, without what is
// only the client's.
func TestLongOutputs(t *testing.T) {
	long := strings.Repeat("one \"line\"\tand another\u001b[0m\n", 60)
	quoted := rawjson.Quote(long)
	for name, c := range map[string]struct{ payload, want string }{
		"alone":             {`{"type":"function_call_output","id":"fco_1","call_id":"c","output":` + quoted + `}`, ""},
		"one word":          {`{"type":"function_call_output","call_id":"c","output":"` + strings.Repeat("a", 2000) + `","status":"completed"}`, ""},
		"with the client's": {`{"metadata":{"output":"x"},"type":"function_call_output","call_id":"c","output":` + quoted + `,"internal_chat_message_metadata_passthrough":{"turn_id":"t"},"status":"completed"}`, `{"type":"function_call_output","call_id":"c","output":` + quoted + `,"status":"completed"}`},
		"other escapes":     {`{"type":"function_call_output","call_id":"c","output":` + strings.ReplaceAll(quoted, "line", `l\u0069ne`) + `}`, ""},
		"twice":             {`{"type":"function_call_output","call_id":"c","output":` + quoted + `,"output":"last"}`, ""},
		"twice, escaped":    {`{"type":"function_call_output","call_id":"c","output":` + quoted + `,"\u006futput":"last"}`, ""},
		"parts":             {`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":` + quoted + `}]}`, ""},
		"of a custom tool":  {`{"type":"custom_tool_call_output","call_id":"c","output":` + quoted + `}`, ""},
	} {
		if c.want == "" {
			c.want = c.payload
		}
		lines := `{"type":"session_meta","payload":{"id":"s"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."}]}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}}
{"type":"response_item","payload":` + c.payload + `}`
		f, err := transcript.Read(strings.NewReader(lines), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		log := f.Transcripts[0].Thread
		m := log.At(log.Len() - 1)
		if got, want := m.Frame.Raw(), c.want; got != want {
			t.Errorf("%s: the frame is\n%s\nwant\n%s", name, got, want)
		}
		whole, _, err := openai.DecodeItems("[" + c.want + "]")
		if err != nil {
			t.Fatal(name, err)
		}
		r, _ := m.Result()
		if want, _ := whole[0].Result(); r.Text() != want.Text() || len(r.Text()) == 0 {
			t.Errorf("%s: the text is %q, want %q", name, r.Text(), want.Text())
		}
		if id := thread.ChainID(log.At(log.Len()-2).ID, m); id != m.ID {
			t.Errorf("%s: the id is %s, want %s", name, m.ID, id)
		}
	}
}
