package golden_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
)

// failing keeps what a test was told.
type failing struct {
	testing.TB
	says []string
}

func (f *failing) Helper()                           {}
func (f *failing) Errorf(format string, args ...any) { f.says = append(f.says, format) }
func (f *failing) Fatalf(format string, args ...any) { f.says = append(f.says, format); panic(f) }
func (f *failing) Fatal(...any)                      { f.says = append(f.says, "fatal"); panic(f) }

// told is what a comparison says.
func told(t *testing.T, compare func(testing.TB)) string {
	f := &failing{TB: t}
	defer func() { _ = recover() }()
	compare(f)
	return strings.Join(f.says, "\n")
}

// TestDifferences: what differs from its file fails, and what does not passes.
func TestDifferences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(path, []byte("# A\n<!-- list: made -->\none\n<!-- end of list -->\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	golden.Section(t, path, "list", "one\n")
	golden.Equal(t, path, "# A\n<!-- list: made -->\none\n<!-- end of list -->\nmore\n")
	if told(t, func(t testing.TB) { golden.Section(t, path, "list", "two\n") }) == "" {
		t.Error("another section passes")
	}
	if told(t, func(t testing.TB) { golden.Equal(t, path, []byte("# B\n")) }) == "" {
		t.Error("another file passes")
	}
	if f := (&failing{TB: t}); !panics(func() { golden.Section(f, path, "table", "") }) {
		t.Error("a section that is not there passes")
	}
}

func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}
