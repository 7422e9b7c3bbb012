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

	"github.com/palimpsest-ai/palimpsest/lab/eval"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// example is a small result of every measure, with words that a page must not
// take for its own.
func example() *Data {
	strata := map[string]eval.Stratum{
		"type path": {Needs: 6, Bound: 0.5, Lookup: 1}, "type symbol": {Needs: 4, Bound: 0.25, Lookup: 0.5},
		"age 1-5": {Needs: 10, Bound: 0.4, Lookup: 0.8}, "origin tool": {Needs: 10, Bound: 0.4, Lookup: 0.8},
	}
	return &Data{
		Command: "palimpsest-eval <b>x</b> --html page.html",
		Note:    "Broken off & more",
		Recall: &eval.Report{
			Split: references.Dev, Counter: "o200k", Sessions: 3,
			Corpus: "0123abcd",
			Columns: []eval.Column{{Name: "8k", Sessions: 3, Moments: 9, Eligible: 1234, Used: 5678, Share: 0.217, Scores: []eval.Score{
				{Contender: best, Bound: 0.5, Low: 0.4, High: 0.6, Strata: strata, Ahead: &eval.Interval{Mean: 0.25, Low: 0.1, High: 0.4}},
				{Contender: "ladder", Failed: 1}, {Contender: "loop", Bound: 0.9, Lookup: 0.95, Over: 1},
				{Contender: auto, Bound: 0.75, Lookup: 0.9, Low: 0.7, High: 0.8, Trail: 0.98, Files: 2, Strata: strata},
			}}},
			Areas:  []eval.Column{{Name: "Area over 2k, 4k, 8k", Sessions: 1, Scores: []eval.Score{{Contender: auto, Bound: 0.6}}}},
			Misses: []eval.Miss{{Session: "s<1>", Budget: "8k", Type: "path", Value: "</td><script>alert(1)</script>", Line: "a\xffb"}},
		},
		Cost: &eval.CostReport{
			Model: "m", Date: "2026-11-01", Source: "https://example.org/prices", Sessions: 2, Requests: 20,
			Gaps: eval.LognormalGaps, Iso: []string{"auto, 32k left"},
			Rows: []eval.CostRow{
				{Contender: auto, Line: auto, Size: "20k", Input: 0.5, All: 0.52, Refs: 10, Recall: 0.9},
				{Contender: "auto, 32k left", Line: auto, Size: "32k", Input: 0.6, All: 0.61, Refs: 10, Recall: 0.96},
				{Contender: "auto, 8k left", Line: auto, Size: "8k", Input: 0.3, All: 0.31, Refs: 10, Recall: 0.8},
				{Contender: "20k left at 100k", Line: "newest 20k left at a mark", Size: "100k", Input: 0.7, Refs: 10, Recall: 0.5},
				{Contender: "lower bound", Input: 0.1},
			},
			Traces: []eval.Trace{{Session: "s1", Contender: auto, Prompts: []int{10, 20, 15}, Spent: []float64{10, 25, 40}}},
		},
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
		"Broken off &amp; more", "&lt;b&gt;x&lt;/b&gt;", "<td>0.750</td>", "0.700…0.800", "1\u202f234 references", "(21.7 %)", "Bound recall by type of identifier",
		"auto still shows 75 % of what the agent writes again, and 90 % with one lookup; the best simple way shows 50 %",
		"conversations cost 52 % of what they cost without compaction", "(0.90 / 0.95)", "not made", "Area over 2k, 4k, 8k",
		"+0.250 (+0.100…+0.400)", "auto, 32k left</td><td>0.960</td><td>0.610", "auto 8k: cost 0.310", "newest 20k left at a mark", "times between requests are lognormal", "<dt>best simple</dt>", "0123abcd", "path (6)",
		"Size of the prompt at each request", "Cost of the input up to each request", "300\u202f000", "contents[0]: &lt;role&gt;",
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
	if len(pictures) != 7 {
		t.Errorf("%d pictures, want 7", len(pictures))
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
	if page = write(t, &Data{Recall: &eval.Report{}, Cost: &eval.CostReport{}, Validity: &eval.ValidityReport{}}); strings.Contains(page, "NaN") {
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

// TestFrontier: the points of a line are joined from the cheapest on, words cover
// no other words and no point, and stay in the picture.
func TestFrontier(t *testing.T) {
	curves := []curve{{name: "auto", strong: true}}
	for n := range 6 {
		curves[0].spots = append(curves[0].spots, spot{name: "8k", x: 0.3 + 0.05*float64(n), y: 0.94 + 0.01*float64(n)})
	}
	for n := range 8 {
		name := "a way to compact " + string(rune('a'+n))
		curves = append(curves, curve{name: name, spots: []spot{{x: 0.9 + 0.01*float64(n), y: 0.7 + 0.005*float64(n)}}})
	}
	picture := string(frontierPlot("x", "title", "across", "up", curves))
	if picture != string(frontierPlot("x", "title", "across", "up", curves)) {
		t.Error("the same points give another picture")
	}
	p := &placer{width: 760, height: 444}
	var points, words []box
	for n := range 12 {
		at := point{700, 40 + 4*float64(n)}
		mark := box{at.x - 6, at.y - 6, at.x + 6, at.y + 6}
		p.reserve(mark)
		points = append(points, mark)
		s := p.placeNear(at, "a long name of a contender")
		p.reserve(s.box)
		if s.box.x1 < 0 || s.box.x2 > 760 || s.box.y1 < 0 || s.box.y2 > 444 {
			t.Errorf("words stand at %+v", s.box)
		}
		for _, w := range append(words, points...) {
			if w.overlaps(s.box) {
				t.Errorf("words at %+v cover %+v", s.box, w)
			}
		}
		words = append(words, s.box)
	}
}

// TestNegativeZero: a tick at nothing is written as nothing.
func TestNegativeZero(t *testing.T) {
	for _, v := range (axis{0, 1, 200, 700}).ticks(10) {
		if strings.HasPrefix(tickText(v), "-") {
			t.Errorf("a tick is %s", tickText(v))
		}
	}
}
