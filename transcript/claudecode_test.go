package transcript_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// Claude Code on a server of another maker keeps ids and thinking that
// Anthropic refuses. The session can still be sent there: calls and results
// stay pairs, and what was sealed by Anthropic keeps its bytes.
func TestClaudeCodeOfAnotherServer(t *testing.T) {
	const session = `{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"look"}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"id":"m1","role":"assistant","model":"other","content":[{"type":"thinking","thinking":"unsealed","signature":""},{"type":"tool_use","id":"functions.Bash:0","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"3","parentUuid":"2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions.Bash:0","content":"a.go"}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","sessionId":"s","message":{"id":"m2","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"sealed","signature":"c2Vh"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{ }}]}}
{"type":"user","uuid":"5","parentUuid":"4","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"b.go"}]}}
`
	f, err := transcript.Read(strings.NewReader(session), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := prompt.Prompt{Model: "claude-sonnet-4-5"}
	for _, m := range f.Transcripts[0].Thread.All() {
		p.Messages = append(p.Messages, *m)
	}
	body, err := anthropic.Codec{}.Encode(&p)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range (anthropic.Codec{}).Validate(body) {
		if !problem.Advice {
			t.Error(problem)
		}
	}
	for _, kept := range []string{
		`{"type":"tool_use","id":"toolu_1","name":"Bash","input":{ }}`,
		`{"type":"thinking","thinking":"sealed","signature":"c2Vh"}`, `a.go`, `b.go`,
	} {
		if !strings.Contains(string(body), kept) {
			t.Errorf("%s is not in %s", kept, body)
		}
	}
	if strings.Contains(string(body), "unsealed") {
		t.Errorf("thinking without a signature was sent: %s", body)
	}
}

// What a person writes while the model works reaches it with the results of a step. Claude Code
// keeps it only as operations on a queue, and later as an attachment too.
func TestClaudeCodeQueue(t *testing.T) {
	const (
		call   = `{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make"}}]}}`
		result = `{"type":"user","uuid":"3","parentUuid":"2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"built"}]}}`
		answer = `{"type":"assistant","uuid":"4","parentUuid":"3","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Done."}]}}`
	)
	for _, tt := range []struct {
		name  string
		lines []string
		want  string // the user's messages, as kind and text
	}{
		{"given to the model", []string{`{"type":"queue-operation","operation":"enqueue","content":"and test it"}`, `{"type":"queue-operation","operation":"remove"}`}, "plain: go|plain: and test it"},
		{"in their order", []string{
			`{"type":"queue-operation","operation":"enqueue","content":"one"}`, `{"type":"queue-operation","operation":"enqueue","content":"two"}`,
			`{"type":"queue-operation","operation":"remove"}`, `{"type":"queue-operation","operation":"remove"}`,
		}, "plain: go|plain: one|plain: two"},
		{"one of several", []string{
			`{"type":"queue-operation","operation":"enqueue","content":"one"}`, `{"type":"queue-operation","operation":"enqueue","content":"two"}`,
			`{"type":"queue-operation","operation":"remove","content":"two"}`,
		}, "plain: go|plain: two"},
		{"one that does not wait", []string{`{"type":"queue-operation","operation":"enqueue","content":"one"}`, `{"type":"queue-operation","operation":"remove","content":"other"}`}, "plain: go"},
		{"one that waits still", []string{
			`{"type":"queue-operation","operation":"enqueue","content":"one"}`, `{"type":"queue-operation","operation":"dequeue","content":"other"}`,
			`{"type":"queue-operation","operation":"remove"}`,
		}, "plain: go|plain: one"},
		{"still waiting", []string{`{"type":"queue-operation","operation":"enqueue","content":"later"}`}, "plain: go"},
		{"taken back", []string{`{"type":"queue-operation","operation":"enqueue","content":"no"}`, `{"type":"queue-operation","operation":"popAll","content":"no"}`, `{"type":"queue-operation","operation":"remove"}`}, "plain: go"},
		{"sent as a message", []string{`{"type":"queue-operation","operation":"enqueue","content":"next"}`, `{"type":"queue-operation","operation":"dequeue"}`}, "plain: go"},
		{"of the harness", []string{`{"type":"queue-operation","operation":"enqueue","content":"<task-notification>\n<task-id>7</task-id>\n</task-notification>"}`, `{"type":"queue-operation","operation":"remove"}`},
			"plain: go|injected: <task-notification>\n<task-id>7</task-id>\n</task-notification>"},
		{"an attachment too", []string{
			`{"type":"queue-operation","operation":"enqueue","content":"and test it"}`, `{"type":"queue-operation","operation":"remove"}`,
			`{"type":"attachment","uuid":"a","parentUuid":"2","attachment":{"type":"queued_command","prompt":"and test it","commandMode":"prompt"}}`,
		}, "plain: go|plain: and test it"},
		{"an attachment of the harness", []string{`{"type":"attachment","uuid":"a","parentUuid":"2","attachment":{"type":"queued_command","prompt":"the agent ended","commandMode":"task-notification"}}`},
			"plain: go|injected: the agent ended"},
		{"an attachment with blocks", []string{`{"type":"attachment","uuid":"a","parentUuid":"2","attachment":{"type":"queued_command","prompt":[{"type":"text","text":"like this"}],"commandMode":"prompt"}}`},
			"plain: go|plain: like this"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			session := strings.Join(slices.Concat([]string{`{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}`, call}, tt.lines, []string{result, answer}), "\n")
			f, err := transcript.Read(strings.NewReader(session), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, m := range f.Transcripts[0].Thread.All() {
				switch {
				case m.Role == thread.User && m.Kind == thread.Injected:
					got = append(got, "injected: "+m.Text())
				case m.Role == thread.User:
					got = append(got, "plain: "+m.Text())
				case m.Role == thread.Tool && i != 2:
					t.Errorf("the result stands at %d, and not behind its call", i)
				}
			}
			if got := strings.Join(got, "|"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// In a request, what a person wrote while the model worked stands in a reminder of its own behind
// the results: it opens a turn, in the person's words.
func TestWordsBesideResults(t *testing.T) {
	const body = `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"go"},
{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"built"},{"type":"text","text":"<system-reminder>\nThe user sent a new message while you were working:\nand test it\n\nIMPORTANT: After completing your current task, you MUST address the user's message above. Do not ignore it.\n</system-reminder>"}]},
{"role":"assistant","content":"Done."}]}`
	f, err := transcript.Read(strings.NewReader(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range f.Transcripts[0].Thread.All() {
		if m.StartsTurn() {
			words = append(words, injected.UserWords(m))
		}
	}
	if got := strings.Join(words, "|"); got != "go|and test it" {
		t.Errorf("%q", got)
	}
}

// Older versions wrote summaries of other sessions into a file, each with the last line of its
// session; and the client names a session that its user has named already.
func TestClaudeCodeTitles(t *testing.T) {
	const (
		user  = `{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}`
		reply = `{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Gone."}]}}`
	)
	for _, tt := range []struct {
		name, want string
		lines      []string
	}{
		{"of this session", "Ours", []string{user, reply, `{"type":"summary","summary":"Ours","leafUuid":"2"}`}},
		{"before its lines", "Ours", []string{`{"type":"summary","summary":"Ours","leafUuid":"2"}`, user, reply}},
		{"of another session", "", []string{`{"type":"summary","summary":"Theirs","leafUuid":"9"}`, user, reply}},
		{"of both", "Ours", []string{`{"type":"summary","summary":"Ours","leafUuid":"2"}`, `{"type":"summary","summary":"Theirs","leafUuid":"9"}`, user, reply}},
		{"the newest", "Later", []string{user, `{"type":"summary","summary":"Ours","leafUuid":"1"}`, reply, `{"type":"summary","summary":"Later","leafUuid":"2"}`}},
		{"of no session", "Ours", []string{user, reply, `{"type":"summary","summary":"Ours"}`}},
		{"the client's", "Theirs", []string{user, reply, `{"type":"ai-title","aiTitle":"Theirs","sessionId":"s"}`}},
		{"the user's", "Mine", []string{user, reply, `{"type":"custom-title","customTitle":"Mine","sessionId":"s"}`, `{"type":"ai-title","aiTitle":"Theirs","sessionId":"s"}`}},
		{"the user's last", "Mine", []string{user, `{"type":"custom-title","customTitle":"First","sessionId":"s"}`, reply, `{"type":"custom-title","customTitle":"Mine","sessionId":"s"}`, `{"type":"summary","summary":"Ours","leafUuid":"2"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := transcript.Read(strings.NewReader(strings.Join(tt.lines, "\n")), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Transcripts[0].Title; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
