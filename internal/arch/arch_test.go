package arch_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/arch"
)

// sound is a small module that keeps every rule.
var sound = map[string]string{
	"go.mod": "module example.test/m\n\ngo 1.26\n",
	"m.go": `// Package m is the front.
package m

import "example.test/m/ground"

// Front is documented.
type Front struct{ ground.Value }
`,
	"ground/ground.go": `// Package ground is at the bottom.
package ground

import (
	"time"

	"host.test/allowed/part"
)

// Value is documented, and may hold a time.
type Value struct{ At time.Time }

// Later takes the time as a value.
func (v Value) Later(now time.Time) bool { return v.At.Before(now.Add(time.Second)) }

// First stands for both.
func (v Value) First() int { return part.One }
func (v *Value) First2() int { return 2 }
`,
	"ground/ground_test.go": `package ground

import (
	"os"
	"testing"

	"example.test/m/store/file"
	"host.test/testing/quick"
)

const scratch = "/tmp/x"

func TestNothing(t *testing.T) { _, _, _ = os.Args, file.Open, quick.One }
`,
	"ground/beside/beside.go": `// Package beside is on the floor of ground, with an arrow to it.
package beside

import _ "example.test/m/ground"
`,
	"store/file/file.go": `// Package file is an implementation.
package file

// Open is documented.
func Open() {}
`,
	"cmd/m/main.go": `// M is the program.
package main

import "example.test/m/store/file"

func main() { file.Open() }
`,
	"check/check.go": `// Package check is for tests.
package check

import (
	"os"

	"host.test/testing/quick"
)

// Args is documented.
var Args = os.Args[quick.One]
`,
	"testdata/bad/types.go": "package types\n\nfunc init() {}\n",
	"nested/go.mod":         "module example.test/m/nested\n",
	"nested/helpers.go":     "package helpers\n\nfunc init() {}\n",
	"README.md":             "See docs/work/plan.md and https://example.test/root/x for more.\n",
}

// soundRules are the rules that sound keeps.
func soundRules() arch.Rules {
	return arch.Rules{
		Packages: map[string]arch.Package{
			"cmd/m":         {Floor: 7},
			".":             {Floor: 5},
			"store/file":    {Floor: 4, Leaf: true},
			"ground":        {External: []string{"host.test/allowed"}},
			"ground/beside": {Same: []string{"ground"}},
			"check":         {Support: true},
		},
		TestLibraries: []string{"host.test/testing"},
	}
}

// write lays a module out in a temporary folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// check returns the rule and place of every problem.
func check(t *testing.T, files map[string]string, rules arch.Rules) []string {
	t.Helper()
	problems, err := arch.Check(write(t, files), rules)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, p := range problems {
		if p.What == "" {
			t.Errorf("a problem at %s says nothing", p.At)
		}
		got = append(got, fmt.Sprintf("%s %s:%d", p.Rule, p.At, p.Line))
	}
	return got
}

func TestSound(t *testing.T) {
	// The method below First has another name, so the comment is not its own.
	if diff := cmp.Diff([]string{"undocumented ground/ground.go:18"}, check(t, sound, soundRules())); diff != "" {
		t.Errorf("problems of the small module (-want +got):\n%s", diff)
	}
}

// soundCeilings are those that sound is right below.
func soundCeilings() *arch.Ceilings {
	return &arch.Ceilings{
		Lines:    []arch.LineCeiling{{Of: "values", In: []string{"ground"}, Most: 22}, {Of: "floor 4", Floor: 4, Most: 5}},
		Packages: 5, Public: 4, Names: 3,
		Methods: 1, Types: map[string]int{"ground.Value": 3},
	}
}

// lines is source text with n lines in the middle.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

// TestRules breaks each rule in the small module, and only that rule.
func TestRules(t *testing.T) {
	const head = "// Package ground is at the bottom.\npackage ground\n\n"
	tests := []struct {
		name  string
		files map[string]string
		edit  func(*arch.Rules)
		want  []string
	}{
		{name: "unknown package", files: map[string]string{"ground/new/new.go": "// Package new is nowhere.\npackage new\n"},
			want: []string{"table ground/new:0"}},
		{name: "stale row", edit: func(r *arch.Rules) { r.Packages["gone"] = arch.Package{} },
			want: []string{"table gone:0"}},
		{name: "unused exception", edit: func(r *arch.Rules) { r.Exceptions = []arch.Exception{{Rule: "init", At: "m.go"}} },
			want: []string{"exception m.go:0"}},
		{name: "used exception", files: map[string]string{"ground/a.go": head + "func init() {}\n"},
			edit: func(r *arch.Rules) { r.Exceptions = []arch.Exception{{Rule: "init", At: "ground/a.go"}} },
			want: []string{}},

		{name: "higher floor", files: map[string]string{"ground/a.go": head + "import _ \"example.test/m\"\n"},
			want: []string{"floor ground/a.go:4"}},
		{name: "same floor", files: map[string]string{"ground/a.go": head + "import _ \"example.test/m/ground/beside\"\n"},
			want: []string{"floor ground/a.go:4"}},
		{name: "leaf", files: map[string]string{"m2.go": "package m\n\nimport _ \"example.test/m/store/file\"\n"},
			want: []string{"floor m2.go:3"}},
		{name: "support", files: map[string]string{"m2.go": "package m\n\nimport _ \"example.test/m/check\"\n"},
			want: []string{"floor m2.go:3"}},
		{name: "external", files: map[string]string{"m2.go": "package m\n\nimport _ \"host.test/allowed\"\n"},
			want: []string{"external m2.go:3"}},
		{name: "external of a like name", files: map[string]string{"ground/a.go": head + "import _ \"host.test/allowedtoo\"\n"},
			want: []string{"external ground/a.go:4"}},
		{name: "external in a test", files: map[string]string{"m_test.go": "package m_test\n\nimport _ \"host.test/other\"\n"},
			want: []string{"external m_test.go:3"}},
		{name: "test library outside tests", files: map[string]string{"m2.go": "package m\n\nimport _ \"host.test/testing/quick\"\n"},
			want: []string{"external m2.go:3"}},
		{name: "cgo", files: map[string]string{"m2.go": "package m\n\nimport \"C\"\n"},
			want: []string{"external m2.go:3"}},

		{name: "values in contexts", files: map[string]string{
			"store/file/a.go": "// Package file is an implementation.\npackage file\n\nimport ctx \"context\"\n\nvar (\n\ta = ctx.WithValue\n\tb = ctx.WithCancel\n)\n",
			"m_test.go":       "package m\n\nimport \"context\"\n\nvar a = context.WithValue\n",
		}, want: []string{"context-value store/file/a.go:7"}},
		{name: "impure imports", files: map[string]string{"ground/a.go": head + "import (\n\t_ \"context\"\n\t_ \"os\"\n\t_ \"net/http\"\n\t_ \"math/rand/v2\"\n\t_ \"io/fs\"\n\t_ \"io\"\n)\n"},
			want: []string{"pure ground/a.go:5", "pure ground/a.go:6", "pure ground/a.go:7", "pure ground/a.go:8", "pure ground/a.go:9"}},
		{name: "clock", files: map[string]string{"ground/a.go": head + "import \"time\"\n\nvar now, since = time.Now, time.Since(time.Time{})\n"},
			want: []string{"pure ground/a.go:6", "pure ground/a.go:6"}},
		{name: "clock by another name", files: map[string]string{"ground/a.go": head + "import clock \"time\"\n\nvar now = clock.Now()\n"},
			want: []string{"pure ground/a.go:6"}},
		{name: "clock without a name", files: map[string]string{"ground/a.go": head + "import . \"time\"\n\nvar now = Now()\n"},
			want: []string{"pure ground/a.go:0"}},
		{name: "goroutine", files: map[string]string{"ground/a.go": head + "func run() { go run() }\n"},
			want: []string{"pure ground/a.go:4"}},
		{name: "higher floors are free", files: map[string]string{"m2.go": "package m\n\nimport (\n\t_ \"os\"\n\t\"time\"\n)\n\nfunc run() { go run(); time.Sleep(1) }\n"},
			want: []string{}},

		{name: "long file", files: map[string]string{"ground/a.go": head + lines(698, "// %d")},
			want: []string{"long-file ground/a.go:0"}},
		{name: "long test", files: map[string]string{"ground/a_test.go": "package ground\n" + lines(700, "// %d")},
			want: []string{"long-file ground/a_test.go:0"}},
		{name: "longest file", files: map[string]string{"ground/a.go": head + lines(697, "// %d")},
			want: []string{}},
		{name: "many names", files: map[string]string{"store/file/a.go": "package file\n" + lines(15, "// F%[1]d is one.\nfunc F%[1]d() {}") + lines(15, "// T%[1]d is one.\ntype T%[1]d int")},
			want: []string{"many-names store/file:0"}},
		{name: "many hidden names and methods", files: map[string]string{"store/file/a.go": "package file\n" + lines(40, "func f%d() {}") + "// T is one.\ntype T int\n" + lines(40, "// M is one.\nfunc (T) M%d() {}")},
			want: []string{}},
		{name: "many values", files: map[string]string{"store/file/a.go": "package file\n" + lines(31, "// V is one.\nconst V%d = 1")},
			want: []string{"many-values store/file:0"}},
		{name: "wide interface", files: map[string]string{"ground/a.go": head + "type wide interface {\n" + lines(5, "\tM%d()") + "}\n\ntype fine interface {\n" + lines(4, "\tM%d()") + "}\n"},
			want: []string{"wide-interface ground/a.go:4"}},
		{name: "wide by embedding", files: map[string]string{"ground/a.go": head + "import \"io\"\n\ntype wide interface {\n\tfine\n\tio.Reader\n}\n\ntype fine interface {\n" + lines(4, "\tM%d()") + "}\n"},
			want: []string{"wide-interface ground/a.go:6"}},
		{name: "constraint", files: map[string]string{"ground/a.go": head + "type number interface {\n\t~int | ~int8 | ~int16 | ~int32 | ~int64\n}\n"},
			want: []string{}},

		{name: "package name", files: map[string]string{"ground/util/a.go": "// Package util is a bag.\npackage util\n"},
			edit: func(r *arch.Rules) { r.Packages["ground/util"] = arch.Package{} },
			want: []string{"package-name ground/util:0"}},
		{name: "file name", files: map[string]string{"ground/types.go": "package ground\n", "ground/helpers_test.go": "package ground\n"},
			want: []string{"file-name ground/helpers_test.go:0", "file-name ground/types.go:0"}},
		{name: "init", files: map[string]string{"ground/a.go": head + "func init() {}\n\ntype t int\n\nfunc (t) init() {}\n"},
			want: []string{"init ground/a.go:4"}},
		{name: "functional options", files: map[string]string{
			"ground/a.go":     head + "// Option is one.\ntype Option func(*Value)\n\n// WithTime is one.\nfunc WithTime() Option { return nil }\n\n// WithPlace is one.\nfunc WithPlace() func(*Value) { return nil }\n\n// WithValue is none.\nfunc WithValue() Value { return Value{} }\n\n// Without is none.\nfunc Without() Option { return nil }\n",
			"store/file/a.go": "package file\n\nimport \"example.test/m/ground\"\n\n// WithPath is one.\nfunc WithPath() ground.Option { return nil }\n",
		}, want: []string{"functional-option ground/a.go:8", "functional-option ground/a.go:11", "functional-option store/file/a.go:6"}},

		{name: "no comments", files: map[string]string{
			"store/file/a.go":      "package file\n\nfunc F() {}\n\ntype T int\n\nfunc (T) M() {}\n\ntype hidden int\n\nfunc (hidden) M() {}\n\nconst C = 1\n\ntype (\n\tA int\n)\n",
			"internal/bare/a.go":   "package bare\n\nfunc F() {}\n",
			"store/file/x_test.go": "package file\n\nfunc F2() {}\n",
		}, edit: func(r *arch.Rules) { r.Packages["internal/bare"] = arch.Package{} },
			want: []string{"undocumented internal/bare:0", "undocumented store/file/a.go:3", "undocumented store/file/a.go:5", "undocumented store/file/a.go:7", "undocumented store/file/a.go:13", "undocumented store/file/a.go:16"}},
		{name: "files that are not there", files: map[string]string{
			"store/file/a.go": "// Package file: a.go, b*.go (x_test.go) and other/c.go.\npackage file\n",
		}, want: []string{"stale-name store/file/a.go:0", "stale-name store/file/a.go:0"}},
		{name: "comments for several", files: map[string]string{
			"store/file/a.go": "package file\n\n// The values.\nconst (\n\tA = iota\n\tB\n)\n\nconst (\n\tC = 1 // C is one.\n)\n\n// T and U are two.\ntype T int\n\n// U is one.\ntype U int\n\n// M is one.\nfunc (T) M() {}\nfunc (U) M() {}\n",
		}, want: []string{}},

		{name: "reserved functions", files: map[string]string{
			"m2.go":           "package m\n\nimport \"encoding/json\"\n\nvar ok, f = json.Valid(nil), json.Valid\n\nvar fine = json.Unmarshal\n",
			"m3.go":           "package m\n\nimport j \"encoding/json\"\n\nvar renamed = j.Valid(nil)\n",
			"m4.go":           "package m\n\nimport . \"encoding/json\"\n\nvar dotted = Valid(nil)\n",
			"m2_test.go":      "package m\n\nimport \"encoding/json\"\n\nvar inTest = json.Valid(nil)\n",
			"check/a.go":      "package check\n\nimport \"encoding/json\"\n\nvar ok = json.Valid(nil)\n",
			"store/file/a.go": "package file\n\nimport \"encoding/json\"\n\nvar ok = json.Valid(nil)\n",
		}, edit: func(r *arch.Rules) {
			r.Reserved = []arch.Reserved{{Import: "encoding/json", Names: []string{"Valid"}, In: "store/file", Why: "not here"}}
		}, want: []string{"reserved m2.go:5", "reserved m2.go:5", "reserved m3.go:5", "reserved m4.go:3"}},
		{name: "seeds", files: map[string]string{
			"m_test.go":    "package m\n\nimport (\n\t\"math/rand/v2\"\n\n\t\"pgregory.net/rapid\"\n)\n\nfunc run(t rapid.TB, r *rand.Rand) {\n\trapid.Check(t, nil)\n\t_ = rapid.MakeCheck(nil)\n\t_ = rapid.Bool()\n\t_ = rand.IntN(9)\n\t_ = rand.New(rand.NewPCG(1, 2)).IntN(9)\n}\n",
			"check/one.go": "package check\n\nimport draw \"math/rand\"\n\n// One is one.\nvar One = draw.Int\n",
			"draw/draw.go": "// Package draw may.\npackage draw\n\nimport \"pgregory.net/rapid\"\n\nvar check = rapid.Check\n",
			"m2.go":        "package m\n\nimport \"math/rand\"\n\nvar one = rand.Int()\n",
		}, edit: func(r *arch.Rules) {
			r.TestLibraries = append(r.TestLibraries, "pgregory.net/rapid")
			r.Packages["draw"] = arch.Package{Support: true}
			r.Properties = "draw"
		}, want: []string{"seed check/one.go:6", "seed m_test.go:10", "seed m_test.go:11", "seed m_test.go:13"}},

		{name: "under the ceilings", edit: func(r *arch.Rules) { r.Ceilings = soundCeilings() }, want: []string{}},
		{name: "over the ceilings", files: map[string]string{
			"ground/a.go":      head + "func (Value) one() {}\n\n// More is one.\nconst More = 1\n",
			"ground/more/a.go": "// Package more is on the ground.\npackage more\n\ntype t[k any] int\n\nfunc (t[k]) a() {}\nfunc (*t[k]) b() {}\n",
			"check/a.go":       "package check\n" + lines(50, "// %d"),
		}, edit: func(r *arch.Rules) {
			r.Packages["ground/more"] = arch.Package{}
			r.Ceilings = soundCeilings()
		}, want: []string{"ceiling ground.Value:0", "ceiling ground/more.t:0", "ceiling the module:0", "ceiling the module:0", "ceiling the public packages:0", "ceiling values:0"}},
		{name: "ceilings that were not lowered", edit: func(r *arch.Rules) {
			r.Ceilings = soundCeilings()
			r.Ceilings.Lines[0].Most++
			r.Ceilings.Public++
			r.Ceilings.Types["ground.Value"]++
			r.Ceilings.Types["m.Gone"] = 3
		}, want: []string{"ceiling ground.Value:0", "ceiling m.Gone:0", "ceiling the module:0", "ceiling values:0"}},

		{name: "internal types that are exported", files: map[string]string{
			"internal/in/in.go": "// Package in is hidden.\npackage in\n\ntype T struct{}\n\ntype U struct{}\n\nfunc (T) Fine() int { return 1 }\n\nfunc (T) M() (u U) { return }\n\nvar V U\n",
			"store/file/a.go": `package file

import hidden "example.test/m/internal/in"

// A is an alias.
type A = hidden.T

// B has fields.
type B struct {
	F []*hidden.T
	f hidden.T
	*lower
	plain
}

// F has it in a function.
func F(func(hidden.T)) {}

// M is a method.
func (B) M() map[string]hidden.T { return nil }

func (B) m(hidden.T) {}

var (
	// V1 and others are variables.
	V1 hidden.T
	V2 = hidden.T{} // V2 is one.
	V3 = hidden.V   // V3 is one.
	v4 hidden.T
)

// I has a method.
type I interface{ M(hidden.T) }

// G is generic.
type G[T any] struct{ v hidden.T }

// M is one.
func (*G[T]) M(a hidden.T) {}

type lower = hidden.T

type plain struct {
	P hidden.T
	p hidden.T
}

type unseen struct{ F hidden.T }

func f(unseen) hidden.T { return hidden.T{} }
`,
			"internal/in/b_test.go": "package in\n",
			"store/file/x_test.go":  "package file\n\nimport \"example.test/m/internal/in\"\n\nfunc Test(in.T) {}\n",
		}, edit: func(r *arch.Rules) { r.Packages["internal/in"] = arch.Package{} },
			want: []string{
				"surface internal/in/in.go:10", "surface store/file/a.go:6", "surface store/file/a.go:10", "surface store/file/a.go:17",
				"surface store/file/a.go:20", "surface store/file/a.go:26", "surface store/file/a.go:27", "surface store/file/a.go:28",
				"surface store/file/a.go:33", "surface store/file/a.go:39", "surface store/file/a.go:44",
			}},

		{name: "machine paths", files: map[string]string{
			"m2.go":   "package m\n\nvar a, b, c, d = \"/home/someone/x\", \"see /tmp/x\", \"out=/root\", \"https://host.test/home/x\"\n",
			"A.md":    "one\nopen /work/main first\n",
			".ci/run": "cd /root/x\n",
		}, want: []string{"machine-path .ci/run:1", "machine-path A.md:2", "machine-path m2.go:3", "machine-path m2.go:3", "machine-path m2.go:3"}},
		{name: "registries", files: map[string]string{
			"m2.go":  "package m\n\nvar a = \"https://proxy.golang.org/x\"\n",
			"ci.yml": "image: ghcr.io/x\n",
		}, want: []string{"registry ci.yml:1", "registry m2.go:3"}},
	}
	base := maps.Clone(sound)
	base["ground/ground.go"] = strings.Replace(base["ground/ground.go"], "First2", "first", 1)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(base)
			maps.Copy(files, tt.files)
			rules := soundRules()
			if tt.edit != nil {
				tt.edit(&rules)
			}
			if diff := cmp.Diff(tt.want, check(t, files, rules)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadable: a module that cannot be judged is an error, not a pass.
func TestUnreadable(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no go.mod":     {"m.go": "package m\n"},
		"no module":     {"go.mod": "go 1.26\n"},
		"not Go source": {"go.mod": "module m\n", "m.go": "pakage m\n"},
	} {
		if _, err := arch.Check(write(t, files), arch.Rules{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
