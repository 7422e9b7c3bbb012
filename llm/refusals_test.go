package llm

import "testing"

// TestRefusalExamples: each row of the tables recognises its own example. G5
func TestRefusalExamples(t *testing.T) {
	for _, row := range sizeRefusals {
		if got := Classify(row.provider, row.status, []byte(row.example)); got != row.kind {
			t.Errorf("%s: %q, want %q", row.example, got, row.kind)
		}
	}
	for _, row := range fullOutput {
		if got := Classify("", 400, []byte(row.example)); got != ErrOutput {
			t.Errorf("%s: %q", row.example, got)
		}
	}
	// An answer that leaves room: less input helps.
	const some = `{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (60000 of text input, 10000 in the output)."}}`
	if got := Classify("", 400, []byte(some)); got != ErrOverflow {
		t.Errorf("%q", got)
	}
}
