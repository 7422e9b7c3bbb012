package htmlreport

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/eval"
)

// example is a small result of every measure, with words that a page must not
// take for its own.
func example() *Data {
	strata := map[string]eval.Stratum{
		"type path": {Needs: 6, Bound: 0.5, Lookup: 1}, "type symbol": {Needs: 4, Bound: 0.25, Lookup: 0.5},
		"age 1-5": {Needs: 10, Bound: 0.4, Lookup: 0.8}, "origin tool": {Needs: 10, Bound: 0.4, Lookup: 0.8},
	}
	return &Data{
		Command: "palimpsest eval <b>x</b> --html page.html",
		Note:    "Broken off & more",
		Recall: &eval.Report{
			Split: eval.Dev, Counter: "o200k", Sessions: 3,
			Columns: []eval.Column{{Name: "8k", Sessions: 3, Moments: 9, Eligible: 1234, Used: 5678, Scores: []eval.Score{
				{Contender: best, Bound: 0.5, Low: 0.4, High: 0.6, Strata: strata},
				{Contender: auto, Bound: 0.75, Low: 0.7, High: 0.8, Trail: 0.98, Files: 2, Strata: strata},
			}}},
			Misses: []eval.Miss{{Session: "s<1>", Budget: "8k", Type: "path", Value: "</td><script>alert(1)</script>", Line: "a\xffb"}},
		},
		Cost: &eval.CostReport{
			Model: "m", Date: "2026-11-01", Source: "https://example.org/prices", Sessions: 2, Requests: 20,
			Rows:   []eval.CostRow{{Contender: auto, Input: 0.5, Refs: 10, Recall: 0.9}, {Contender: "20k left at 100k", Input: 0.7, Refs: 10, Recall: 0.5}},
			Traces: []eval.Trace{{Session: "s1", Contender: auto, Prompts: []int{10, 20, 15}, Spent: []float64{10, 25, 40}}},
		},
		Drift: &eval.DriftReport{Sessions: 2, Rounds: 2, Budget: 16000, Canaries: 104, Asked: []int{1, 2}, Rows: []eval.DriftRow{
			{Contender: auto, Canaries: []float64{1, 0.25}, CanariesTotal: []float64{1, 0.5}, Trace: []float64{1, 1}, TraceTotal: []float64{1, 1}, HalfLife: 3},
		}},
		Validity: &eval.ValidityReport{Rows: []eval.ValidityRow{{Policy: auto, API: "gemini", Prompts: 300000, Invalid: 1}}, Problems: []string{"contents[0]: <role>"}},
	}
}

func write(t *testing.T, d *Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPage: everything is there, well formed, escaped, without anything from
// elsewhere, and the same bytes each time.
func TestPage(t *testing.T) {
	page := write(t, example())
	for _, want := range []string{
		"Broken off &amp; more", "&lt;b&gt;x&lt;/b&gt;", "<td>0.750</td>", "0.700…0.800", "1 234 references", "Bound recall by type", "path (6)",
		"Size of the prompt at each request", "Cost of the input up to each request", "300 000", "Canaries that stand", "<td>0.250</td>", "contents[0]: &lt;role&gt;",
		"prefers-color-scheme:dark", `role="img"`, "&lt;/td&gt;&lt;script&gt;",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, bad := range []string{"<script", "@import", "<link", "src=", "url(", "NaN", "ZgotmplZ", "<no value>", "\xff"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	pictures := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(pictures) != 8 {
		t.Errorf("%d pictures, want 8", len(pictures))
	}
	for _, p := range pictures {
		decoder := xml.NewDecoder(strings.NewReader(p))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, p)
			}
		}
		if !strings.Contains(p, "<title id=") {
			t.Errorf("a picture has no title: %.200s", p)
		}
	}
	ids := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[id[1]] {
			t.Errorf("two things are called %s", id[1])
		}
		ids[id[1]] = true
	}
	for range 100 {
		if write(t, example()) != page {
			t.Fatal("the same data gave another page")
		}
	}
}

// TestParts: what was not measured is not on the page.
func TestParts(t *testing.T) {
	page := write(t, &Data{})
	if strings.Contains(page, "<svg") || strings.Contains(page, "<table") || !strings.Contains(page, "Method") {
		t.Errorf("a page of nothing is\n%s", page)
	}
	if page = write(t, &Data{Recall: &eval.Report{}, Cost: &eval.CostReport{}, Drift: &eval.DriftReport{}, Validity: &eval.ValidityReport{}}); strings.Contains(page, "NaN") {
		t.Errorf("empty results give\n%s", page)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct{ low, high float64 }{{0, 1}, {0, 0.37}, {0, 254321}, {0, 3}, {5, 5}, {0, math.Inf(1)}} {
		ticks := axis{c.low, c.high, 0, 100}.ticks(8)
		if len(ticks) == 0 || len(ticks) > 11 || ticks[0] < c.low-1e-9 || ticks[len(ticks)-1] > c.high+1e-6*c.high {
			t.Errorf("%v: %v", c, ticks)
		}
	}
}
