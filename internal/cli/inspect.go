package cli

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/brief"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
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
	c := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Show where the tokens of a transcript are, what repeats and what would go first",
		Example: "  palimpsest inspect session.jsonl\n  palimpsest inspect runs.jsonl --run 3 --json",
		Args:    exactly(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if counter != "" { // before the file is read
				if _, _, err := counterNamed(counter, "--counter"); err != nil {
					return err
				}
			}
			if err := in.load(args[0], s.In); err != nil {
				return err
			}
			by := &target{counter: counter}
			if in.run == 0 && len(in.file.Transcripts) > 1 {
				rows, err := runsOf(&in, by)
				if err != nil {
					return err
				}
				return tell(s.Out, c, rows, func(p *printer) { printRuns(p, &in, rows) })
			}
			if err := in.choose(); err != nil {
				return err
			}
			count, counted, err := by.count(&in, "")
			if err != nil {
				return err
			}
			found := inspect(&in, count)
			found.counting = counted
			return tell(s.Out, c, found, found.print)
		},
	}
	in.flags(c, "look at")
	c.Flags().StringVar(&counter, "counter", "", "count with `NAME` (default: as the model that the file names): "+counterNames)
	c.Flags().Bool("json", false, "write one JSON object")
	return c
}

// runRow is one of several conversations in a file.
type runRow struct {
	Run    int    `json:"run"`
	Name   string `json:"name"`
	Msgs   int    `json:"messages"`
	Turns  int    `json:"turns"`
	Tokens int    `json:"tokens"`
	Task   string `json:"task"`
}

// runsOf is what a file of several conversations holds.
func runsOf(in *input, by *target) (rows []runRow, err error) {
	for n, t := range in.file.Transcripts {
		in.Transcript = &t
		count, _, err := by.count(in, "")
		if err != nil {
			return nil, err
		}
		r := runRow{Run: n + 1, Name: t.Name, Msgs: t.Thread.Len(), Turns: t.Thread.Turns(), Tokens: count.System(t.System) + count.Tools(t.Tools)}
		for _, m := range uncopied.All(t.Thread) {
			r.Tokens += count.Message(m)
			if r.Task == "" && m.StartsTurn() {
				r.Task = shorten(brief.Words(m), 200)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func printRuns(p *printer, in *input, rows []runRow) {
	p.line("%s · %s · %s", in.path, in.file.Format, plural(len(rows), "conversation"))
	p.table([]string{">run", ">messages", ">turns", ">tokens", "first request"}, eachOf(rows, func(r runRow) []string {
		return []string{fmt.Sprint(r.Run), number(r.Msgs), number(r.Turns), number(r.Tokens), r.Task}
	}))
	p.line("look at one with --run N")
}

func inspect(in *input, count *token.Counter) *inspection {
	out := &inspection{
		Input: newSource(in), Counter: count.Name(),
		System: count.System(in.System), Tools: count.Tools(in.Tools), Framing: count.Overhead(),
	}
	out.Tokens = out.Framing + out.System + out.Tools
	seen := newTally(in.Thread)
	stale := strategy.Superseded(in.Thread, seen.pairs)
	for i, m := range uncopied.All(in.Thread) {
		size := count.Message(m)
		out.Tokens += size
		seen.message(i, m, size, count)
		out.Largest = append(out.Largest, largeRow{
			Tokens: size, Turn: m.Turn, Role: m.Role, Stale: stale[i],
			What: shorten(what(in.Thread, seen.pairs, in.Thread.Range(i, i+1)), 200),
		})
		if stale[i] != "" {
			out.Stale.Results++
			out.Stale.Tokens += size
		}
	}
	for name, kind := range seen.kinds.byKey() {
		for _, part := range seen.parts[name].byKey() {
			kind.OfIt = append(kind.OfIt, part)
		}
		out.Kinds = append(out.Kinds, kind)
	}
	out.ByTool = largest(seen.tools.rows(nil), math.MaxInt, func(t inspectTool) int { return t.Results + t.Arguments })
	out.Largest = largest(out.Largest, few, func(r largeRow) int { return r.Tokens })
	out.Repeats = largest(seen.repeats.rows(func(r repeatRow) bool { return r.Times > 1 }), few, func(r repeatRow) int { return r.Tokens })
	out.Files = largest(seen.files.rows(func(f fileRow) bool { return f.Reads+f.Changes > 1 }), few, func(f fileRow) int { return f.Tokens })
	out.Busiest = largest(seen.turns.rows(nil), few, func(t turnRow) int { return t.Tokens })
	for _, c := range in.Compactions {
		turn := in.Thread.Turns()
		if c.At < in.Thread.Len() {
			turn = uncopied.At(in.Thread, c.At).Turn
		}
		out.Own = append(out.Own, ownRow{Turn: turn, Trigger: c.Trigger, Before: c.TokensBefore})
	}
	skipped := func(what string, lines map[string]int) {
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			out.Skipped = append(out.Skipped, kindRow{Name: what + name, Count: lines[name]})
		}
	}
	skipped("", in.file.Report.Skipped)
	skipped("unknown: ", in.file.Report.Unknown)
	return out
}

func (out *inspection) print(p *printer) {
	out.Input.print(p)
	if out.Input.Model != "" {
		p.text("model %s", out.Input.Model)
	}
	out.printKinds(p)
	p.firstRows("tools", []string{"tool", ">calls", ">failed", ">arguments", ">results", "results are"}, eachOf(out.ByTool, func(t inspectTool) []string {
		return []string{toolName(t.Name), number(t.Calls), number(t.Failed), number(t.Arguments), number(t.Results), t.Durable}
	}), manyTools, "more tool")
	p.section("largest messages", []string{">tokens", ">turn", "role", "~what", "out of date because"}, eachOf(out.Largest, func(l largeRow) []string {
		return []string{number(l.Tokens), fmt.Sprint(l.Turn), string(l.Role), l.What, l.Stale}
	}))
	p.section("the same call again", []string{">times", ">tokens", "call"}, eachOf(out.Repeats, func(r repeatRow) []string {
		return []string{number(r.Times), number(r.Tokens), r.Call}
	}))
	p.section("files read or changed again", []string{">reads", ">changes", ">tokens", "file"}, eachOf(out.Files, func(f fileRow) []string {
		return []string{number(f.Reads), number(f.Changes), number(f.Tokens), f.Path}
	}))
	p.section("largest turns", []string{">turn", ">messages", ">tokens", "begins with"}, eachOf(out.Busiest, func(t turnRow) []string {
		return []string{fmt.Sprint(t.Turn), number(t.Steps), number(t.Tokens), t.Text}
	}))
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
		p.text("the agent compacted by itself in turn %s", listed(out.Own, func(c ownRow) string {
			return strings.TrimSpace(fmt.Sprintf("%d %s", c.Turn, c.Trigger))
		}))
	}
	if len(out.Skipped) > 0 {
		p.text("lines without a message: %s", listed(out.Skipped, func(l kindRow) string {
			return fmt.Sprintf("%s (%s)", l.Name, number(l.Count))
		}))
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

// rowsBy are rows by what they are about, as they are added up.
type rowsBy[K cmp.Ordered, R any] map[K]*R

// at is the row of a key, a new one where there was none.
func (m rowsBy[K, R]) at(key K, fresh func() R) *R {
	if m[key] == nil {
		row := fresh()
		m[key] = &row
	}
	return m[key]
}

// byKey are the rows in the order of their keys.
func (m rowsBy[K, R]) byKey() iter.Seq2[K, R] {
	return func(yield func(K, R) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, *m[key]) {
				return
			}
		}
	}
}

// rows are the rows that are wanted, all where wanted is nil, in the order of their keys.
func (m rowsBy[K, R]) rows(wanted func(R) bool) (rows []R) {
	for _, row := range m.byKey() {
		if wanted == nil || wanted(row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// largest sorts rows, the largest first, and keeps so many. Package slices would put the
// code of a sort into the program for each kind of row.
func largest[R any](rows []R, most int, size func(R) int) []R {
	sort.SliceStable(rows, func(i, j int) bool { return size(rows[i]) > size(rows[j]) })
	return rows[:min(most, len(rows))]
}

// tally collects what inspect counts while it walks over a conversation.
type tally struct {
	thread  *thread.Thread
	pairs   *thread.Pairing
	kinds   rowsBy[string, kindRow]            // by speaker
	parts   map[string]rowsBy[string, kindRow] // by speaker and kind of part
	tools   rowsBy[string, inspectTool]
	repeats rowsBy[string, repeatRow] // by the exact call
	files   rowsBy[string, fileRow]   // by path
	turns   rowsBy[int, turnRow]
}

func newTally(t *thread.Thread) *tally {
	return &tally{
		thread: t, pairs: thread.Pair(t), kinds: rowsBy[string, kindRow]{}, parts: map[string]rowsBy[string, kindRow]{},
		tools: rowsBy[string, inspectTool]{}, repeats: rowsBy[string, repeatRow]{}, files: rowsBy[string, fileRow]{}, turns: rowsBy[int, turnRow]{},
	}
}

// message counts the message at position i, of a size in tokens, and its parts.
func (s *tally) message(i int, m *thread.Message, size int, count *token.Counter) {
	who := brief.Speaker(m)
	add(s.kinds, who, size)
	turn := s.turns.at(m.Turn, func() turnRow { return turnRow{Turn: m.Turn, Text: shorten(brief.Words(m), 200)} })
	turn.Steps++
	turn.Tokens += size
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Reasoning, thread.Media, thread.Opaque:
			one := thread.Message{Role: m.Role, Parts: []thread.Part{part}}
			empty := thread.Message{Role: m.Role}
			if s.parts[who] == nil {
				s.parts[who] = rowsBy[string, kindRow]{}
			}
			add(s.parts[who], partName(part), count.Message(&one)-count.Message(&empty))
		case thread.ToolCall:
			tool := s.tool(part.Name)
			tool.Calls++
			tool.Arguments += count.Text(part.Arguments)
		case thread.ToolResult:
			s.result(i, part, size)
		}
	}
}

// result counts a tool result, and the call behind it.
func (s *tally) result(i int, r thread.ToolResult, size int) {
	tool := s.tool(r.Tool)
	tool.Results += size
	if r.Outcome == thread.Failure {
		tool.Failed++
	}
	at, ok := s.pairs.Call(i)
	if !ok {
		return
	}
	for _, c := range uncopied.At(s.thread, at).Calls() {
		if c.ID == r.CallID {
			s.call(c, size)
		}
	}
}

func (s *tally) call(c thread.ToolCall, size int) {
	same := s.repeats.at(c.Name+"\x00"+c.Arguments, func() repeatRow { return repeatRow{Call: shorten(brief.Call(c), 200)} })
	same.Times++
	same.Tokens += size

	class := toolpolicy.ClassOf(c.Name)
	path := brief.Place(c)
	if path == "" || class != toolpolicy.Read && class != toolpolicy.Edit && class != toolpolicy.Write {
		return
	}
	file := s.files.at(path, func() fileRow { return fileRow{Path: path} })
	if class == toolpolicy.Read {
		file.Reads++
	} else {
		file.Changes++
	}
	file.Tokens += size
}

func (s *tally) tool(name string) *inspectTool {
	return s.tools.at(name, func() inspectTool {
		return inspectTool{Name: name, Durable: string(toolpolicy.New(nil).Policy(name).Durability)}
	})
}

func add(rows rowsBy[string, kindRow], name string, tokens int) {
	row := rows.at(name, func() kindRow { return kindRow{Name: name} })
	row.Count++
	row.Tokens += tokens
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
