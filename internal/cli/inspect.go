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
	Input   inputSummary `json:"input"`
	Counter string       `json:"counter"`
	counterReason
	Tokens         int                `json:"tokens"`
	System         int                `json:"system_tokens"`
	Tools          int                `json:"tool_tokens"`
	Framing        int                `json:"framing_tokens"`
	Kinds          []kindRow          `json:"by_kind"`
	ByTool         []toolRow          `json:"by_tool"`
	Largest        []largeRow         `json:"largest"`
	Repeats        []repeatRow        `json:"repeats"`
	Files          []fileRow          `json:"files"`
	Stale          staleSum           `json:"out_of_date"`
	Busiest        []turnRow          `json:"largest_turns"`
	OwnCompactions []ownCompactionRow `json:"own_compactions"`
	Skipped        []kindRow          `json:"skipped_lines"`
}

type kindRow struct {
	Name   string    `json:"name"`
	Count  int       `json:"count"`
	Tokens int       `json:"tokens"`
	Parts  []kindRow `json:"of_it,omitempty"`
}

type toolRow struct {
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

type ownCompactionRow struct {
	Turn    int    `json:"turn"`
	Trigger string `json:"trigger,omitempty"`
	Before  int    `json:"tokens_before,omitempty"`
}

// maxRows is the length of inspect's lists.
const maxRows = 8

func inspectCommand(s Streams) *cobra.Command {
	var conv conversation
	in := &conv.in
	c := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Show where the tokens of a transcript are, what repeats and what would go first",
		Example: "  palimpsest inspect session.jsonl\n  palimpsest inspect runs.jsonl --run 3 --json",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if conv.counterName != "" { // before the file is read
				if _, _, err := namedCounter(conv.counterName, "--counter"); err != nil {
					return err
				}
			}
			if err := in.load(args[0], s.In); err != nil {
				return err
			}
			if in.run == 0 && len(in.file.Transcripts) > 1 {
				rows, err := runRows(&conv)
				if err != nil {
					return err
				}
				return writeResult(s.Out, c, rows, func(p *printer) { printRuns(p, in, rows) })
			}
			if err := in.selectRun(); err != nil {
				return err
			}
			counter, reason, err := conv.chooseCounter(token.Models(), "")
			if err != nil {
				return err
			}
			found := inspect(in, counter)
			found.counterReason = reason
			return writeResult(s.Out, c, found, found.print)
		},
	}
	in.addFlags(c, "look at")
	c.Flags().StringVar(&conv.counterName, "counter", "", "count with `NAME` (default: as the model named in the file does): "+counterNames)
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

// runRows is what a file of several conversations holds.
func runRows(conv *conversation) (rows []runRow, err error) {
	for n, t := range conv.in.file.Transcripts {
		conv.in.Transcript = &t
		count, _, err := conv.chooseCounter(token.Models(), "")
		if err != nil {
			return nil, err
		}
		r := runRow{Run: n + 1, Name: t.Name, Msgs: t.Thread.Len(), Turns: t.Thread.Turns(), Tokens: count.System(t.System) + count.Tools(t.Tools)}
		for _, m := range uncopied.All(t.Thread) {
			r.Tokens += count.Message(m)
			if r.Task == "" && m.StartsTurn() {
				r.Task = shorten(brief.Message(m), 200)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func printRuns(p *printer, in *input, rows []runRow) {
	p.line("%s · %s · %s", in.path, in.file.Format, plural(len(rows), "conversation"))
	p.table([]string{">run", ">messages", ">turns", ">tokens", "first request"}, mapSlice(rows, func(r runRow) []string {
		return []string{fmt.Sprint(r.Run), number(r.Msgs), number(r.Turns), number(r.Tokens), r.Task}
	}))
	p.line("look at one with --run N")
}

func inspect(in *input, count *token.Counter) *inspection {
	out := &inspection{
		Input: in.summary(), Counter: count.Name(),
		System: count.System(in.System), Tools: count.Tools(in.Tools), Framing: count.Overhead(),
	}
	out.Tokens = out.Framing + out.System + out.Tools
	seen := newTally(in.Thread)
	stale := strategy.Superseded(in.Thread, seen.pairs)
	for i, m := range uncopied.All(in.Thread) {
		size := count.Message(m)
		out.Tokens += size
		seen.addMessage(i, m, size, count)
		out.Largest = append(out.Largest, largeRow{
			Tokens: size, Turn: m.Turn, Role: m.Role, Stale: stale[i],
			What: shorten(describeSpan(in.Thread, seen.pairs, in.Thread.Range(i, i+1)), 200),
		})
		if stale[i] != "" {
			out.Stale.Results++
			out.Stale.Tokens += size
		}
	}
	for name, kind := range seen.kinds.sorted() {
		for _, part := range seen.parts[name].sorted() {
			kind.Parts = append(kind.Parts, part)
		}
		out.Kinds = append(out.Kinds, kind)
	}
	out.ByTool = largest(seen.tools.sortedRows(nil), math.MaxInt, func(t toolRow) int { return t.Results + t.Arguments })
	out.Largest = largest(out.Largest, maxRows, func(r largeRow) int { return r.Tokens })
	out.Repeats = largest(seen.repeats.sortedRows(func(r repeatRow) bool { return r.Times > 1 }), maxRows, func(r repeatRow) int { return r.Tokens })
	out.Files = largest(seen.files.sortedRows(func(f fileRow) bool { return f.Reads+f.Changes > 1 }), maxRows, func(f fileRow) int { return f.Tokens })
	out.Busiest = largest(seen.turns.sortedRows(nil), maxRows, func(t turnRow) int { return t.Tokens })
	for _, c := range in.Compactions {
		turn := in.Thread.Turns()
		if c.At < in.Thread.Len() {
			turn = uncopied.At(in.Thread, c.At).Turn
		}
		out.OwnCompactions = append(out.OwnCompactions, ownCompactionRow{Turn: turn, Trigger: c.Trigger, Before: c.TokensBefore})
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
	p.sectionUpTo("tools", []string{"tool", ">calls", ">failed", ">arguments", ">results", "results are"}, mapSlice(out.ByTool, func(t toolRow) []string {
		return []string{toolName(t.Name), number(t.Calls), number(t.Failed), number(t.Arguments), number(t.Results), t.Durable}
	}), maxToolRows, "more tool")
	p.section("largest messages", []string{">tokens", ">turn", "role", "~what", "out of date because"}, mapSlice(out.Largest, func(l largeRow) []string {
		return []string{number(l.Tokens), fmt.Sprint(l.Turn), string(l.Role), l.What, l.Stale}
	}))
	p.section("the same call again", []string{">times", ">tokens", "call"}, mapSlice(out.Repeats, func(r repeatRow) []string {
		return []string{number(r.Times), number(r.Tokens), r.Call}
	}))
	p.section("files read or changed again", []string{">reads", ">changes", ">tokens", "file"}, mapSlice(out.Files, func(f fileRow) []string {
		return []string{number(f.Reads), number(f.Changes), number(f.Tokens), f.Path}
	}))
	p.section("largest turns", []string{">turn", ">messages", ">tokens", "begins with"}, mapSlice(out.Busiest, func(t turnRow) []string {
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
		for _, part := range k.Parts {
			row("  of it "+part.Name, number(part.Count), part.Tokens)
		}
	}
	row("framing", "", out.Framing)
	p.section(fmt.Sprintf("%s tokens, counted with %s%s", number(out.Tokens), out.Counter, out.counterReason), []string{"", ">count", ">tokens", ">share"}, rows)
}

func (out *inspection) printEnd(p *printer) {
	p.line("")
	if len(out.OwnCompactions) > 0 {
		p.text("the agent compacted by itself in turn %s", joinEach(out.OwnCompactions, func(c ownCompactionRow) string {
			return strings.TrimSpace(fmt.Sprintf("%d %s", c.Turn, c.Trigger))
		}))
	}
	if len(out.Skipped) > 0 {
		p.text("lines without a message: %s", joinEach(out.Skipped, func(l kindRow) string {
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
	p.line("see: palimpsest plan %s --budget %d", out.Input.commandArguments(), out.Tokens/2)
}

// rowsByKey are rows by what they are about, as they are added up.
type rowsByKey[K cmp.Ordered, R any] map[K]*R

// getOrAdd returns the row of a key, a new one where there was none.
func (m rowsByKey[K, R]) getOrAdd(key K, fresh func() R) *R {
	if m[key] == nil {
		row := fresh()
		m[key] = &row
	}
	return m[key]
}

// sorted are the rows in the order of their keys.
func (m rowsByKey[K, R]) sorted() iter.Seq2[K, R] {
	return func(yield func(K, R) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, *m[key]) {
				return
			}
		}
	}
}

// sortedRows are the rows that are wanted, all where wanted is nil, in the order of their keys.
func (m rowsByKey[K, R]) sortedRows(wanted func(R) bool) (rows []R) {
	for _, row := range m.sorted() {
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
	kinds   rowsByKey[string, kindRow]            // by speaker
	parts   map[string]rowsByKey[string, kindRow] // by speaker and kind of part
	tools   rowsByKey[string, toolRow]
	repeats rowsByKey[string, repeatRow] // by the exact call
	files   rowsByKey[string, fileRow]   // by path
	turns   rowsByKey[int, turnRow]
}

func newTally(t *thread.Thread) *tally {
	return &tally{
		thread: t, pairs: thread.Pair(t), kinds: rowsByKey[string, kindRow]{}, parts: map[string]rowsByKey[string, kindRow]{},
		tools: rowsByKey[string, toolRow]{}, repeats: rowsByKey[string, repeatRow]{}, files: rowsByKey[string, fileRow]{}, turns: rowsByKey[int, turnRow]{},
	}
}

// addMessage counts the message at position i, of a size in tokens, and its parts.
func (s *tally) addMessage(i int, m *thread.Message, size int, count *token.Counter) {
	who := brief.Speaker(m)
	addRow(s.kinds, who, size)
	turn := s.turns.getOrAdd(m.Turn, func() turnRow { return turnRow{Turn: m.Turn, Text: shorten(brief.Message(m), 200)} })
	turn.Steps++
	turn.Tokens += size
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Reasoning, thread.Media, thread.Opaque:
			one := thread.Message{Role: m.Role, Parts: []thread.Part{part}}
			empty := thread.Message{Role: m.Role}
			if s.parts[who] == nil {
				s.parts[who] = rowsByKey[string, kindRow]{}
			}
			addRow(s.parts[who], partName(part), count.Message(&one)-count.Message(&empty))
		case thread.ToolCall:
			tool := s.tool(part.Name)
			tool.Calls++
			tool.Arguments += count.Text(part.Arguments)
		case thread.ToolResult:
			s.addResult(i, part, size)
		}
	}
}

// addResult counts a tool result, and the call behind it.
func (s *tally) addResult(i int, r thread.ToolResult, size int) {
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
			s.addCall(c, size)
		}
	}
}

func (s *tally) addCall(c thread.ToolCall, size int) {
	same := s.repeats.getOrAdd(c.Name+"\x00"+c.Arguments, func() repeatRow { return repeatRow{Call: shorten(brief.Call(c), 200)} })
	same.Times++
	same.Tokens += size

	class := toolpolicy.ClassOf(c.Name)
	path := brief.Target(c)
	if path == "" || class != toolpolicy.Read && class != toolpolicy.Edit && class != toolpolicy.Write {
		return
	}
	file := s.files.getOrAdd(path, func() fileRow { return fileRow{Path: path} })
	if class == toolpolicy.Read {
		file.Reads++
	} else {
		file.Changes++
	}
	file.Tokens += size
}

func (s *tally) tool(name string) *toolRow {
	return s.tools.getOrAdd(name, func() toolRow {
		return toolRow{Name: name, Durable: string(toolpolicy.New(nil).Policy(name).Durability)}
	})
}

func addRow(rows rowsByKey[string, kindRow], name string, tokens int) {
	row := rows.getOrAdd(name, func() kindRow { return kindRow{Name: name} })
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
