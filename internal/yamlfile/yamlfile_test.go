package yamlfile_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/yamlfile"
)

// TestNested: no file of the largest size makes the parser take more than some
// megabytes, whatever piece it repeats.
func TestNested(t *testing.T) {
	for _, piece := range []string{
		"[", "{", "{a: ", "- ", "-\t", "- [", "x: [\n", "? ", "a: ", "!!x ", "&a ", "*a ", "|\n ", "a:\n- ", "\"", "'", "%", "--- ", "#", "a: &x 1\n", "<<: *a\n", "a: |\n", "a:\n", "[]", "- {a: [1]}\n",
	} {
		data := []byte(strings.Repeat(piece, yamlfile.MaxBytes/len(piece)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		node, err := yamlfile.Read(data)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
			t.Errorf("%q, %d bytes: took %d MB", piece, len(data), took)
		}
		if node != nil && err != nil {
			t.Errorf("%q: %v, %v", piece, node, err)
		}
	}
	if _, err := yamlfile.Read([]byte("base: auto\nx: " + strings.Repeat("- ", 200))); err == nil || err.Error() != "line 2, column 204: more than 100 lists begin on this line" {
		t.Error(err)
	}
	node, err := yamlfile.Read([]byte("a: [1, {b: 2}]\nc: \"[[[\"\n"))
	if pairs, ok := yamlfile.Pairs(node); err != nil || !ok || len(pairs) != 2 {
		t.Error(pairs, err)
	}
	for in, want := range map[string]string{"": "", "# nothing\n---\n": "", "---\na: 1\n---\n# more": "", "a: 1\n---\nb: 2": "several documents"} {
		node, err := yamlfile.Read([]byte(in))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) || (node != nil) != strings.Contains(in, "a: 1\n---\n#") {
			t.Errorf("%q: %v, %v", in, node, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("base: auto\nladder: [summarize]\n"))
	f.Add([]byte("- - - {a: [b, 'c']}\n? x\n: |\n  y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if node, err := yamlfile.Read(data); err != nil && (node != nil || err.Error() == "") {
			t.Errorf("%v, %v", node, err)
		}
	})
}
