package progress

import (
	"bytes"
	"testing"
	"time"
)

// TestBar: the time left is that of what is done, and the bar is gone at the end.
func TestBar(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	b := bar(&out, "measuring", func() time.Time { return now })
	now = now.Add(10 * time.Second)
	b(1, 4)
	if want := "\rmeasuring [#####...............] 1 of 4, about 30s left\x1b[K"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	if b(4, 4); out.String() != "\r\x1b[K" {
		t.Errorf("at the end %q", out.String())
	}
	if To(&out, "measuring") != nil {
		t.Error("a bar is drawn where no terminal is")
	}
}
