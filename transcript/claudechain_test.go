package transcript_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestRepeatedMessageIDs: an id joins the lines of one answer, and no others.
func TestRepeatedMessageIDs(t *testing.T) {
	n := 0
	line := func(parent, kind, rest, content string) string {
		n++
		return fmt.Sprintf(`{"type":%q,"uuid":"l%d","parentUuid":%q,"sessionId":"s",%s"message":{"role":%q,%s}}`, kind, n, parent, rest, kind, content)
	}
	ask := func(parent, text string) string {
		return line(parent, "user", "", fmt.Sprintf(`"content":%q`, text))
	}
	result := func(parent, id string) string {
		return line(parent, "user", "", fmt.Sprintf(`"content":[{"type":"tool_result","tool_use_id":%q,"content":"ok"}]`, id))
	}
	say := func(parent, request, text string) string {
		return line(parent, "assistant", request, fmt.Sprintf(`"id":"m1","content":[{"type":"text","text":%q}]`, text))
	}
	call := func(parent, request, id string) string {
		return line(parent, "assistant", request, fmt.Sprintf(`"id":"m1","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{}}]`, id))
	}
	const request = `"requestId":"r1",`
	for _, tt := range []struct {
		name  string
		lines func() []string
		want  string
	}{
		{"one answer in two lines", func() []string {
			return []string{ask("", "one"), say("l1", "", "a"), call("l2", "", "c"), result("l3", "c")}
		},
			"user one|assistant a*c|tool c ok"},
		{"again after the user", func() []string {
			return []string{ask("", "one"), say("l1", "", "a"), ask("l2", "two"), say("l3", "", "b")}
		},
			"user one|assistant a|user two|assistant b"},
		{"again after a result", func() []string {
			return []string{ask("", "one"), call("l1", "", "c"), result("l2", "c"), call("l3", "", "d"), result("l4", "d"), say("l5", "", "b")}
		}, "user one|assistant *c|tool c ok|assistant *d|tool d ok|assistant b"},
		{"one request around a result", func() []string {
			return []string{ask("", "one"), call("l1", request, "c"), result("l2", "c"), call("l3", request, "d"), result("l4", "d")}
		}, "user one|assistant *c*d|tool c ok|tool d ok"},
		{"the same request again after the user", func() []string {
			return []string{ask("", "one"), say("l1", request, "a"), ask("l2", "two"), say("l3", request, "b")}
		}, "user one|assistant a|user two|assistant b"},
		{"in a branch that the user left", func() []string {
			return []string{ask("", "one"), say("l1", "", "a"), ask("l2", "two"), say("l3", "", "b"), ask("l2", "three"), say("l5", "", "d")}
		}, "user one|assistant a|user three|assistant d\nuser two|assistant b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n = 0
			if got := conversations(t, strings.Join(tt.lines(), "\n")); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
	f, err := transcript.Open(filepath.Join(corpus.Dir(t, "cases/agents/repeated-message-ids"), "session.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range f.Transcripts[0].Thread.All() {
		if user := i%2 == 0; user != (m.Role == "user") {
			t.Errorf("message %d is of the %s", i, m.Role)
		}
	}
}
