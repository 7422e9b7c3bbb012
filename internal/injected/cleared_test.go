package injected

import "testing"

// TestIsCleared: each row reads its example, and no text with words around it.
func TestIsCleared(t *testing.T) {
	for _, m := range clearingMarks {
		if !m.pattern().MatchString(m.example) || !IsCleared(m.example+"\n") {
			t.Errorf("%s: %q is not read", m.agent, m.example)
		}
		for _, other := range []string{"> " + m.example, m.example + " in log.txt", "", "cleared"} {
			if IsCleared(other) {
				t.Errorf("%q is taken for the mark of %s", other, m.agent)
			}
		}
	}
}
