package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestClaudeCodeKept: what a compaction kept stands once, behind its summary, whichever of them the next
// message follows; what it replaced is there too.
func TestClaudeCodeKept(t *testing.T) {
	line := func(role, uuid, parent, text string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"role":%[1]q,"id":%[2]q,"content":[{"type":"text","text":%[4]q}]}}`, role, uuid, parent, text)
	}
	call := func(uuid, parent, id string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"role":"assistant","id":"m","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{}}]}}`, uuid, parent, id)
	}
	result := func(uuid, parent, id string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"ok"}]}}`, uuid, parent, id)
	}
	boundary := func(uuid, follows, kept string) string {
		return fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","uuid":%q,"parentUuid":null,"logicalParentUuid":%q,"sessionId":"s","compactMetadata":{"trigger":"auto","preTokens":9,%s}}`, uuid, follows, kept)
	}
	recap := func(uuid, parent, text string) string {
		return strings.Replace(line("user", uuid, parent, text), `{`, `{"isCompactSummary":true,`, 1)
	}
	segment := func(head, anchor, tail string) string {
		return fmt.Sprintf(`"preservedSegment":{"headUuid":%q,"anchorUuid":%q,"tailUuid":%q}`, head, anchor, tail)
	}
	old := []string{line("user", "u1", "", "one"), line("assistant", "a1", "u1", "1"), line("user", "u2", "a1", "two"), line("assistant", "a2", "u2", "2")}
	const whole = "user one|assistant 1|user Summary.|user two|assistant 2|user three"
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"goes on from the summary", append(old[:4:4], boundary("b", "a2", segment("u2", "r", "a2")), recap("r", "b", "Summary."), line("user", "u3", "r", "three")), whole},
		{"goes on from what was kept", append(old[:4:4], boundary("b", "a2", segment("u2", "r", "a2")), recap("r", "b", "Summary."), line("user", "u3", "a2", "three")), whole},
		{"listed", append(old[:4:4], boundary("b", "a2", `"preservedMessages":{"anchorUuid":"r","uuids":["u2","a2"]}`), recap("r", "b", "Summary."), line("user", "u3", "a2", "three")), whole},
		{"behind the boundary", append(old[:4:4], boundary("b", "a2", segment("u2", "b", "a2")), recap("r", "b", "Summary."), line("user", "u3", "a2", "three")), whole},
		{"written anew in a fork", []string{old[0], old[1], boundary("b", "a1", segment("u2", "r", "a2")), recap("r", "b", "Summary."), line("user", "u2", "r", "two"), old[3], line("user", "u3", "a2", "three")}, whole},
		{"twice", append(old[:4:4], boundary("b", "a2", segment("u2", "r", "a2")), recap("r", "b", "Summary."), line("user", "u3", "a2", "three"), line("assistant", "a3", "u3", "3"),
			boundary("c", "a3", segment("u3", "q", "a3")), recap("q", "c", "Again."), line("user", "u4", "a3", "four")),
			"user one|assistant 1|user Summary.|user two|assistant 2|user Again.|user three|assistant 3|user four"},
		{"calls side by side", []string{old[0], old[1], call("c1", "a1", "t1"), call("c2", "c1", "t2"), result("r1", "c1", "t1"), result("r2", "c2", "t2"),
			boundary("b", "r2", segment("c1", "r", "r2")), recap("r", "b", "Summary."), line("user", "u3", "r2", "three")},
			"user one|assistant 1|user Summary.|assistant *t1*t2|tool t1 ok|tool t2 ok|user three"},
		{"gone back to before what was kept", append(old[:4:4], boundary("b", "a2", segment("u2", "r", "a2")), recap("r", "b", "Summary."), line("user", "u3", "a1", "three")),
			"user one|assistant 1|user three\nuser two|assistant 2|user Summary."},
		{"not there", append(old[:2:2], boundary("b", "a1", segment("x", "r", "y")), recap("r", "b", "Summary."), line("user", "u3", "r", "three")),
			"user one|assistant 1|user Summary.|user three"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			session := strings.Join(tt.lines, "\n")
			if got := conversations(t, session); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
			f, err := transcript.Read(strings.NewReader(session), nil)
			if err != nil {
				t.Fatal(err)
			}
			if told := len(f.Report.Warnings) > 0; told != (tt.name == "not there") {
				t.Errorf("%v", f.Report.Warnings)
			}
			for _, c := range f.Transcripts[0].Compactions {
				if m := f.Transcripts[0].Thread.At(c.At); m.ID != c.Summary || !strings.HasSuffix(m.Text(), ".") {
					t.Errorf("%+v is before %q", c, m.Text())
				}
			}
		})
	}
}
