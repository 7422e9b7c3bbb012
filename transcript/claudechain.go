package transcript

import (
	"cmp"
	"fmt"
	"slices"

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
// before.

// ccChain is a run of lines beside the main conversation.
type ccChain struct {
	name  string
	lines []*ccLine
}

// chains divides the lines into the main conversation and those beside it, each
// in file order.
func (s *ccSession) chains() (main []*ccLine, side []*ccChain) {
	on := s.mainPath()
	s.addParallelLines(on)
	byName := map[string]*ccChain{}
	branches, roots := map[string]string{}, map[string]string{}
	for _, l := range s.lines {
		switch {
		case on[l.uuid]:
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
			root := s.rootOf(l, on, roots)
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
	return main, side
}

// mainPath returns the uuids on the path from the newest message to the first root.
func (s *ccSession) mainPath() map[string]bool {
	on := map[string]bool{}
	at := s.lastMainBefore(len(s.lines))
	for at >= 0 {
		uuid := s.lines[at].uuid
		var last ccLink
		for uuid != "" && !on[uuid] {
			link, held := s.links[uuid]
			if !held {
				break
			}
			on[uuid] = true
			last = link
			uuid = link.parent
		}
		if last.number == 0 || on[uuid] && uuid != "" {
			break
		}
		at = s.lastMainBeforeLine(last.number)
		if at < 0 || on[s.lines[at].uuid] {
			break
		}
		s.linkRoot(last, uuid)
	}
	return on
}

// linkRoot reports that the path goes on at the message before a root.
func (s *ccSession) linkRoot(root ccLink, parent string) {
	if parent != "" {
		s.report.warn(root.number, "its parent %s is not in the file; it was joined to the message before it", parent)
		return
	}
	if root.line != nil && root.line.role == "boundary" {
		s.report.warn(root.number, "the compaction does not say what it follows; it was joined to the message before it")
		return
	}
	s.report.warn(root.number, "the context was started afresh here; the history before it was kept")
	s.restarts = append(s.restarts, root.number)
}

// lastMainBefore returns the position of the last message of the main conversation in the first
// n lines, or -1.
func (s *ccSession) lastMainBefore(n int) int {
	for i := n - 1; i >= 0; i-- {
		if l := s.lines[i]; !l.side && (l.role == "user" || l.role == "assistant") {
			return i
		}
	}
	return -1
}

// lastMainBeforeLine is lastMainBefore for the lines above the one of that number.
func (s *ccSession) lastMainBeforeLine(number int) int {
	n, _ := slices.BinarySearchFunc(s.lines, number, func(l *ccLine, number int) int { return l.number - number })
	return s.lastMainBefore(n)
}

// addParallelLines adds the lines that parallel calls put beside the path, the harness's notes
// on them, and the attachments of lines on the path.
func (s *ccSession) addParallelLines(on map[string]bool) {
	added := map[string]bool{}
	add := func(l *ccLine) {
		if !on[l.uuid] {
			on[l.uuid], added[l.uuid] = true, true
		}
	}
	messages, calls := map[string]bool{}, map[string]bool{}
	for _, l := range s.lines {
		if on[l.uuid] && l.messageID != "" {
			messages[l.messageID] = true
		}
	}
	for _, l := range s.lines {
		if l.side || l.role != "assistant" {
			continue
		}
		if l.messageID != "" && messages[l.messageID] {
			add(l)
		}
		if on[l.uuid] {
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
		if l.role == "attachment" && on[l.parent] || l.kind == thread.Injected && added[l.parent] {
			add(l)
		}
	}
}

// rootOf returns the highest line above l that is not on the path. It remembers the root of
// every line that it passes, so that a long branch is walked once.
func (s *ccSession) rootOf(l *ccLine, on map[string]bool, known map[string]string) string {
	var passed []string
	var root string
	uuid := l.uuid
	for {
		if r, held := known[uuid]; held {
			root = r
			break
		}
		root = uuid
		known[uuid] = uuid // also ends a circle
		passed = append(passed, uuid)
		up := s.links[uuid].parent
		if _, held := s.links[up]; !held || on[up] {
			break
		}
		uuid = up
	}
	for _, p := range passed {
		known[p] = root
	}
	return root
}

// ccUnit is one API message: several lines of an assistant's, one of a user's.
type ccUnit struct {
	lines []*ccLine
	calls map[string]bool
	seen  map[string]bool // contents, once there are several lines
}

// build makes a conversation of lines in file order.
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
			pending = &Compaction{Trigger: first.trigger, TokensBefore: first.tokens}
			continue
		}
		for len(restarts) > 0 && !first.side && first.number >= restarts[len(restarts)-1] {
			b.addCompaction(Compaction{Trigger: "clear"}, false)
			restarts = restarts[:len(restarts)-1]
		}
		b.Model = cmp.Or(first.model, b.Model)
		messages, err := anthropic.DecodeMessage(u.raw())
		if err != nil {
			return Transcript{}, &SyntaxError{Line: first.number, Path: "message", Err: err}
		}
		dropForeignBytes(messages)
		if first.partial {
			markInterrupted(messages)
		}
		markDenied(b, messages, first.denial)
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
	byID := map[string]*ccUnit{}
	for _, l := range lines {
		u := byID[l.messageID]
		if u == nil {
			u = &ccUnit{}
			all = append(all, u)
		}
		if l.messageID != "" { // only the API's own messages have one
			byID[l.messageID] = u
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
	if first.role != "assistant" {
		content := first.content
		if content == "" || content == "null" {
			content = "[]"
		}
		return `{"role":"user","content":` + content + `}`
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

// markInterrupted marks the results that a tool gave before it was stopped.
func markInterrupted(messages []thread.Message) {
	for _, m := range messages {
		for i, p := range m.Parts {
			if r, ok := p.(thread.ToolResult); ok && r.Outcome != thread.Failure {
				r.Outcome = thread.Partial
				m.Parts[i] = r
			}
		}
	}
}
