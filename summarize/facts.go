package summarize

import (
	"slices"
	"strings"
	"unicode/utf8"

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
	terms  []string // of the assistant's words
	reason int      // where in text the reason begins, or -1
	score  float32  // what its form tells: how clearly a line reports an error, or defines something
	cues   cue
	code   bool // inside a fenced block, or a line of a tree
	// head is the line that begins the function or type in which a line of a file stands: its
	// index in the list, plus 1; 0 for none.
	head int
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
}

// userFacts is what was read from what stands in the user's name.
type userFacts struct {
	user    string    // a plain user message, cleaned
	command bool      // the text of a slash command, which the user did not write
	clauses []clause  // of it, as far as they may stand
	idents  []mention // of it
	*recapFacts
}

// recapFacts is what was read from a summary by the agent's own compaction.
type recapFacts struct {
	recap []piece // its lines
	// artifacts are pointers in it. Those in tool output do not count: a web page could plant them.
	artifacts []artifactMention
}

// resultFacts is what was read from a tool result.
type resultFacts struct {
	work.Result
	tool       string
	added      bool   // not by a tool: see readAdded
	fails      bool   // some line proves a failure
	records    bool   // its lines are the records of a JSON document
	source     source // what kind of tool said it
	lines      int32
	errorLines []piece           // lines that report a failure, in order
	idLines    []piece           // lines with identifiers, in order
	last       string            // the last line that is not empty
	taskID     string            // "Task #3 created": the id that a task list gave
	tasks      map[string]string // status by id, of a task list that was printed; else nil
	report     []piece           // paragraphs of a sub-agent's answer
	fields     thread.Fields
}

// What messages have that have none of it. Nobody writes to these.
var (
	noRecap   = &recapFacts{}
	noUser    = &userFacts{recapFacts: noRecap}
	onlySpoke = &facts{userFacts: noUser, speaks: true} // the words had no room
	noChange  = &changeFacts{}
)

// Limits on what one message contributes: a huge one must not cost more than it can be
// worth.
const (
	maxLine       = 180      // bytes of one piece of tool output
	maxSentence   = 420      // bytes of one piece of what people and models said
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
		f.userFacts = &userFacts{recapFacts: &recapFacts{lines(live, text), mentionedArtifacts(text)}}
	case thread.ByPerson:
		f.userFacts = &userFacts{recapFacts: noRecap}
		f.user = strings.TrimSpace(scan.Clean(injected.UserWords(m)))
		f.command = slices.ContainsFunc(m.Parts, func(p thread.Part) bool {
			text, ok := p.(thread.Text)
			return ok && injected.Command(text.Text) != ""
		})
		f.clauses = readClauses(live, f.user)
		f.idents = mentionsWhile(live, nil, f.user)
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
	f.result = readResult(live, thread.ToolResult{Tool: "Read", Content: []thread.Part{thread.Text{Text: reminderTags.Replace(attached)}}})
	f.result.added, f.result.report = true, paragraphs(live, relayed[:clip.Boundary(relayed, min(len(relayed), maxReport))])
}

// reminderTags are what Claude Code writes around attached material.
var reminderTags = strings.NewReplacer("<system-reminder>", "", "</system-reminder>", "")

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

// lines splits text into lines.
func lines(work *effort.Budget, s string) []piece {
	var out []piece
	fenced := false
	for _, at := range scan.Lines(s) {
		line := s[at.From:at.To]
		if !work.Live(readingByte * (1 + len(line))) {
			break
		}
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if line == "" {
			continue
		}
		p := piece{text: line, idents: mentionsWhile(work, nil, line), reason: -1, place: place{line: len(out)}}
		p.code = fenced || isDrawing(line) || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "---")
		if !p.code {
			p.cues, p.reason = cuesOf(line)
		}
		out = append(out, p)
	}
	return out
}

// withoutReminders takes what a harness put below an output out of it, but for what it says that
// the user wrote meanwhile.
func withoutReminders(s string) string {
	for {
		body, ends := strings.CutSuffix(strings.TrimRight(s, " \n"), "</system-reminder>")
		at := strings.LastIndex(body, "\n<system-reminder>")
		if !ends || at < 0 || strings.HasPrefix(body[at:], "\n<system-reminder>\nThe user sent ") {
			return s
		}
		s = s[:at]
	}
}

// isDrawing reports whether a line is part of a tree or a frame.
func isDrawing(s string) bool {
	return strings.HasPrefix(s, "│") || strings.HasPrefix(s, "├") || strings.HasPrefix(s, "└") || strings.HasPrefix(s, "┌")
}

// readResult extracts the facts of a tool result.
func readResult(live *effort.Budget, r thread.ToolResult) *resultFacts {
	f := &resultFacts{tool: r.Tool, source: sourceOfResult(r.Tool), fields: r.KeyFields}
	s := scan.Clean(r.Text())
	if s == "" {
		s = r.Structured
	}
	s = withoutReminders(s)
	f.Result = work.ReadResult(live, &r, s)
	if f.Claim != "" {
		f.lines, f.First = 1, f.Claim
		f.idLines = []piece{{text: clip.Brief(f.Claim, maxLine), idents: mentions(nil, f.Claim), reason: -1}}
		return f
	}
	if toolclass.ClassOf(r.Tool) == toolclass.Agent && r.Outcome != thread.Failure && f.Started == "" && !f.DeniedByUser {
		f.report = paragraphs(live, s[:clip.Boundary(s, min(len(s), maxReport))])
	}
	rows := jsonrows.Lines(live, s, false)
	f.records = rows != nil
	line := 0 // counts lines that are not empty
	var around blocks
	for n, p := range scan.Lines(s) {
		if !live.Live(readingByte * (1 + p.To - p.From)) {
			break
		}
		f.lines = int32(n + 1)
		if p.From == p.To {
			continue
		}
		line++
		p.From = afterLineNumber(s, p)
		if strings.HasPrefix(s[p.From:p.To], work.ResetNote) {
			continue
		}
		if f.First == "" {
			f.First = s[p.From:min(p.To, p.From+maxLine)]
		}
		f.last = s[p.From:p.To]
		score, sure := errorScore(s[p.From:min(p.To, p.From+maxSentence)])
		f.fails = f.fails || sure
		if score > 0 && len(f.errorLines) < maxErrorLines {
			f.errorLines = appendPieces(f.errorLines, s, scan.Span{From: p.From, To: p.From + clip.CutBefore(s[p.From:p.To], maxSentence)}, line, score, true)
		}
		if len(f.idLines) < maxIDLines && !f.records && (score == 0 || f.source == inRead || f.source == inSearch) && !(f.source == inSearch && bareHit(s[p.From:p.To])) {
			from := len(f.idLines)
			f.idLines = appendPieces(f.idLines, s, p, line, 0, false)
			if f.source == inRead {
				head := around.enter(s, p, from, len(f.idLines) > from)
				for i := range f.idLines[from:] {
					f.idLines[from+i].head = head
				}
			}
		}
	}
	for n, row := range rows {
		if len(f.idLines) < maxIDLines && live.Live(readingByte*len(row)) {
			f.idLines = appendPieces(f.idLines, row, scan.Span{From: 0, To: len(row)}, n, 0, false)
		}
	}
	f.last = f.last[:min(len(f.last), maxLine)]
	if rest, ok := strings.CutPrefix(f.First, "Task #"); ok {
		f.taskID, _, _ = strings.Cut(rest, " ")
	}
	if toolclass.Normal(r.Tool) == "tasklist" {
		f.tasks = taskStatus(s)
	}
	f.Failing = len(f.errorLines) > 0
	if class := toolclass.ClassOf(r.Tool); class == toolclass.Shell || r.Tool == "" {
		f.Why, _ = reason(f)
	}
	return f
}

// afterLineNumber skips the line number that file tools write in front of each
// line ("  12→", "  12\t", "12|"): it is stale after the next edit.
func afterLineNumber(s string, p scan.Span) int {
	i := p.From
	for i < p.To && scan.IsDigit(s[i]) {
		i++
	}
	if i == p.From || i == p.To {
		return p.From
	}
	switch {
	case s[i] == '\t' || s[i] == '|':
		i++
	case strings.HasPrefix(s[i:p.To], "→"):
		i += len("→")
	default:
		return p.From
	}
	return scan.Trim(s, scan.Span{From: i, To: p.To}).From
}

// bareHit reports whether a line of a search's output has a position but no text worth
// keeping: around a hit there is often only a closing brace.
func bareHit(line string) bool {
	for i := 1; i < len(line); i++ {
		mark := line[i]
		if mark != ':' && mark != '-' {
			continue
		}
		end := i + 1
		for end < len(line) && scan.IsDigit(line[end]) {
			end++
		}
		if end > i+1 && end < len(line) && line[end] == mark {
			rest := strings.TrimSpace(line[end+1:])
			return len(mentions(nil, rest)) == 0 && (mark == '-' || len(rest) < leastHit)
		}
	}
	return false
}

// leastHit is the shortest text of a hit without identifiers that is kept, in bytes.
const leastHit = 12

// appendPieces adds a line as one piece, or as windows if it is long. Pieces without
// identifiers are left out, except for the first if anyway is set.
func appendPieces(dst []piece, s string, p scan.Span, line int, score float32, anyway bool) []piece {
	add := func(q scan.Span, at place) {
		idents := mentions(nil, s[q.From:q.To])
		if len(idents) > 0 || anyway {
			dst = append(dst, piece{text: s[q.From:q.To], idents: idents, score: score, reason: -1, place: at})
		}
		anyway = false // the first window stands for the line
	}
	if p.To-p.From <= maxLine {
		add(p, place{line: line})
		return dst
	}
	for from, n := p.From, 0; from < p.To && len(dst) < maxIDLines; {
		to := windowEnd(s, from, p.To)
		if q := scan.Trim(s, scan.Span{From: from, To: to}); q.From < q.To {
			add(q, place{line, n, to < p.To})
			n++
		}
		from = to
	}
	return dst
}

// windowEnd is where a window of a long line ends: at a comma or a space before maxLine, or
// at the first one after it. A line without any is cut at maxLine.
func windowEnd(s string, from, end int) int {
	to := from + maxLine
	if to >= end {
		return end
	}
	best := -1
	for i := to - 1; i > to-maxLine/2; i-- {
		if breaks(s[i]) {
			best = i + 1
			if s[i] == ',' {
				break
			}
		}
		if best > 0 && i < to-40 {
			break
		}
	}
	if best > 0 {
		return best
	}
	for i := to; i < min(end, from+maxSentence); i++ {
		if breaks(s[i]) {
			return i + 1
		}
	}
	if end <= from+maxSentence {
		return end
	}
	best = from + clip.Boundary(s[from:], maxLine)
	if best < from+maxLine/2 { // one endless grapheme
		for best = to; best > from+1 && !utf8.RuneStart(s[best]); best-- {
		}
	}
	return best
}

func breaks(c byte) bool { return c == ',' || c == ';' || c == '}' || scan.IsSpace(c) }
