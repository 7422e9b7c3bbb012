package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// A compaction of Claude Code may keep messages as they are: the model sees the summary, then those, then
// what comes next. In the file they stand before the boundary, with the parents that they had, and
// what comes next follows the last of them or the summary.

// ccKept are the first and the last message that a compaction kept, and the line that they follow for the
// model. The zero value is none.
type ccKept struct{ head, tail, anchor string }

// keptOf reads what the metadata of a boundary say: the ends of what was kept, or in newer versions each
// message.
func keptOf(about gjson.Result) ccKept {
	kept := ccKept{about.Get("preservedSegment.headUuid").Str, about.Get("preservedSegment.tailUuid").Str, about.Get("preservedSegment.anchorUuid").Str}
	if all := about.Get("preservedMessages"); kept.head == "" {
		if each := all.Get("uuids").Array(); len(each) > 0 {
			kept = ccKept{each[0].Str, each[len(each)-1].Str, all.Get("anchorUuid").Str}
		}
	}
	return ccKept{strings.Clone(kept.head), strings.Clone(kept.tail), strings.Clone(kept.anchor)}
}

// addSummaries adds the compactions whose kept messages are on the path, with all before them: what
// follows a kept message does not lead there. The newest comes first, as an older one may be above it.
func (s *ccSession) addSummaries(on []bool) {
	newest := s.lastMainBefore(len(s.lines))
	for i := len(s.lines) - 1; i >= 0; i-- {
		l := s.lines[i]
		if tail := s.tree.find(l.kept.tail); tail < 0 || !on[tail] || on[l.at] || newest < l.at {
			continue
		}
		last := max(l.at, s.tree.find(l.kept.anchor))
		if last == l.at && i+1 < len(s.lines) && s.lines[i+1].kind == thread.Recap {
			last = s.lines[i+1].at
		}
		s.tree.extend(on, last, s.joinRoot)
		s.tree.extend(on, l.at, s.joinRoot)
	}
}

// moveKept moves what compactions kept behind their summaries. What a compaction before it had kept too
// stays where that left it.
func (s *ccSession) moveKept(main []*ccLine) []*ccLine {
	place := map[string]int{}
	for i, l := range main {
		place[l.uuid] = i
	}
	find := func(uuid string) int {
		if at, ok := place[uuid]; ok {
			return at
		}
		return -1
	}
	behind := map[int][]*ccLine{} // by the place of the line that they follow
	moved := make([]bool, len(main))
	for at, l := range main {
		if l.kept.head == "" {
			continue
		}
		head, tail, anchor := find(l.kept.head), find(l.kept.tail), max(at, find(l.kept.anchor))
		if head < 0 || tail < 0 {
			s.report.warn(l.number, "messages that the compaction kept are not in the conversation")
			continue
		}
		if anchor == at && at+1 < len(main) && main[at+1].kind == thread.Recap {
			anchor++
		}
		for i := min(tail, at-1); i >= head && !moved[i] && main[i].role != "boundary"; i-- {
			moved[i] = true
			behind[anchor] = append(behind[anchor], main[i])
		}
	}
	if len(behind) == 0 {
		return main
	}
	out := make([]*ccLine, 0, len(main))
	for i, l := range main {
		if !moved[i] {
			out = append(out, l)
		}
		for k := len(behind[i]) - 1; k >= 0; k-- {
			out = append(out, behind[i][k])
		}
	}
	return out
}
