package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// inspection is what inspect tells of one conversation.
type inspection struct {
	Input   source        `json:"input"`
	Counter string        `json:"counter"`
	Tokens  int           `json:"tokens"`
	System  int           `json:"system_tokens"`
	Tools   int           `json:"tool_tokens"`
	Kinds   []kindRow     `json:"by_kind"`
	ByTool  []inspectTool `json:"by_tool"`
	Largest []largeRow    `json:"largest"`
	Repeats []repeatRow   `json:"repeats"`
	Stale   staleSum      `json:"out_of_date"`
	Busiest []turnRow     `json:"largest_turns"`
	Own     []ownRow      `json:"own_compactions"`
	Skipped []kindRow     `json:"skipped_lines"`
}

type kindRow struct {
	Name   string `json:"name"`
	Count  int    `json:"count"`
	Tokens int    `json:"tokens"`
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
		Use:   "inspect FILE",
		Short: "Show where the tokens of a transcript are, what repeats and what would go first",
		Args:  exactly(1, "one FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			count, err := token.New(counter, nil)
			if err != nil {
				return fmt.Errorf("%w: --counter: %w", errUsage, err)
			}
			if err := in.load(args[0], s.In); err != nil {
				return err
			}
			if in.run == 0 && len(in.file.Transcripts) > 1 {
				return listRuns(&in, count, asJSON, s)
			}
			if err := in.choose(); err != nil {
				return err
			}
			found := inspect(&in, count)
			if asJSON {
				return writeJSON(s.Out, found)
			}
			found.print(newPrinter(s.Out))
			return nil
		},
	}
	c.Flags().StringVar(&in.from, "from", "", "the input is `FORMAT` (default: detected): "+formats())
	c.Flags().IntVar(&in.run, "run", 0, "look at the `N`-th conversation of a file that holds several")
	c.Flags().StringVar(&counter, "counter", "o200k", "count with `name`")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return c
}

// listRuns shows what a file of several conversations holds.
func listRuns(in *input, count *token.Counter, asJSON bool, s Streams) error {
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
		r := row{Run: n + 1, Name: t.Name, Msgs: t.Thread.Len(), Turns: t.Thread.Turns(), Tokens: count.System(t.System) + count.Tools(t.Tools)}
		for _, m := range t.Thread.All() {
			r.Tokens += count.Message(m)
			if r.Task == "" && m.StartsTurn() {
				r.Task = shorten(firstWords(m), 200)
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
	out.Tokens = count.Overhead() + out.System + out.Tools
	pairs := thread.Pair(in.Thread)
	stale := strategy.Superseded(in.Thread, pairs)
	kinds := map[string]*kindRow{}
	tools := map[string]*inspectTool{}
	repeats := map[string]*repeatRow{}
	turns := map[int]*turnRow{}
	for i, m := range in.Thread.All() {
		size := count.Message(m)
		out.Tokens += size
		add(kinds, speaker(m), size)
		if turns[m.Turn] == nil {
			turns[m.Turn] = &turnRow{Turn: m.Turn, Text: shorten(firstWords(m), 200)}
		}
		turns[m.Turn].Steps++
		turns[m.Turn].Tokens += size
		for _, part := range m.Parts {
			switch part := part.(type) {
			case thread.Reasoning, thread.Media, thread.Opaque:
				one := thread.Message{Role: m.Role, Parts: []thread.Part{part}}
				empty := thread.Message{Role: m.Role}
				add(kinds, "  of it "+partName(part), count.Message(&one)-count.Message(&empty))
			case thread.ToolCall:
				tool(tools, part.Name).Calls++
				tool(tools, part.Name).Arguments += count.Text(part.Arguments)
			}
		}
		row := largeRow{Tokens: size, Turn: m.Turn, Role: m.Role, What: shorten(what(in.Thread, pairs, in.Thread.Range(i, i+1)), 200), Stale: stale[i]}
		if r, ok := m.Result(); ok {
			t := tool(tools, r.Tool)
			t.Results += size
			if r.Outcome == thread.Failure {
				t.Failed++
			}
			key := row.What
			if repeats[key] == nil {
				repeats[key] = &repeatRow{Call: key}
			}
			repeats[key].Times++
			repeats[key].Tokens += size
			if stale[i] != "" {
				out.Stale.Results++
				out.Stale.Tokens += size
			}
		}
		out.Largest = append(out.Largest, row)
	}
	out.finish(in, kinds, tools, repeats, turns)
	return out
}

func add(rows map[string]*kindRow, name string, tokens int) {
	if rows[name] == nil {
		rows[name] = &kindRow{Name: name}
	}
	rows[name].Count++
	rows[name].Tokens += tokens
}

func tool(tools map[string]*inspectTool, name string) *inspectTool {
	if tools[name] == nil {
		policy := toolpolicy.New(nil).Policy(name)
		tools[name] = &inspectTool{Name: name, Durable: string(policy.Durability)}
	}
	return tools[name]
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
func (out *inspection) finish(in *input, kinds map[string]*kindRow, tools map[string]*inspectTool, repeats map[string]*repeatRow, turns map[int]*turnRow) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		out.Kinds = append(out.Kinds, *kinds[name])
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		out.ByTool = append(out.ByTool, *tools[name])
	}
	slices.SortStableFunc(out.ByTool, func(a, b inspectTool) int {
		return cmp.Compare(b.Results+b.Arguments, a.Results+a.Arguments)
	})
	slices.SortStableFunc(out.Largest, func(a, b largeRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	out.Largest = out.Largest[:min(few, len(out.Largest))]
	for _, call := range slices.Sorted(maps.Keys(repeats)) {
		if repeats[call].Times > 1 {
			out.Repeats = append(out.Repeats, *repeats[call])
		}
	}
	slices.SortStableFunc(out.Repeats, func(a, b repeatRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	out.Repeats = out.Repeats[:min(few, len(out.Repeats))]
	for _, n := range slices.Sorted(maps.Keys(turns)) {
		out.Busiest = append(out.Busiest, *turns[n])
	}
	slices.SortStableFunc(out.Busiest, func(a, b turnRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
	out.Busiest = out.Busiest[:min(few, len(out.Busiest))]
	for _, c := range in.Compactions {
		turn := in.Thread.Turns()
		if c.At < in.Thread.Len() {
			turn = in.Thread.At(c.At).Turn
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
		p.line("model %s", out.Input.Model)
	}
	p.heading(fmt.Sprintf("%s tokens, counted with %s", number(out.Tokens), out.Counter))
	var rows [][]string
	if out.System > 0 {
		rows = append(rows, []string{"system prompt", "", number(out.System), percent(out.System, out.Tokens)})
	}
	if out.Tools > 0 {
		rows = append(rows, []string{"tool definitions", "", number(out.Tools), percent(out.Tools, out.Tokens)})
	}
	for _, k := range out.Kinds {
		rows = append(rows, []string{k.Name, number(k.Count), number(k.Tokens), percent(k.Tokens, out.Tokens)})
	}
	p.table([]string{"", ">count", ">tokens", ">share"}, rows)

	p.heading("tools")
	rows = nil
	for _, t := range out.ByTool {
		rows = append(rows, []string{shorten(t.Name, 32), number(t.Calls), number(t.Failed), number(t.Arguments), number(t.Results), t.Durable})
	}
	p.table([]string{"tool", ">calls", ">failed", ">arguments", ">results", "results are"}, rows)

	p.heading("largest messages")
	rows = nil
	for _, l := range out.Largest {
		rows = append(rows, []string{number(l.Tokens), fmt.Sprint(l.Turn), string(l.Role), shorten(l.What, 44), l.Stale})
	}
	p.table([]string{">tokens", ">turn", "role", "what", "out of date because"}, rows)

	if len(out.Repeats) > 0 {
		p.heading("repeated calls")
		rows = nil
		for _, r := range out.Repeats {
			rows = append(rows, []string{number(r.Times), number(r.Tokens), r.Call})
		}
		p.table([]string{">times", ">tokens", "call"}, rows)
	}
	p.heading("largest turns")
	rows = nil
	for _, t := range out.Busiest {
		rows = append(rows, []string{fmt.Sprint(t.Turn), number(t.Steps), number(t.Tokens), t.Text})
	}
	p.table([]string{">turn", ">messages", ">tokens", "begins with"}, rows)
	for _, c := range out.Own {
		p.line("the agent compacted by itself in turn %d %s", c.Turn, c.Trigger)
	}
	for _, l := range out.Skipped {
		p.line("lines without a message: %s (%s)", l.Name, number(l.Count))
	}
	if out.Stale.Results > 0 {
		p.line("\n%s (%s tokens, %s) are out of date: a later step read, changed or ran the same again.",
			plural(out.Stale.Results, "result"), number(out.Stale.Tokens), percent(out.Stale.Tokens, out.Tokens))
		p.line("They would go first: see `palimpsest plan %s --budget %d`", out.Input.File, out.Tokens/2)
	}
}
