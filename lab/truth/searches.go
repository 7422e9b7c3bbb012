package truth

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
)

// search judges the places that a search is said to have shown, and in how many of them an edit
// is said to have replaced what it showed.
func (j *judge) search(s state.Search) {
	st := j.claim("search for "+s.Query, s.Sources)
	var c *call
	for _, at := range st.at {
		for _, x := range j.at[at] {
			if strings.Contains(x.said, strings.TrimSuffix(s.Query, "…")) || strings.Contains(normal(x.said), normal(strings.TrimSuffix(s.Query, "…"))) {
				c = x
			}
		}
	}
	if c == nil {
		j.isFalse(kindSearch, st, "the messages that it names hold no such search")
		return
	}
	for _, p := range s.Places {
		for _, n := range p.Lines {
			shown := false
			for _, line := range strings.Split(c.out, "\n") {
				file, rest, _ := strings.Cut(line, ":")
				head, text, _ := strings.Cut(rest, ":")
				file = path.Clean(file)
				shown = shown || (file == p.Path || strings.HasSuffix(p.Path, "/"+file)) && head == strconv.Itoa(n) && strings.TrimSpace(text) == p.Text
			}
			j.say(kindSearch, shown, st.and(fmt.Sprintf(" | %s:%d", p.Path, n)), "its result does not show it", c.result)
		}
		surely, perhaps := 0, 0
		for _, e := range j.calls {
			if e.at <= c.at || e.end != succeeded || !strings.HasSuffix("/"+e.path(), "/"+strings.TrimPrefix(p.Path, "/")) && !strings.HasSuffix(p.Path, "/"+e.path()) {
				continue
			}
			for _, r := range e.edits() {
				switch {
				case !strings.Contains(r.old, p.Text) && !(strings.Contains(p.Text, strings.TrimSpace(r.old)) && strings.TrimSpace(r.old) != ""):
				case hasLine(r.old, p.Text) && !hasLine(r.new, p.Text) && r.all:
					surely, perhaps = surely+len(p.Lines), perhaps+len(p.Lines)
				case hasLine(r.old, p.Text) && !hasLine(r.new, p.Text):
					surely, perhaps = surely+1, perhaps+strings.Count(r.old, p.Text)
				case !hasLine(r.new, p.Text):
					perhaps += len(p.Lines)
				}
			}
		}
		reason := fmt.Sprintf("edits replaced it in %d to %d of its lines", surely, perhaps)
		j.say(kindPlace, p.Changed >= min(surely, len(p.Lines)) && p.Changed <= perhaps, st.and(fmt.Sprintf(" | %s: %s changed in %d of %d", p.Path, p.Text, p.Changed, len(p.Lines))), reason, c.result)
	}
}

// hasLine reports whether a text has a line of such words.
func hasLine(text, line string) bool {
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}
