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
		file, err := yamlfile.Parse(data)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
			t.Errorf("%q, %d bytes: took %d MB", piece, len(data), took)
		}
		if (file == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", piece, file, err)
		}
	}
	if _, err := yamlfile.Parse([]byte("base: auto\nx: " + strings.Repeat("- ", 200))); err == nil || err.Error() != "line 2, column 204: more than 100 lists begin on this line" {
		t.Error(err)
	}
	if file, err := yamlfile.Parse([]byte("a: [1, {b: 2}]\nc: \"[[[\"\n")); err != nil || len(file.Docs) != 1 {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("base: auto\nladder: [summarize]\n"))
	f.Add([]byte("- - - {a: [b, 'c']}\n? x\n: |\n  y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := yamlfile.Parse(data); (file == nil) == (err == nil) {
			t.Errorf("%v, %v", file, err)
		}
	})
}
