package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/test/cputime"
)

// sizes are the histories, in tokens.
var sizes = []int{10_000, 100_000, 1_000_000}

// stages are the rows of the path, by the names of BenchmarkPath.
var stages = []struct{ bench, says string }{
	{"decode", "decode the request"},
	{"ids", "ids of the messages"},
	{"count", "count its tokens"},
	{"plan_first", "plan and render, first (counts each message)"},
	{"plan_again", "plan and render, again"},
	{"summary_again", "the same to a twelfth, with a summary"},
	{"render", "render a plan"},
	{"encode", "encode the prompt"},
	{"all_but_counting", "all but counting"},
}

// messages are the histories of the steps.
var messages = []int{100, 1_000, 10_000, 100_000}

// report is all that was measured in one run.
type report struct {
	bench  results
	peers  *measured // nil: not installed
	memory *memory
}

// write writes the tables that were asked for in Markdown.
func (r *report) write(w io.Writer, asked map[string]bool) error {
	var b strings.Builder
	for n, table := range []func(*strings.Builder){r.tokenizers, r.path, r.others, r.steps, r.store} {
		if asked[parts[n]] {
			table(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line writes a row of cells.
func line(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func head(b *strings.Builder, title string, cells ...string) {
	b.WriteString("\n**" + title + "**\n\n")
	line(b, cells...)
	b.WriteString("|---|" + strings.Repeat("--:|", len(cells)-1) + "\n")
}

// number has three significant digits.
func number(x float64) string {
	switch {
	case x == 0:
		return "–"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// times is how many times slower, or larger, x is.
func times(x, ours float64) string {
	if x == 0 || ours == 0 {
		return "–"
	}
	return number(x/ours) + " ×"
}

// growth is the exponent between the smallest and the largest of the sizes: 1 is
// linear.
func growth(first, last float64) string {
	if first == 0 || last == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", math.Log(last/first)/math.Log(float64(sizes[len(sizes)-1])/float64(sizes[0])))
}

const us = "palimpsest"

// rate is what a tokenizer reaches on a text, in MB/s, and the tokens it found.
type rate struct {
	rate   float64
	tokens int
}

func (r *report) tokenizers(b *strings.Builder) {
	rates := map[string]map[string]rate{}
	names := []string{us, "tiktoken-go/tokenizer", "pkoukk/tiktoken-go"}
	put := func(name, text string, x rate) {
		if rates[name] == nil {
			rates[name] = map[string]rate{}
		}
		rates[name][text] = x
	}
	for _, name := range names {
		for _, text := range texts {
			m := r.bench["Tokenizer/"+text.name+"/"+name]
			put(name, text.name, rate{m["MB/s"] * m["ns/op"] / max(1, m[cputime.Unit]), int(m["tokens"])})
		}
	}
	if r.peers != nil {
		for _, t := range r.peers.Tokenizers {
			if !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
			put(t.Name, t.Text, rate{t.Rate, t.Tokens})
		}
	}
	cells := []string{"o200k tokens, MB per second of processor time"}
	for _, text := range texts {
		cells = append(cells, text.name, "ours is faster", "tokens")
	}
	head(b, "Tokenizers", cells...)
	for _, name := range names {
		cells := []string{name}
		for _, text := range texts {
			x := rates[name][text.name]
			faster := times(rates[us][text.name].rate, x.rate)
			if name == us {
				faster = ""
			}
			cells = append(cells, number(x.rate), faster, fmt.Sprint(x.tokens))
		}
		line(b, cells...)
	}
}

func (r *report) path(b *strings.Builder) {
	head(b, "A history compacted to a quarter", "ms of processor", "10k tokens", "100k", "1M", "exponent", "allocated at 1M, MB")
	for _, s := range stages {
		cells := []string{s.says}
		var ms []float64
		for _, size := range sizes {
			ms = append(ms, r.bench.ms(fmt.Sprintf("Path/%s/%dk", s.bench, size/1000)))
			cells = append(cells, number(ms[len(ms)-1]))
		}
		allocated := r.bench[fmt.Sprintf("Path/%s/%dk", s.bench, sizes[len(sizes)-1]/1000)]["B/op"]
		line(b, append(cells, growth(ms[0], ms[len(ms)-1]), number(allocated/1e6))...)
	}
}

func (r *report) others(b *strings.Builder) {
	if r.peers == nil {
		b.WriteString("\nThe libraries of npm are not installed: make bench-peers.\n")
		return
	}
	head(b, "The same histories in other libraries, counts known", "ms of processor", "10k tokens", "100k", "1M", "exponent", "to ours at 100k", "at 1M")
	var ours []float64
	cells := []string{"palimpsest: plan and render, again"}
	for _, size := range sizes {
		ours = append(ours, r.bench.ms(fmt.Sprintf("Path/plan_again/%dk", size/1000)))
		cells = append(cells, number(ours[len(ours)-1]))
	}
	line(b, append(cells, growth(ours[0], ours[2]), "", "")...)
	var names []string
	ms := map[string]map[int]float64{}
	for _, a := range r.peers.Apply {
		if ms[a.Name] == nil {
			names = append(names, a.Name)
			ms[a.Name] = map[int]float64{}
		}
		ms[a.Name][a.Size] = a.MS
	}
	for _, name := range names {
		x := ms[name]
		line(b, name, number(x[sizes[0]]), number(x[sizes[1]]), number(x[sizes[2]]), growth(x[sizes[0]], x[sizes[2]]), times(x[sizes[1]], ours[1]), times(x[sizes[2]], ours[2]))
	}
}

func (r *report) steps(b *strings.Builder) {
	cells := []string{"µs of processor time, by number of messages before it"}
	for _, n := range messages {
		cells = append(cells, fmt.Sprint(n))
	}
	head(b, "One step with a compacted history", append(cells, "the last to 1,000")...)
	for _, row := range []struct{ says, bench string }{
		{"in memory", "PrepareStep/memory/%d_messages"},
		{"with SQLite", "PrepareStep/sqlite/%d_messages"},
		{"prepare and finish at the daemon, over HTTP, with SQLite", "Step/%d"},
	} {
		cells := []string{row.says}
		base, last := 0.0, 0.0
		for _, n := range messages {
			us := r.bench.ms(fmt.Sprintf(row.bench, n)) * 1000
			cells = append(cells, number(us))
			if us > 0 {
				last = us
			}
			if n == 1_000 {
				base = us
			}
		}
		line(b, append(cells, times(last, base))...)
	}
}

func (r *report) store(b *strings.Builder) {
	m := r.memory
	head(b, "Memory, a history of a million tokens", "MB", "")
	mb := func(n int) string { return number(float64(n) / 1e6) }
	line(b, "the request as JSON", mb(m.text))
	line(b, "the thread, on the heap", mb(m.history))
	line(b, "what a compactor caches of it", mb(m.known))
	line(b, fmt.Sprintf("`palimpsest compact` on the file, %d ms of processor in all: resident at most", m.took.Milliseconds()), mb(m.resident))
}
