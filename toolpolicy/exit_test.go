package toolpolicy

import (
	"strings"
	"testing"
)

// TestMayExit: what passes over texts without an exit code passes over none that
// has one, in whatever case it is written.
func TestMayExit(t *testing.T) {
	for _, mark := range exitMarks {
		for _, text := range []string{mark + "3", "done\n" + strings.ToUpper(mark) + " 3\n"} {
			if !mayExit(text) {
				t.Errorf("%q is passed over", text)
			}
			if code, ok := exitIn(text); !ok || code != 3 {
				t.Errorf("%q has code %d, %v", text, code, ok)
			}
		}
	}
	if mayExit("ok\tshop/pkg\t0.4s") {
		t.Error("a text without a code is searched")
	}
}
