package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/brief"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// inspection is what inspect tells of one conversation.
type inspection struct {
	Input   source `json:"input"`
	Counter string `json:"counter"`
	counting
	Tokens  int           `json:"tokens"`
	System  int           `json:"system_tokens"`
	Tools   int           `json:"tool_tokens"`
	Framing int           `json:"framing_tokens"`
	Kinds   []kindRow     `json:"by_kind"`
	ByTool  []inspectTool `json:"by_tool"`
	Largest []largeRow    `json:"largest"`
	Repeats []repeatRow   `json:"repeats"`
	Files   []fileRow     `json:"files"`
	Stale   staleSum      `json:"out_of_date"`
	Busiest []turnRow     `json:"largest_turns"`
	Own     []ownRow      `json:"own_compactions"`
	Skipped []kindRow     `json:"skipped_lines"`
}

type kindRow struct {
	Name   string    `json:"name"`
	Count  int       `json:"count"`
	Tokens int       `json:"tokens"`
	OfIt   []kindRow `json:"of_it,omitempty"`
}

type inspectTool struct {
	Name      string `json:"tool"`
	Calls     int    `json:"calls"`
	Failed    int    `json:"failed"`
	Arguments int    `json:"argument_tokens"`
	Results   int    `json:"result_tokens"`
	Durable   string `json:"durability"`
}

type largeRow struct {
	Tokens int         `json:"tokens"`
	Turn   int         `json:"turn"`
	Role   thread.Role `json:"role"`
	What   string      `json:"what"`
	Stale  string      `json:"out_of_date,omitempty"`
}

type repeatRow struct {
	Call   string `json:"call"`
	Times  int    `json:"times"`
	Tokens int    `json:"tokens"`
}

// fileRow is a file that was read or changed more than once.
type fileRow struct {
	Path    string `json:"path"`
	Reads   int    `json:"reads"`
	Changes int    `json:"changes"`
	Tokens  int    `json:"result_tokens"`
}

type staleSum struct {
	Results int `json:"results"`
	Tokens  int `json:"tokens"`
}

type turnRow struct {
	Turn   int    `json:"turn"`
	Steps  int    `json:"messages"`
	Tokens int    `json:"tokens"`
	Text   string `json:"text"`
}

type ownRow struct {
	Turn    int    `json:"turn"`
	Trigger string `json:"trigger,omitempty"`
	Before  int    `json:"tokens_before,omitempty"`
}

// few is the length of inspect's lists.
const few = 8

func inspectCommand(s Streams) *cobra.Command {
	var in input
	var counter string
	var asJSON bool
	c := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Show where the tokens of a transcript are, what repeats and what would go first",
		Example: "  palimpsest inspect session.jsonl\n  palimpsest inspect runs.jsonl --run 3 --json",
		Args:    exactly(1, "one FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if counter != "" { // before the file is read
				if _, _, err := counterNamed(counter, "--counter"); err != nil {
					return err
				}
			}
			if err := in.load(args[0], s.In); err != nil {
				return err
			}
			if in.run == 0 && len(in.file.Transcripts) > 1 {
				return listRuns(&in, &target{counter: counter}, asJSON, s)
			}
			if err := in.choose(); err != nil {
				return err
			}
			count, counted, err := (&target{counter: counter}).count(&in, "")
			if err != nil {
				return err
			}
			found := inspect(&in, count)
			found.counting = counted
			if asJSON {
				return writeJSON(s.Out, found)
			}
			found.print(newPrinter(s.Out))
			return nil
		},
	}
	c.Flags().StringVar(&in.from, "from", "", "the input is `FORMAT` (default: detected): "+formats())
	c.Flags().IntVar(&in.run, "run", 0, "look at the `N`-th conversation of a file that holds several")
	c.Flags().StringVar(&counter, "counter", "", "count with `NAME` (default: as the model that the file names): "+counterNames)
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return c
}

// listRuns shows what a file of several conversations holds.
func listRuns(in *input, by *target, asJSON bool, s Streams) error {
	type row struct {
		Run    int    `json:"run"`
		Name   string `json:"name"`
		Msgs   int    `json:"messages"`
		Turns  int    `json:"turns"`
		Tokens int    `json:"tokens"`
		Task   string `json:"task"`
	}
	var rows []row
	for n, t := range in.file.Transcripts {
		in.Transcript = &t
		count, _, err := by.count(in, "")
		if err != nil {
			return err
		}
		r := row{Run: n + 1, Name: t.Name, Msgs: t.Thread.Len(), Turns: t.Thread.Turns(), Tokens: count.System(t.System) + count.Tools(t.Tools)}
		for _, m := range uncopied.All(t.Thread) {
			r.Tokens += count.Message(m)
			if r.Task == "" && m.StartsTurn() {
				r.Task = shorten(brief.Words(m), 200)
			}
		}
		rows = append(rows, r)
	}
	if asJSON {
		return writeJSON(s.Out, rows)
	}
	p := newPrinter(s.Out)
	p.line("%s · %s · %s", in.path, in.file.Format, plural(len(rows), "conversation"))
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{fmt.Sprint(r.Run), number(r.Msgs), number(r.Turns), number(r.Tokens), r.Task})
	}
	p.table([]string{">run", ">messages", ">turns", ">tokens", "first request"}, cells)
	p.line("look at one with --run N")
	return nil
}

func inspect(in *input, count *token.Counter) *inspection {
	out := &inspection{
		Input: newSource(in), Counter: count.Name(),
		System: count.System(in.System), Tools: count.Tools(in.Tools),
	}
	out.Framing = count.Overhead()
	out.Tokens = out.Framing + out.System + out.Tools
	seen := tally{
		pairs: thread.Pair(in.Thread), kinds: map[string]*kindRow{}, ofIt: map[string]map[string]*kindRow{},
		tools: map[string]*inspectTool{}, repeats: map[string]*repeatRow{}, files: map[string]*fileRow{}, turns: map[int]*turnRow{},
	}
	stale := strategy.Superseded(in.Thread, seen.pairs)
	for i, m := range uncopied.All(in.Thread) {
		size := count.Message(m)
		out.Tokens += size
		seen.message(m, size, count)
		out.Largest = append(out.Largest, largeRow{
			Tokens: size, Turn: m.Turn, Role: m.Role, Stale: stale[i],
			What: shorten(what(in.Thread, seen.pairs, in.Thread.Range(i, i+1)), 200),
		})
		if r, ok := m.Result(); ok {
			seen.result(in.Thread, i, r, size)
			if stale[i] != "" {
				out.Stale.Results++
				out.Stale.Tokens += size
			}
		}
	}
	out.finish(in, &seen)
	return out
}

func partName(p thread.Part) string {
	switch p := p.(type) {
	case thread.Reasoning:
		return "reasoning"
	case thread.Media:
		return string(p.Type) + "s"
	case thread.Opaque:
		return p.Kind
	}
	return "other"
}

// finish sorts what was found, the largest first, and cuts the lists.
func (out *inspection) finish(in *input, seen *tally) {
	for _, name := range slices.Sorted(maps.Keys(seen.kinds)) {
		kind := *seen.kinds[name]
		for _, part := range slices.Sorted(maps.Keys(seen.ofIt[name])) {
			kind.OfIt = append(kind.OfIt, *seen.ofIt[name][part])
		}
		out.Kinds = append(out.Kinds, kind)
	}
	for _, name := range slices.Sorted(maps.Keys(seen.tools)) {
		out.ByTool = append(out.ByTool, *seen.tools[name])
	}
	slices.SortStableFunc(out.ByTool, func(a, b inspectTool) int {
		return cmp.Compare(b.Results+b.Arguments, a.Results+a.Arguments)
	})
	slices.SortStableFunc(out.Largest, func(a, b largeRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	out.Largest = out.Largest[:min(few, len(out.Largest))]
	for _, call := range slices.Sorted(maps.Keys(seen.repeats)) {
		if seen.repeats[call].Times > 1 {
			out.Repeats = append(out.Repeats, *seen.repeats[call])
		}
	}
	slices.SortStableFunc(out.Repeats, func(a, b repeatRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	out.Repeats = out.Repeats[:min(few, len(out.Repeats))]
	for _, path := range slices.Sorted(maps.Keys(seen.files)) {
		if f := seen.files[path]; f.Reads+f.Changes > 1 {
			out.Files = append(out.Files, *f)
		}
	}
	slices.SortStableFunc(out.Files, func(a, b fileRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	out.Files = out.Files[:min(few, len(out.Files))]
	for _, n := range slices.Sorted(maps.Keys(seen.turns)) {
		out.Busiest = append(out.Busiest, *seen.turns[n])
	}
	slices.SortStableFunc(out.Busiest, func(a, b turnRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	out.Busiest = out.Busiest[:min(few, len(out.Busiest))]
	for _, c := range in.Compactions {
		turn := in.Thread.Turns()
		if c.At < in.Thread.Len() {
			turn = uncopied.At(in.Thread, c.At).Turn
		}
		out.Own = append(out.Own, ownRow{Turn: turn, Trigger: c.Trigger, Before: c.TokensBefore})
	}
	for _, list := range []struct {
		what  string
		lines map[string]int
	}{{"", in.file.Report.Skipped}, {"unknown: ", in.file.Report.Unknown}} {
		for _, name := range slices.Sorted(maps.Keys(list.lines)) {
			out.Skipped = append(out.Skipped, kindRow{Name: list.what + name, Count: list.lines[name]})
		}
	}
}

func (out *inspection) print(p *printer) {
	out.Input.print(p)
	if out.Input.Model != "" {
		p.text("model %s", out.Input.Model)
	}
	out.printKinds(p)
	var rows [][]string
	for n, t := range out.ByTool {
		if n == manyTools {
			break
		}
		rows = append(rows, []string{toolName(t.Name), number(t.Calls), number(t.Failed), number(t.Arguments), number(t.Results), t.Durable})
	}
	p.section("tools", []string{"tool", ">calls", ">failed", ">arguments", ">results", "results are"}, rows)
	if more := len(out.ByTool) - manyTools; more > 0 {
		p.line("and %s", plural(more, "more tool"))
	}
	rows = nil
	for _, l := range out.Largest {
		rows = append(rows, []string{number(l.Tokens), fmt.Sprint(l.Turn), string(l.Role), l.What, l.Stale})
	}
	p.section("largest messages", []string{">tokens", ">turn", "role", "~what", "out of date because"}, rows)
	rows = nil
	for _, r := range out.Repeats {
		rows = append(rows, []string{number(r.Times), number(r.Tokens), r.Call})
	}
	p.section("the same call again", []string{">times", ">tokens", "call"}, rows)
	rows = nil
	for _, f := range out.Files {
		rows = append(rows, []string{number(f.Reads), number(f.Changes), number(f.Tokens), f.Path})
	}
	p.section("files read or changed again", []string{">reads", ">changes", ">tokens", "file"}, rows)
	rows = nil
	for _, t := range out.Busiest {
		rows = append(rows, []string{fmt.Sprint(t.Turn), number(t.Steps), number(t.Tokens), t.Text})
	}
	p.section("largest turns", []string{">turn", ">messages", ">tokens", "begins with"}, rows)
	out.printEnd(p)
}

// printKinds shows where the tokens are: parts that add up to the whole.
func (out *inspection) printKinds(p *printer) {
	var rows [][]string
	row := func(name, count string, tokens int) {
		if tokens > 0 {
			rows = append(rows, []string{name, count, number(tokens), percent(tokens, out.Tokens)})
		}
	}
	row("system prompt", "", out.System)
	row("tool definitions", "", out.Tools)
	for _, k := range out.Kinds {
		row(k.Name, number(k.Count), k.Tokens)
		for _, part := range k.OfIt {
			row("  of it "+part.Name, number(part.Count), part.Tokens)
		}
	}
	row("framing", "", out.Framing)
	p.section(fmt.Sprintf("%s tokens, counted with %s%s", number(out.Tokens), out.Counter, out.counting), []string{"", ">count", ">tokens", ">share"}, rows)
}

func (out *inspection) printEnd(p *printer) {
	p.line("")
	if len(out.Own) > 0 {
		var turns []string
		for _, c := range out.Own {
			turns = append(turns, strings.TrimSpace(fmt.Sprintf("%d %s", c.Turn, c.Trigger)))
		}
		p.text("the agent compacted by itself in turn %s", strings.Join(turns, ", "))
	}
	if len(out.Skipped) > 0 {
		var kinds []string
		for _, l := range out.Skipped {
			kinds = append(kinds, fmt.Sprintf("%s (%s)", l.Name, number(l.Count)))
		}
		p.text("lines without a message: %s", strings.Join(kinds, ", "))
	}
	if out.Stale.Results == 0 {
		p.text("no result is out of date: what goes first is what is old and large")
	} else {
		p.text("%s (%s tokens, %s) are out of date: a later step read, changed or ran the same again. They would go first.",
			plural(out.Stale.Results, "result"), number(out.Stale.Tokens), percent(out.Stale.Tokens, out.Tokens))
	}
	// Not wrapped, so that it can be copied.
	p.line("see: palimpsest plan %s --budget %d", out.Input.arguments(), out.Tokens/2)
}
