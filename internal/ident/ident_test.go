package ident

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // type:norm, separated by blanks or by | where a norm holds one
	}{
		{"", ""},
		{"see internal/retry/backoff.go:31:7 for it.", "path:internal/retry/backoff.go"},
		{"open ./cmd//shipqd/../shipqd/main.go, please", "path:cmd/shipqd/main.go"},
		{"/usr/local/bin and ~/notes.txt", "path:/usr/local/bin path:~/notes.txt"},
		{"go.mod or and/or", "path:go.mod path:and/or"},
		{"at https://example.com/a?b=1&c=2.", "url:https://example.com/a?b=1&c=2"},
		{"mail Ada.L@Example.com now", "email:ada.l@example.com"},
		{"commit 9f3c2ab and deadbeef", "hex:9f3c2ab"},
		{"b1946ac9-2ad4-4f5e-8d8c-3b2f7c9e1a00", "hex:b1946ac9-2ad4-4f5e-8d8c-3b2f7c9e1a00"},
		{"order ORD-48213-B of mia_li_3668", "id:ORD-48213-B id:mia_li_3668"},
		{"on 2026-11-21 at 14:03:59", "date:2026-11-21 date:14:03:59"},
		{"1,200.50 or 1200.5 of 12 in 2024, 1000 and 4711", "number:1200.5 number:1200.5 number:4711"},
		{"$42 and 35ms and 7%", "number:42 number:35ms"},
		{"v1.26 of 1.2.3-rc.1", "version:1.26 version:1.2.3-rc.1"},
		{"call parseHeader or retry_after_ms, os.ReadFile, std::vector", "symbol:parseHeader symbol:retry_after_ms symbol:os.ReadFile symbol:std::vector"},
		{"an Exception is not an Error or an Example", "error:Exception"},
		{"ErrLabelRejected, TimeoutError: ENOENT", "error:ErrLabelRejected error:TimeoutError error:ENOENT"},
		{`it says "no such order" and "backoff"`, "quoted:no such order"},
		{"we asked Ada Lovelace. Grace came", "name:Ada Lovelace"},
		{`{"user_id":"mia_li_3668","total":127.5}`, "symbol:user_id id:mia_li_3668 number:127.5"},
		{"  12→parseHeader — “retry_after”…", "symbol:parseHeader symbol:retry_after"},
		{"key=value_of_it", "symbol:value_of_it"},
	} {
		var got []string
		for _, x := range All(c.text) {
			got = append(got, x.Type.String()+":"+x.Norm)
			if c.text[x.At:x.At+len(x.Surface)] != x.Surface {
				t.Errorf("%q: %q does not stand at %d", c.text, x.Surface, x.At)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.text, s, c.want)
		}
	}
}

// TestKinds: each type finds its example, and no type before it does.
func TestKinds(t *testing.T) {
	for _, k := range kinds {
		if got, norm, ok := classifyWhole(k.example); got != k.Type || !ok {
			t.Errorf("%s is read as %s %q", k.example, got, norm)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{"a/b.go:3", "1,200.50", "\"x y z w\"", "::", "..", "v", "Ada Lovelace", "a@b.cd", "\xff/\xfe.go", "1→a_b_c_d\xe2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for _, x := range All(text) {
			if x.Norm == "" || x.Surface == "" || x.Type >= types {
				t.Fatalf("%q: %+v", text, x)
			}
			if x.At < last || x.At+len(x.Surface) > len(text) || text[x.At:x.At+len(x.Surface)] != x.Surface {
				t.Fatalf("%q: %+v overlaps or does not stand there", text, x)
			}
			last = x.At + len(x.Surface)
		}
	})
}

func TestTypes(t *testing.T) {
	if n := len(slices.Compact(slices.Sorted(slices.Values(typeNames[:])))); n != int(types) {
		t.Errorf("%d names for %d types", n, types)
	}
	if s := fmt.Sprint(Type(200)); s != "unknown" {
		t.Errorf("an unknown type is %q", s)
	}
}

// TestChains: megabytes of words that colons join take no stack and no time to
// speak of, and what stands at their end is found.
func TestChains(t *testing.T) {
	start := time.Now()
	found := All(strings.Repeat("ab:", 1_000_000) + "src/server/main.go")
	if len(found) != 1 || found[0].Type != Path || found[0].Norm != "src/server/main.go" {
		t.Errorf("%v", found)
	}
	if took := time.Since(start); took > time.Minute { // it took hours
		t.Errorf("took %v", took)
	}
}
