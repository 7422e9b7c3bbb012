package summarize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/jsonrows"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// piece is a line, a sentence or a window of a long line, always verbatim: the smallest
// thing that a summary takes.
type piece struct {
	text   string
	idents []mention
	first  int32    // 1 + how many identifiers of its message stand before its own; 0 if it is none of the lines of eachLine
	terms  []string // of the assistant's words
	score  float32  // what its form tells: how clearly a line reports an error, or defines something
	code   bool     // inside a fenced block, or a line of a tree
	place
}

// place is where a piece stands in its message.
type place struct {
	line   int  // its first line, counted without empty lines
	window int  // of a long line, which of its windows
	more   bool // the line continues after it
}

// follows reports whether nothing lies between q and p.
func (p place) follows(q place) bool {
	if p.line == q.line {
		return p.window == q.window+1
	}
	return p.line == q.line+1 && p.window == 0 && !q.more
}

// facts is what was read from one message. It depends on no other message, so it is
// cached (see Memory).
//
// A conversation has very many of them: what few messages have stands apart, in one value for
// all that have none of it.
type facts struct {
	*userFacts
	said   []piece // paragraphs of an assistant message, in order
	calls  []callFacts
	result *resultFacts
	notice *work.Notice
	next   string // what the assistant says it will do next, where no call follows
	speaks bool   // the assistant says something, though there may be no room for it

	mentions int32 // of identifiers, in the lines of eachLine
}

// userFacts is what was read from what stands in the user's name.
type userFacts struct {
	user    string    // a plain user message, cleaned
	command bool      // the text of a slash command, which the user did not write
	clauses []clause  // of it, as far as they may stand
	idents  []mention // of it
	recap   []piece   // the paragraphs of a summary by the agent's own compaction
	// artifacts are pointers in such a summary. Those in tool output do not count: a web page could plant them.
	artifacts []artifactMention
}

// resultFacts is what was read from a tool result.
type resultFacts struct {
	work.Result
	tool    string
	added   bool   // not by a tool: see readAdded
	fails   bool   // some line proves a failure
	records bool   // its lines are the records of a JSON document
	source  source // what kind of tool said it
	lines   int32
	idLines []piece           // lines with identifiers, and those that report a failure, which have a score
	taskID  string            // "Task #3 created": the id that a task list gave
	tasks   map[string]string // status by id, of a task list that was printed; else nil
	report  []piece           // paragraphs of a sub-agent's answer
	fields  thread.Fields
}

// What messages have that have none of it. Nobody writes to these.
var (
	noUser    = &userFacts{}
	onlySpoke = &facts{userFacts: noUser, speaks: true} // the words had no room
	noChange  = &changeFacts{}
)

// Limits on what one message contributes: a huge one must not cost more than it can be
// worth.
const (
	maxLine       = 180      // bytes of one piece of tool output
	maxSentence   = 420      // bytes of one piece of what people and models said
	maxDetail     = 240      // bytes of what else an agent wrote of a step of its list
	maxIDLines    = 1500     // lines with identifiers of one result
	maxErrorLines = 24       // error lines of one result
	maxReport     = 24 << 10 // bytes of a sub-agent's report
)

// readingByte is what reading a byte takes, in units of effort.
const readingByte = 64

// read extracts the facts of a message. It is pure.
func read(m *thread.Message) *facts { return readWhile(nil, m) }

// readWhile is read as long as the work goes on; the facts are not whole where it ended.
func readWhile(live *effort.Budget, m *thread.Message) *facts {
	f := &facts{userFacts: noUser}
	switch m.Author() {
	case thread.ByCompaction:
		text := scan.Clean(m.Text())
		if analysis, told, ok := strings.Cut(text, "\nSummary:\n"); ok && strings.Contains(analysis, "\nAnalysis:\n") { // it says the same twice
			text = told
		}
		recap := paragraphs(live, text)
		if ownformat.IsSummary(m) {
			recap = ownTold(recap)
		}
		f.userFacts = &userFacts{recap: recap, artifacts: mentionedArtifacts(text)}
	case thread.ByPerson:
		user := strings.TrimSpace(scan.Clean(injected.UserWords(m)))
		f.userFacts = &userFacts{user: user, clauses: readClauses(live, user), idents: mentionsWhile(live, nil, user)}
		f.command = slices.ContainsFunc(m.Parts, func(p thread.Part) bool {
			text, ok := p.(thread.Text)
			return ok && injected.Command(text.Text) != ""
		})
	case thread.ByModel:
		f.said = paragraphs(live, scan.Clean(m.Text()))
	}
	f.readAdded(live, m)
	for n, p := range m.Parts {
		if !live.Live(messageEffort) {
			return f
		}
		switch p := p.(type) {
		case thread.ToolCall:
			f.calls = append(f.calls, readCall(live, &p))
			f.calls[len(f.calls)-1].at = int32(n)
		case thread.ToolResult:
			if ownformat.IsStub(p.Text()) { // the content was cleared earlier
				p.Content, p.Structured = nil, ""
			}
			f.result = readResult(live, p)
		}
	}
	f.number()
	f.notice, f.speaks = work.ReadNotice(m), len(f.said) > 0
	if f.speaks && len(f.calls) == 0 {
		f.next = lastAnnouncement(f.said)
	}
	return f
}

// readAdded reads what stands in the user's name and is not the user's word: material that the user
// attached is read as a file is, and what another agent wrote as its report.
func (f *facts) readAdded(live *effort.Budget, m *thread.Message) {
	if m.Role != thread.User {
		return
	}
	texts := map[thread.Author]string{}
	for _, p := range injected.Passages(m) {
		texts[p.Author] += p.Text + "\n"
	}
	attached, relayed := texts[thread.ByAttachment], scan.Clean(texts[thread.ByAgent])
	if attached == "" && relayed == "" {
		return
	}
	f.result = readResult(live, thread.ToolResult{Tool: "Read", Content: []thread.Part{thread.Text{Text: frameTags.Replace(attached)}}})
	f.result.added, f.result.report = true, paragraphs(live, relayed[:clip.Boundary(relayed, min(len(relayed), maxReport))])
}

// frameTags are what Claude Code writes around attached material, and around the error of a tool.
var frameTags = strings.NewReplacer("<system-reminder>", "", "</system-reminder>", "", "<tool_use_error>", "", "</tool_use_error>", "")

// work is what the message tells of the state of the work.
func (f *facts) work() work.Message {
	m := work.Message{Notice: f.notice, Said: f.speaks, Next: f.next, Calls: make([]*work.Call, len(f.calls))}
	for i := range f.calls {
		m.Calls[i] = &f.calls[i].Call
	}
	if f.result != nil && !f.result.added {
		m.Result = &f.result.Result
	}
	return m
}

// withoutReminders takes what a harness put below an output out of it, but for what it says that
// the user wrote meanwhile.
func withoutReminders(s string) string {
	for {
		body, ends := strings.CutSuffix(strings.TrimRight(s, " \n"), "</system-reminder>")
		if !ends {
			return s
		}
		at := strings.LastIndex(body, "\n<system-reminder>")
		if at < 0 || strings.HasPrefix(body[at:], "\n<system-reminder>\nThe user sent ") {
			return s
		}
		s = s[:at]
	}
}

// readResult extracts the facts of a tool result.
func readResult(live *effort.Budget, r thread.ToolResult) *resultFacts {
	f := &resultFacts{tool: r.Tool, source: cmp.Or(classes[toolclass.ClassOf(r.Tool)].output, inResult), fields: r.KeyFields}
	s := scan.Clean(r.Text())
	if s == "" {
		s = r.Structured
	}
	s = withoutReminders(s)
	f.Result, s = work.ReadResult(live, &r, s)
	if strings.HasPrefix(s, "<tool_use_error>") {
		s = frameTags.Replace(s)
	}
	if f.Claim != "" {
		f.lines, f.First = 1, f.Claim
		f.idLines = []piece{{text: clip.Brief(f.Claim, maxLine), idents: mentions(nil, f.Claim)}}
		return f
	}
	if toolclass.ClassOf(r.Tool) == toolclass.Agent && r.Outcome != thread.Failure && f.Started == "" && !f.DeniedByUser {
		f.report = paragraphs(live, s[:clip.Boundary(s, min(len(s), maxReport))])
	}
	rows := jsonrows.Lines(live, s, false)
	f.records, f.lines = rows != nil, int32(strings.Count(s, "\n"))
	if s != "" && !strings.HasSuffix(s, "\n") {
		f.lines++
	}
	line, errors := 0, 0 // lines that are not empty, and those that report a failure
	for _, p := range textLines(live, s) {
		line++
		text := withoutLineNumber(s[p.From:p.To])
		if strings.HasPrefix(text, work.ResetNote) {
			continue
		}
		if f.First == "" {
			f.First = text[:min(len(text), maxLine)]
		}
		f.Last = text[:min(len(text), maxLine)]
		clearly, sure := toolclass.FailureScore(text[:min(len(text), maxSentence)])
		score := float32(clearly)
		f.fails, f.Failing = f.fails || sure, f.Failing || score > 0
		if f.quotes() {
			score = 0
		}
		if score > 0 {
			errors++
		}
		if score > 0 && errors > maxErrorLines || score == 0 && f.records {
			continue
		}
		f.addLine(text, line, score)
	}
	for n, row := range rows {
		if live.Live(readingByte * len(row)) {
			f.addLine(row, n, 0)
		}
	}
	f.readTasks(s)
	if class := toolclass.ClassOf(r.Tool); class == toolclass.Shell || r.Tool == "" {
		f.Why, _ = f.why(" ; ")
	}
	return f
}

// rowValues leaves the names of members in front of values out of a row of a JSON document, as jsonrows writes it: one
// with digits is a key, and itself a value. A template of an address is none.
func rowValues(row string) string {
	out, first, named := make([]byte, 0, len(row)), true, false
	for word := range strings.SplitAfterSeq(row, " ") {
		head := word[:1+strings.LastIndexByte(word, '(')]
		name, more := strings.CutSuffix(word[len(head):], " ")
		if named && strings.HasPrefix(word, "http") && strings.Contains(word, "{") {
			word = word[len(strings.TrimRight(word, " ")):]
		}
		if named = more && name != "" && (first || head != "") && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.-") == ""; named {
			word = head
		}
		out, first = append(out, word...), strings.HasSuffix(word, ", ") || strings.HasSuffix(word, ": ")
	}
	return string(out)
}

// quotes reports whether an output is text of files, which says nothing of the call.
func (f *resultFacts) quotes() bool { return f.source == inRead || f.source == inSearch }

// addLine adds a line with identifiers, or one that reports a failure as clearly as the score says.
func (f *resultFacts) addLine(text string, line int, score float32) {
	if score > 0 || len(f.idLines) < maxIDLines {
		f.idLines = appendPieces(f.idLines, text, line, score, score > 0, f.records)
	}
}

// plain are the lines that report no failure: attempts tell of the others, unless the command only prints.
func (f *resultFacts) plain(c *callFacts) []piece {
	if !f.Failing || f.quotes() || c != nil && c.onlyPrints {
		return f.idLines
	}
	return slices.DeleteFunc(slices.Clone(f.idLines), func(p piece) bool { return p.score > 0 })
}
