package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/transcript"
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
