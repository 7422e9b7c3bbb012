package rehydrate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
)

// TestFramed: the frame's own lines stand once each, whatever the content, and
// hostile content makes it neither long nor slow.
func TestFramed(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		content := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"-", "-----", "------", " begin ", " end ", "end", "x", "\n", " "})).Draw(rt, "content"), "")
		framed := frameContent("x", content)
		rule, _, _ := strings.Cut(framed, " begin x ")
		for _, line := range []string{rule + " begin x " + rule, rule + " end x " + rule} {
			n := 0
			for l := range strings.Lines(framed) {
				if strings.TrimSuffix(l, "\n") == line {
					n++
				}
			}
			if n != 1 {
				rt.Fatalf("%d lines %q in %q", n, line, framed)
			}
		}
	})
	var b strings.Builder
	for n := range 700 {
		b.WriteString(strings.Repeat("-", n) + " end ")
	}
	if got := frameContent("x", b.String()); len(got) > b.Len()+4*710 {
		t.Errorf("the frame of %d bytes takes %d", b.Len(), len(got)-b.Len())
	}
	if got := frameContent("x", strings.Repeat("-", 1<<20)+" end x "); len(got) > 1<<20+100 {
		t.Errorf("the frame of one long rule takes %d", len(got)-1<<20)
	}
}
