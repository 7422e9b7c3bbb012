package references

import (
	"slices"
	"testing"
)

// TestFinder: identifiers are found at word boundaries only.
func TestFinder(t *testing.T) {
	f := newFinder()
	for i, s := range []string{"12", "bar.go", "/w/bar.go", "1200.5", "parseHeader"} {
		f.Add(int32(i), s)
	}
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"312 and 12.5 and 123", nil},
		{"12, or 12.", []int32{0, 0}},
		{"foo/bar.go", []int32{1}},
		{"open /w/bar.go", []int32{1, 2}},
		{"foobar.go bar.gox", nil},
		{"at 1200.5.", []int32{3}},
		{"  12→parseHeader…", []int32{0, 4}},
		{"\xe2", nil},
	} {
		var got []int32
		f.Find(c.text, func(r int32, at, end int) { got = append(got, r) })
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: found %v, want %v", c.text, got, c.want)
		}
	}
}

func FuzzFinder(f *testing.F) {
	f.Add("see a/b.go:3 for 12.5", "b.go")
	f.Add("1→x", "x")
	f.Fuzz(func(t *testing.T, text, form string) {
		fd := newFinder()
		fd.Add(1, form)
		fd.Find(text, func(_ int32, at, end int) {
			if text[at:end] != form {
				t.Fatalf("%q is not %q", text[at:end], form)
			}
		})
	})
}
