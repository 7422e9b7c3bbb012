package canonjson

import (
	"strings"
	"testing"
)

// FuzzCanonical holds the form against that of encoding/json.
func FuzzCanonical(f *testing.F) {
	for _, doc := range []string{
		"", " ", "null", " -1.50e+7 ", "01", "1 2", "tru", "nullx", "\x00", "1\x00", "[", "[1,]", "[,]", "[1 2]", "{,}", `{"a":1,}`, `{"a"}`, `{"a" 1}`, `{1:2}`, "{}}",
		`{"b":1,"a":{"d":[ ],"c":{ }},"b":2}`, `{"a":1,"a":{"x":1},"a":{"y":2}}`, `{"cache_control":{"type":"x"},"b":[{"cache_control":1}]}`, `{"cache_control":1}`, `{"cache\u005fcontrol":1,"z":0}`,
		`{"\n":1,"Z":2,"\u0061":3,"a":4}`, `"\u0041\/\b\f\n\r\t\"\\\u001f"`, `"\ud83d\ude00 \ud83d"`, `"\x"`, `"\u12"`, `"\`, `"a`, "\"a\nb\"", "\"\x7f<>&\"", "\"\u2028\u2029é\"", "\"\xff\xe2\x80\"", "{\"\xff\":1,\"\ufffd\":2}",
		"\t[1,\r\n \"a\"]\v", "\ufeff1", `1"a"`, `{"a":1"b":2}`, `[true,false,null,{"x":[[]]}]`,
		strings.Repeat("[", 60) + strings.Repeat("]", 60),
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		for _, names := range [][]string{nil, {"cache_control"}} {
			got, ok := Without(doc, names...)
			want, wantOK := decoded(doc, names)
			if got != want || ok != wantOK {
				t.Errorf("without %v, %q is %q, %v, and by way of encoding/json %q, %v", names, doc, got, ok, want, wantOK)
			}
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	doc := `{"file_path":"/home/a/service/client.go","old_string":"` + strings.Repeat(`\tif err != nil {\n\t\treturn \"x\", err\n\t}\n`, 20) + `","new_string":"done","replace_all":false}`
	for name, f := range map[string]func(string, []string) (string, bool){"decoded": decoded, "written": func(doc string, names []string) (string, bool) { return Without(doc, names...) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				f(doc, nil)
			}
		})
	}
}
