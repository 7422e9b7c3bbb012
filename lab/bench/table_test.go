package main

import (
	"strings"
	"testing"
)

// TestRead: the median of each name and unit, whatever the number of processors.
func TestRead(t *testing.T) {
	r := results{}
	err := r.read(strings.NewReader(`goos: linux
BenchmarkPath/all_but_counting/10k-2         	     126	   3 ns/op 3000000 cpu-ns/op	  94.12 MB/s	 1199561 B/op
BenchmarkPath/all_but_counting/10k-2         	     126	   1 ns/op 1000000 cpu-ns/op	  94.12 MB/s	 1199561 B/op
BenchmarkPath/all_but_counting/10k-2         	     126	   2 ns/op 1500000 cpu-ns/op	  90 MB/s	 1199561 B/op
BenchmarkStep/100         	     2	   5 ns/op
BenchmarkStep/100         	     2	   7 ns/op
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ms("Path/all_but_counting/10k"); got != 1.5 {
		t.Errorf("the median of three is %v ms", got)
	}
	if got := r["Path/all_but_counting/10k"]["MB/s"]; got != 94.12 {
		t.Errorf("the median rate is %v", got)
	}
	if got := r["Step/100"]["ns/op"]; got != 6 {
		t.Errorf("the median of two is %v", got)
	}
	if err := r.read(strings.NewReader("BenchmarkX 1 many ns/op\n")); err == nil {
		t.Error("a figure that is none was read")
	}
}

// TestWrite: ratios and exponents of what was measured, dashes for what was not.
func TestWrite(t *testing.T) {
	r := &report{bench: results{
		"Tokenizer/code/palimpsest":           {"MB/s": 30, "ns/op": 2, "cpu-ns/op": 1, "tokens": 5},
		"Tokenizer/code/pkoukk/tiktoken-go":   {"MB/s": 4, "ns/op": 1, "cpu-ns/op": 1, "tokens": 5},
		"Path/render/10k":                     {"cpu-ns/op": 1e6},
		"Path/render/1000k":                   {"cpu-ns/op": 1e8, "B/op": 2e6},
		"PrepareStep/memory/1000_messages":    {"cpu-ns/op": 2000},
		"PrepareStep/memory/100000_messages":  {"cpu-ns/op": 2500},
		"Path/plan_again/100k":                {"cpu-ns/op": 1e6},
		"Path/plan_again/something_unrelated": {"ns/op": 1},
	}, memory: &memory{text: 3e6}, peers: &measured{}}
	r.peers.Apply = append(r.peers.Apply, struct {
		Name string  `json:"name"`
		Size int     `json:"size"`
		MS   float64 `json:"ms"`
	}{"slow", 100_000, 40})
	var b strings.Builder
	asked := map[string]bool{}
	for _, part := range parts {
		asked[part] = true
	}
	if err := r.write(&b, asked); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| pkoukk/tiktoken-go | 4.00 | 15.0 × | 5 |",
		"| render a plan | 1.00 | – | 100 | 1.00 | 2.00 |",
		"| in memory | – | 2.00 | – | 2.50 | 1.25 × |",
		"| slow | – | 40.0 | – | – | 40.0 × | – |",
		"| the request as JSON | 3.00 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}

// TestTexts: there is something to count, and it is the same each time.
func TestTexts(t *testing.T) {
	for _, text := range texts {
		a, err := readText("../..", text.globs)
		if err != nil || len(a) < 50_000 {
			t.Errorf("%s: %d bytes, %v", text.name, len(a), err)
		}
		if b, _ := readText("../..", text.globs); a != b {
			t.Errorf("%s differs when it is read again", text.name)
		}
	}
	if _, err := readText("../..", []string{"no-such-folder/*"}); err == nil {
		t.Error("no file and no error")
	}
}
