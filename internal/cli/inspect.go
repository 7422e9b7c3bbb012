package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/describe"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// inspection is the output of inspect for one conversation.
type inspection struct {
	Input   inputSummary `json:"input"`
	Counter string       `json:"counter"`
	counterReason
	Exact          bool               `json:"exact"`
	Band           float64            `json:"error_band,omitempty"`
	Tokens         int                `json:"tokens"`
	Now            int                `json:"tokens_now"`             // without what the agent's own compactions removed
	Request        int                `json:"last_request,omitempty"` // as the agent counted its newest request, with its answer
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
	Outlook        *outlook           `json:"compaction"`
	plan           string             // the command that shows it in full
}

type kindRow struct {
	Name   string    `json:"name"`
	Count  int       `json:"count"`
	Tokens int       `json:"tokens"`
	Now    int       `json:"tokens_now,omitempty"` // of those that the agent still sees
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

// maxRows limits the lists of inspect.
const maxRows = 8

func inspectCommand(s Streams) *cobra.Command {
	var conv conversation
	in := &conv.in
	c := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Show where the tokens of a transcript are, what repeats and what compaction would take",
		Example: "  palimpsest inspect session.jsonl\n  palimpsest inspect runs.jsonl --run 3 --json",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if conv.counterName != "" { // before the file is read
				if _, _, err := namedCounter(conv.counterName, "--counter"); err != nil {
					return err
				}
			}
			if err := in.load(c.Context(), args[0], s.In); err != nil {
				return err
			}
			in.printTaken(s.Err)
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
			counter = counter.Remembering(nil) // the outlook counts the same texts
			conv.counter = counter
			outOfDate := strategy.Superseded(in.Thread, thread.Pair(in.Thread))
			found := inspect(in, counter, outOfDate)
			found.counterReason = reason
			if found.Outlook, err = conv.outlook(c.Context(), outOfDate); err != nil {
				return err
			}
			found.plan = "palimpsest plan " + in.commandArguments()
			if found.Outlook.Need > 0 {
				found.plan += fmt.Sprintf(" --budget %d", found.Outlook.Need)
			}
			if conv.counterName != "" {
				found.plan += " --counter " + shellQuote(conv.counterName)
			}
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
	// Counter counted the tokens; each conversation may name another model.
	Counter string  `json:"counter"`
	Exact   bool    `json:"exact"`
	Band    float64 `json:"error_band,omitempty"`
}

func runRows(conv *conversation) (rows []runRow, err error) {
	for n, t := range conv.in.file.Transcripts {
		conv.in.Transcript = &t
		count, _, err := conv.chooseCounter(token.Models(), "")
		if err != nil {
			return nil, err
		}
		r := runRow{
			Run: n + 1, Name: t.Name, Msgs: t.Thread.Len(), Turns: t.Thread.Turns(), Tokens: count.System(t.System) + count.Tools(t.Tools),
			Counter: count.Name(), Exact: count.Exact(), Band: count.Band(),
		}
		for _, m := range t.Thread.All() {
			r.Tokens += count.Message(m)
			if r.Task == "" && m.StartsTurn() {
				r.Task = shorten(describe.Message(m), 200)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func printRuns(p *printer, in *input, rows []runRow) {
	p.line("%s · %s · %s", in.path, in.file.Format, plural(len(rows), "conversation"))
	in.printWarnings(p)
	p.table([]string{">run", ">messages", ">turns", ">tokens", "first request"}, mapSlice(rows, func(r runRow) []string {
		return []string{fmt.Sprint(r.Run), number(r.Msgs), number(r.Turns), number(r.Tokens), r.Task}
	}))
	counters := mapSlice(rows, func(r runRow) string { return counterText(r.Counter, r.Exact, r.Band) })
	slices.Sort(counters)
	p.text("counted with %s", strings.Join(slices.Compact(counters), ", "))
	p.line("look at one with --run N")
}

func inspect(in *input, count *token.Counter, outOfDate []string) *inspection {
	out := &inspection{
		Input: in.summary(), Counter: count.Name(), Exact: count.Exact(), Band: count.Band(),
		System: count.System(in.System), Tools: count.Tools(in.Tools), Framing: count.Overhead(),
	}
	out.Tokens = out.Framing + out.System + out.Tools
	out.Now = out.Tokens
	if in.taken != nil {
		out.Request = in.taken.Tokens
	}
	sees := in.seenNow()
	t := &tally{
		thread: in.Thread, count: count, pairs: thread.Pair(in.Thread), kinds: rows[string, kindRow]{}, parts: map[string]rows[string, kindRow]{},
		tools: rows[string, toolRow]{}, calls: rows[string, repeatRow]{}, files: rows[string, fileRow]{}, turns: rows[int, turnRow]{},
		hosted: map[string]string{},
	}
	sizes := make([]int, in.Thread.Len())
	effort.Each(len(sizes), 100, func(i int) { sizes[i] = count.Message(in.Thread.At(i)) })
	for i, m := range in.Thread.All() {
		size := sizes[i]
		out.Tokens += size
		t.addMessage(i, m, size)
		if sees(i) {
			out.Now += size
			t.kinds[describe.Speaker(m)].Now += size
		}
		out.Largest = append(out.Largest, largeRow{
			Tokens: size, Turn: m.Turn, Role: m.Role, Stale: outOfDate[i],
			What: shorten(describeSpan(in.Thread, t.pairs, in.Thread.Range(i, i+1)), 200),
		})
		if outOfDate[i] != "" {
			out.Stale.Results++
			out.Stale.Tokens += size
		}
	}
	out.Kinds = t.kinds.list()
	for i, kind := range out.Kinds {
		out.Kinds[i].Parts = t.parts[kind.Name].list()
	}
	out.ByTool = largest(t.tools.list(), math.MaxInt, func(t toolRow) int { return t.Results + t.Arguments })
	out.Largest = largest(out.Largest, maxRows, func(r largeRow) int { return r.Tokens })
	repeated := slices.DeleteFunc(t.calls.list(), func(r repeatRow) bool { return r.Times == 1 })
	out.Repeats = largest(repeated, maxRows, func(r repeatRow) int { return r.Tokens })
	touched := slices.DeleteFunc(t.files.list(), func(f fileRow) bool { return f.Reads+f.Changes == 1 })
	out.Files = largest(touched, maxRows, func(f fileRow) int { return f.Tokens })
	out.Busiest = largest(t.turns.list(), maxRows, func(t turnRow) int { return t.Tokens })
	for _, c := range in.Compactions {
		turn := in.Thread.Turns()
		if c.At < in.Thread.Len() {
			turn = in.Thread.At(c.At).Turn
		}
		out.OwnCompactions = append(out.OwnCompactions, ownCompactionRow{Turn: turn, Trigger: c.Trigger, Before: c.TokensBefore})
	}
	addSkipped := func(prefix string, lines map[string]int) {
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			out.Skipped = append(out.Skipped, kindRow{Name: prefix + name, Count: lines[name]})
		}
	}
	addSkipped("unknown: ", in.file.Report.Unknown)
	addSkipped("", in.file.Report.Skipped)
	return out
}

// maxSkipped is how many kinds of lines without a message are named.
const maxSkipped = 40

func (out *inspection) print(p *printer) {
	out.Input.print(p)
	if out.Input.Model != "" {
		p.text("model %s", out.Input.Model)
	}
	p.text("counted with %s%s", counterText(out.Counter, out.Exact, out.Band), out.counterReason)
	out.printKinds(p)
	p.sectionUpTo("tools", []string{"tool", ">calls", ">failed", ">arguments", ">results", "results are"}, mapSlice(out.ByTool, func(t toolRow) []string {
		return []string{toolName(t.Name), number(t.Calls), number(t.Failed), number(t.Arguments), number(t.Results), t.Durable}
	}), maxToolRows, "more tool")
	if len(out.ByTool) > 0 {
		p.text("cleared: ephemeral whole, anchoring but key fields, replayable if unchanged, non_replayable never")
	}
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

// printKinds shows where the tokens are; the rows add up to the whole.
func (out *inspection) printKinds(p *printer) {
	var rows [][]string
	row := func(name, count string, tokens int, now string) {
		if out.Input.Compactions == 0 {
			now = ""
		}
		if tokens > 0 {
			rows = append(rows, []string{name, count, number(tokens), percent(tokens, out.Tokens), now})
		}
	}
	row("system prompt", "", out.System, number(out.System))
	row("tool definitions", "", out.Tools, number(out.Tools))
	for _, k := range out.Kinds {
		row(k.Name, number(k.Count), k.Tokens, number(k.Now))
		for _, part := range k.Parts {
			row("  of it "+part.Name, number(part.Count), part.Tokens, "")
		}
	}
	row("framing", "", out.Framing, number(out.Framing))
	whole := number(out.Tokens) + " tokens"
	if out.Input.Compactions > 0 {
		whole += ", with what the agent's own compactions removed; " + number(out.Now) + " that it sees now"
	}
	p.section(whole, []string{"", ">count", ">tokens", ">share", ">now"}, rows)
	if out.Request > 0 {
		p.text("the agent counted %s for its newest request, with its own instructions and tools", number(out.Request))
	}
}

func (out *inspection) printEnd(p *printer) {
	p.line("")
	if len(out.OwnCompactions) > 0 {
		p.text("the agent compacted by itself in turn %s", joinEach(out.OwnCompactions, func(c ownCompactionRow) string {
			return strings.TrimSpace(fmt.Sprintf("%d %s", c.Turn, c.Trigger))
		}))
	}
	if len(out.Skipped) > 0 {
		more := ""
		if n := len(out.Skipped) - maxSkipped; n > 0 {
			more = fmt.Sprintf(", and %s more kinds, which --json lists", number(n))
		}
		p.text("lines without a message: %s%s", joinEach(firstN(out.Skipped, maxSkipped), func(l kindRow) string {
			return fmt.Sprintf("%s (%s)", l.Name, number(l.Count))
		}), more)
	}
	if out.Stale.Results == 0 {
		p.text("no result is out of date")
	} else {
		are := map[bool]string{true: "is", false: "are"}[out.Stale.Results == 1]
		p.text("%s (%s tokens, %s) %s out of date: a later step read, changed or ran the same again",
			plural(out.Stale.Results, "result"), number(out.Stale.Tokens), percent(out.Stale.Tokens, out.Tokens), are)
	}
	out.Outlook.print(p, out.Stale.Results)
	if !out.Outlook.tooSmall() {
		p.line("see: %s", out.plan) // not wrapped, so that it can be copied
	}
}

// tally adds up the messages of a conversation.
type tally struct {
	thread *thread.Thread
	count  *token.Counter
	pairs  *thread.Pairing
	kinds  rows[string, kindRow]            // by speaker
	parts  map[string]rows[string, kindRow] // by speaker and kind of part
	tools  rows[string, toolRow]
	calls  rows[string, repeatRow] // by tool and arguments
	files  rows[string, fileRow]   // by path
	turns  rows[int, turnRow]
	hosted map[string]string // names of tools of the provider, by call
}

func (t *tally) addMessage(i int, m *thread.Message, size int) {
	who := describe.Speaker(m)
	addKind(t.kinds, who, size)
	turn := t.turns.at(m.Turn, func() turnRow { return turnRow{Turn: m.Turn, Text: shorten(describe.Message(m), 200)} })
	turn.Steps++
	turn.Tokens += size
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Reasoning, thread.Media, thread.Opaque:
			one := thread.Message{Role: m.Role, Parts: []thread.Part{part}}
			empty := thread.Message{Role: m.Role}
			if t.parts[who] == nil {
				t.parts[who] = rows[string, kindRow]{}
			}
			tokens := t.count.Message(&one) - t.count.Message(&empty)
			addKind(t.parts[who], partName(part), tokens)
			t.addHosted(one, tokens)
		case thread.ToolCall:
			tool := t.tool(part.Name)
			tool.Calls++
			tool.Arguments += t.count.Text(part.Arguments)
		case thread.ToolResult:
			tool := t.tool(part.Tool)
			tool.Results += size
			if part.Outcome == thread.Failure {
				tool.Failed++
			}
			if c, ok := t.pairs.Answered(i); ok {
				t.addCall(c, size)
			}
		}
	}
}

// addHosted adds a message with a call of the provider, its result, or both, of so many tokens; other
// messages are passed over.
func (t *tally) addHosted(one thread.Message, tokens int) {
	for _, m := range hosted.Unfold([]thread.Message{one}) {
		for _, c := range m.Calls() {
			t.hosted[c.ID] = c.Name
			tool := t.tool(c.Name)
			tool.Calls++
			tool.Arguments += tokens
			tokens = 0 // one that holds its result counts as a call
		}
		if r, ok := m.Result(); ok {
			tool := t.tool(cmp.Or(t.hosted[r.CallID], r.Tool, partName(one.Parts[0])))
			tool.Results += tokens
			if r.Outcome == thread.Failure {
				tool.Failed++
			}
		}
	}
}

// addCall adds a call whose result has that size.
func (t *tally) addCall(c thread.ToolCall, size int) {
	same := t.calls.at(c.Name+"\x00"+c.Arguments, func() repeatRow { return repeatRow{Call: shorten(describe.Call(c), 200)} })
	same.Times++
	same.Tokens += size

	class, path := toolclass.ClassOf(c.Name), toolclass.Path(c)
	if path == "" || class != toolclass.Read && class != toolclass.Edit && class != toolclass.Write {
		return
	}
	file := t.files.at(path, func() fileRow { return fileRow{Path: path} })
	if class == toolclass.Read {
		file.Reads++
	} else {
		file.Changes++
	}
	file.Tokens += size
}

func (t *tally) tool(name string) *toolRow {
	return t.tools.at(name, func() toolRow {
		return toolRow{Name: name, Durable: string(toolpolicy.New(nil).Policy(name).Durability)}
	})
}

func addKind(kinds rows[string, kindRow], name string, tokens int) {
	kind := kinds.at(name, func() kindRow { return kindRow{Name: name} })
	kind.Count++
	kind.Tokens += tokens
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
