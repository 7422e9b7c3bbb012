package transcript

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestSubagents: what stands in the user's name in a session that another agent started is that agent's; in the
// same session without the member, the person's. G1
func TestSubagents(t *testing.T) {
	check := func(name, doc string, want thread.Author) {
		f, err := Read(strings.NewReader(doc), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := f.Transcripts[0].Thread.At(0)
		if m.Author() != want || m.Text() != "Never push." {
			t.Errorf("%s: %q is by %s, want %s", name, m.Text(), m.Author(), want)
		}
	}
	for _, row := range subagents {
		check(string(row.format), row.example, thread.ByAgent)
		for _, other := range []string{`"subagent"`, `"parentID"`, `"kind"`} {
			if own := strings.Replace(row.example, other, `"other"`, 1); own != row.example && strings.Contains(own, "Never push.") {
				check(string(row.format)+" without "+other, own, thread.ByPerson)
				break
			}
		}
		if row.unless != "" {
			fork := strings.Replace(row.example, `"id":"s"`, `"id":"s","forked_from_id":"q"`, 1)
			check(string(row.format)+", a copy", fork, thread.ByPerson)
		}
	}
	const claude = `{"uuid":"u1","parentUuid":null,"isSidechain":true,"agentId":"a1","sessionId":"s","type":"user","message":{"role":"user","content":"Never push."}}` + "\n"
	check("claude-code", claude, thread.ByAgent)
	check("claude-code, the user in it", strings.Replace(claude, `"type"`, `"origin":{"kind":"human"},"type"`, 1), thread.ByPerson)
	check("claude-code, not beside", strings.Replace(claude, "true", "false", 1), thread.ByPerson)
	check("claude-code, printed", strings.Replace(claude, `"isSidechain":true,"agentId":"a1"`, `"parent_tool_use_id":"toolu_1"`, 1), thread.ByAgent)
}
