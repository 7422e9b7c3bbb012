package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// A session of Claude Code is a tree over all its lines, by parentUuid. The conversation is the
// path from the newest message up to the root, with three additions. Parallel calls make
// small side branches, since the parent of each result is its own call: all lines of an API
// message on the path belong to the conversation, and so do the results of its calls. A
// compaction starts a new root, whose logicalParentUuid leads to the history that it
// replaced. If the parent of a root is unknown or missing, the path goes on at the message
// before. What a compaction kept stands behind its summary: claudekept.go.

// ccChain is a run of lines beside the main conversation.
type ccChain struct {
	name  string
	lines []*ccLine
}

// chains divides the lines into the main conversation and those beside it, each
// in file order.
func (s *ccSession) chains() (main []*ccLine, side []*ccChain) {
	on := s.tree.path(s.lastMainBefore(len(s.lines)), s.report, s.joinRoot)
	s.addSummaries(on)
	s.addParallelLines(on)
	byName := map[string]*ccChain{}
	branches, roots := map[int]string{}, s.tree.roots(on)
	for _, l := range s.lines {
		switch {
		case on[l.at]:
			main = append(main, l)
			continue
		case l.role == "attachment" && !l.side:
			s.report.skip("attachment of a branch")
			continue
		case l.role == "boundary":
			continue
		}
		name := "agent-" + l.agent
		if !l.side || l.agent == "" {
			root := roots[l.at]
			name = branches[root]
			if name == "" {
				kind := "branch"
				if l.side {
					kind = "side"
				}
				name = fmt.Sprintf("%s-%d", kind, len(branches)+1)
				branches[root] = name
			}
		}
		c := byName[name]
		if c == nil {
			c = &ccChain{name: name}
			byName[name] = c
			side = append(side, c)
		}
		c.lines = append(c.lines, l)
	}
	return s.moveKept(main), side
}

// joinRoot is where the path from the newest message goes on when it comes to a root: the message
// before it.
func (s *ccSession) joinRoot(at int, on []bool) int {
	root := &s.tree.entries[at]
	n, _ := slices.BinarySearchFunc(s.lines, root.line, func(l *ccLine, number int) int { return l.number - number })
	before := s.lastMainBefore(n)
	switch {
	case before < 0 || on[before]:
		return -1
	case n < len(s.lines) && s.lines[n].session != s.tree.entries[before].value.session:
		s.report.warn(root.line, "another session, %s, begins here; what stands before it, of %s, was kept before it", s.lines[n].session, s.tree.entries[before].value.session)
		s.restarts = append(s.restarts, root.line)
	case root.parent != "":
		s.report.warn(root.line, "its parent %s is not in the file; it was joined to the message before it", root.parent)
	case root.value != nil && root.value.role == "boundary":
		s.report.warn(root.line, "the compaction does not say what it follows; it was joined to the message before it")
	default:
		s.report.warn(root.line, "the context was started afresh here; the history before it was kept")
		s.restarts = append(s.restarts, root.line)
	}
	return before
}

// lastMainBefore returns the place of the last message of the main conversation in the first
// n lines, or -1.
func (s *ccSession) lastMainBefore(n int) int {
	for i := n - 1; i >= 0; i-- {
		if l := s.lines[i]; !l.side && (l.role == "user" || l.role == "assistant") {
			return l.at
		}
	}
	return -1
}

// addParallelLines adds the lines that parallel calls put beside the path, the harness's notes
// on them, and the attachments of lines on the path.
func (s *ccSession) addParallelLines(on []bool) {
	added := map[int]bool{}
	add := func(l *ccLine) {
		if !on[l.at] {
			on[l.at], added[l.at] = true, true
		}
	}
	answers, calls := map[int]bool{}, map[string]bool{}
	for _, l := range s.lines {
		if on[l.at] && l.answer > 0 {
			answers[l.answer] = true
		}
	}
	for _, l := range s.lines {
		if l.side || l.role != "assistant" {
			continue
		}
		if answers[l.answer] {
			add(l)
		}
		if on[l.at] {
			for _, c := range l.calls {
				calls[c] = true
			}
		}
	}
	for _, l := range s.lines {
		if l.side {
			continue
		}
		for _, r := range l.results {
			if calls[r] {
				add(l)
			}
		}
		if up := s.tree.parent(l.at); up >= 0 && (l.role == "attachment" && on[up] || l.kind == thread.Injected && added[up]) {
			add(l)
		}
	}
}

// joinAnswer finds out which answer of the model a line belongs to. An id of a message joins lines
// only within one request: other servers give the same id again. Without a request the line
// follows one of its answer.
func (s *ccSession) joinAnswer(l *ccLine, request string) {
	if l.role == "user" && len(l.results) == 0 && !l.side && l.kind == thread.Plain {
		clear(s.answers) // nor over what the user says
	}
	if l.role != "assistant" || l.messageID == "" {
		return
	}
	key := [2]string{l.messageID, request}
	up := s.above(s.tree.find(l.parent))
	switch {
	case up != nil && up.role == "assistant" && up.messageID == l.messageID && up.side == l.side:
		l.answer = up.answer
	case request != "":
		l.answer = s.answers[key]
	}
	if l.answer == 0 {
		s.lastAnswer++
		l.answer = s.lastAnswer
	}
	if request != "" {
		s.answers[key] = l.answer
	}
}

// above is the nearest message at a place or above it; nil if there is none.
func (s *ccSession) above(at int) *ccLine {
	if at < 0 {
		return nil
	}
	return s.nearest[at]
}

// ccUnit is one API message: several lines of an assistant's, one of a user's.
type ccUnit struct {
	lines []*ccLine
	calls map[string]bool
	seen  map[string]bool // contents, once there are several lines
}

func (s *ccSession) build(name string, lines []*ccLine) (Transcript, error) {
	b := s.job.newBuilder(value{name: name})
	var pending *Compaction
	restarts := s.restarts
	for _, u := range moveResultsUp(units(lines)) {
		first := u.lines[0]
		if first.role == "boundary" {
			if pending != nil {
				b.addCompaction(*pending, false)
			}
			pending = &Compaction{Trigger: first.trigger, TokensBefore: first.tokens, TokensAfter: first.left}
			continue
		}
		for len(restarts) > 0 && !first.side && first.number >= restarts[len(restarts)-1] {
			b.addCompaction(Compaction{Trigger: "clear"}, false)
			restarts = restarts[:len(restarts)-1]
		}
		b.Model = cmp.Or(first.model, b.Model)
		messages, err := anthropic.DecodeMessage(u.raw())
		if err != nil {
			s.report.warn(first.number, "a message cannot be read and was left out: %v", err)
			continue
		}
		dropForeignBytes(messages)
		eachResult(messages, func(r *thread.ToolResult) {
			d := first.denial // which the client's record shows
			r.Denied = r.Outcome == thread.Failure && (d.sure || d.error != "" && b.calls[r.CallID].Name == "Bash" && r.Text() == d.error)
			if first.partial && r.Outcome != thread.Failure {
				r.Outcome = thread.Partial // what the tool gave before it was stopped
			}
		})
		if first.kind == thread.Recap || pending != nil {
			b.addCompaction(*cmp.Or(pending, &Compaction{}), first.kind == thread.Recap)
			pending = nil
		}
		b.relayed = first.relayed
		b.at(first.number, first.time)
		b.add(first.kind, messages...)
	}
	if pending != nil {
		b.addCompaction(*pending, false)
	}
	return b.build()
}

// units joins the lines of one API message.
func units(lines []*ccLine) []*ccUnit {
	var all []*ccUnit
	byAnswer := map[int]*ccUnit{}
	for _, l := range lines {
		u := byAnswer[l.answer]
		if u == nil {
			u = &ccUnit{}
			all = append(all, u)
		}
		if l.answer > 0 { // only the API's own messages have one
			byAnswer[l.answer] = u
		}
		u.join(l)
	}
	return all
}

// join adds a line, unless it repeats one.
func (u *ccUnit) join(l *ccLine) {
	if len(u.lines) == 1 {
		u.seen = map[string]bool{u.lines[0].content: true}
	}
	if u.seen[l.content] {
		return
	}
	if u.seen != nil {
		u.seen[l.content] = true
	}
	u.lines = append(u.lines, l)
	for _, c := range l.calls {
		if u.calls == nil {
			u.calls = map[string]bool{}
		}
		u.calls[c] = true
	}
}

// moveResultsUp moves the results of a message's calls directly after it, if reminders or a
// person's words came between, as the client does before it sends them. A result with words
// beside it comes last.
func moveResultsUp(all []*ccUnit) []*ccUnit {
	var out []*ccUnit
	for i := 0; i < len(all); {
		u := all[i]
		out = append(out, u)
		i++
		if len(u.calls) == 0 {
			continue
		}
		end := i
		for end < len(all) && all[end].lines[0].role != "assistant" && all[end].lines[0].role != "boundary" {
			end++
		}
		var mixed, rest []*ccUnit
		for _, next := range all[i:end] {
			answer := slices.ContainsFunc(next.lines[0].results, func(r string) bool { return u.calls[r] })
			switch {
			case answer && next.lines[0].spoken:
				mixed = append(mixed, next)
			case answer:
				out = append(out, next)
			default:
				rest = append(rest, next)
			}
		}
		out = append(append(out, mixed...), rest...)
		i = end
	}
	return out
}

// raw returns the API message that the lines make up, with the bytes of its blocks.
func (u *ccUnit) raw() string {
	first := u.lines[0]
	switch c := first.content; {
	case first.role != "assistant" && first.whole == "":
		return `{"role":"user","content":` + c + `}`
	case first.role != "assistant", len(u.lines) == 1 && strings.HasPrefix(c, "[{"):
		return first.whole
	}
	var blocks []string
	for _, l := range u.lines {
		switch v := gjson.Parse(l.content); {
		case v.IsArray() && arrayElements(l.content) != "":
			blocks = append(blocks, arrayElements(l.content))
		case v.Type == gjson.String:
			blocks = append(blocks, rawjson.NewTypedObject("text").Raw("text", l.content).String())
		}
	}
	return `{"role":"assistant","content":` + rawjson.Array(blocks) + `}`
}
