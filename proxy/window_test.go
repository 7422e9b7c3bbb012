package proxy

import "testing"

// TestDefaultWindow: it is that of models which the table does not hold; Window is that of
// all.
func TestDefaultWindow(t *testing.T) {
	for _, tt := range []struct {
		options        Options
		known, unknown int
	}{
		{Options{}, 128_000, 0},
		{Options{DefaultWindow: 9_000}, 128_000, 9_000},
		{Options{Window: 9_000, DefaultWindow: 7_000}, 9_000, 9_000},
	} {
		p, err := NewTransport(&tt.options)
		if err != nil {
			t.Fatal(err)
		}
		if known, unknown := p.models.model("gpt-4o").Window, p.models.model("nobody-knows").Window; known != tt.known || unknown != tt.unknown {
			t.Errorf("%+v: %d for a known model, %d for another", tt.options, known, unknown)
		}
	}
}
