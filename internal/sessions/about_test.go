package sessions

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestUsages: each row reads its example, in a line, and within a document.
func TestUsages(t *testing.T) {
	for _, u := range usages {
		if got := usageIn([]byte("{}\n"+u.example+"\n{\"tokens\":0}\n"), false); got != 12 {
			t.Errorf("%s: %d, want 12", u.example, got)
		}
		if got := usageIn([]byte(`{"messages":[{},`+u.example+`,{}]}`), true); got != 12 {
			t.Errorf("%s in a document: %d, want 12", u.example, got)
		}
	}
	if got := usageIn([]byte(`{"isSidechain":true,"message":{"usage":{"input_tokens":5}}}`), false); got != 0 {
		t.Errorf("of a sub-agent: %d", got)
	}
}

// TestFirstRequestOfCommand: a command that was typed is named as it was typed.
func TestFirstRequestOfCommand(t *testing.T) {
	for said, want := range map[string]string{
		"<command-message>init is analyzing…</command-message>\n<command-name>/init</command-name>":                                            "/init",
		"<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the retry of a refused order</command-args>": "/fix the retry of a refused order",
		"Why is there a <command-name> in the log?": "Why is there a <command-name> in the log?",
	} {
		log, err := thread.New("t").Append(thread.NewMessage(thread.User, said))
		if err != nil {
			t.Fatal(err)
		}
		if got := FirstRequest(log); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
