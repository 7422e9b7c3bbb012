package sessions

import "testing"

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
