package transcript_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestTokensAfter: what a compaction left is what the agent says of it, or of its first request after it, of the main
// conversation.
func TestTokensAfter(t *testing.T) {
	const (
		user     = `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Sort the shelf."}}`
		recap    = `{"type":"user","uuid":"r","parentUuid":"b","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"The shelf is sorted."}}`
		side     = `{"type":"assistant","uuid":"x","parentUuid":"r","sessionId":"s","isSidechain":true,"message":{"role":"assistant","id":"x","content":[{"type":"text","text":"Aside."}],"usage":{"input_tokens":1}}}`
		answer   = `{"type":"assistant","uuid":"a","parentUuid":"r","sessionId":"s","message":{"role":"assistant","id":"a","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":5,"cache_read_input_tokens":1000,"output_tokens":7}}}`
		another  = `{"type":"assistant","uuid":"c","parentUuid":"a","sessionId":"s","message":{"role":"assistant","id":"c","content":[{"type":"text","text":"Again."}],"usage":{"input_tokens":2000}}}`
		meta     = `{"type":"session_meta","payload":{"id":"s","cwd":"/x"}}`
		said     = `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Sort the shelf."}]}}`
		squeezed = `{"type":"compacted","payload":{"message":"The shelf is sorted."}}`
	)
	boundary := func(more string) string {
		return `{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"u","sessionId":"s","compactMetadata":{"trigger":"auto","preTokens":9000` + more + `}}`
	}
	count := func(n string) string {
		return `{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"total_tokens":` + n + `}}}}`
	}
	for _, c := range []struct {
		name   string
		format transcript.Format
		lines  []string
		after  int
	}{
		{"it says so", "claude-code", []string{user, boundary(`,"postTokens":300`), recap, answer}, 300},
		{"the first request", "claude-code", []string{user, boundary(""), recap, side, answer, another}, 1005},
		{"none came", "claude-code", []string{user, boundary(""), recap}, 0},
		{"the next count", "codex", []string{meta, said, count("9000"), squeezed, said, count("400"), count("500")}, 400},
	} {
		got, err := transcript.Read(strings.NewReader(strings.Join(c.lines, "\n")), &transcript.Options{Format: c.format})
		if err != nil {
			t.Fatal(err)
		}
		if all := got.Transcripts[0].Compactions; len(all) != 1 || all[0].TokensBefore != 9000 || all[0].TokensAfter != c.after {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
}
