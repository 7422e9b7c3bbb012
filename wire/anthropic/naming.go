package anthropic

import (
	"cmp"
	"fmt"
	"strings"
)

// naming gives names that the API accepts (^[a-zA-Z0-9_-]+$), each only once.
// The same names in the same order always give the same result.
type naming struct {
	fallback string
	limit    int // characters; 0 for no limit
	taken    map[string]bool
	given    map[string]string   // the last name given for an original
	pending  map[string][]string // names of calls not yet answered
	last     map[string]int      // the last number tried behind a name
}

func newNaming(fallback string, limit int) *naming {
	return &naming{
		fallback: fallback, limit: limit, taken: map[string]bool{},
		given: map[string]string{}, pending: map[string][]string{}, last: map[string]int{},
	}
}

// reserve keeps a name for bytes that are sent as they are.
func (n *naming) reserve(name string) {
	n.taken[name] = true
	n.given[name] = name
}

// nameOf returns the one name for an original.
func (n *naming) nameOf(original string) string {
	if name, ok := n.given[original]; ok {
		return name
	}
	return n.newName(original)
}

// newName returns a name for an original that nothing else has.
func (n *naming) newName(original string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, original)
	base = cmp.Or(base, n.fallback)
	name := n.cut(base, 0)
	for n.taken[name] {
		// Numbering goes on where it stopped: a model that gives all its calls
		// one id must not make this slow.
		n.last[base]++
		suffix := fmt.Sprintf("_%d", n.last[base]+1)
		name = n.cut(base, len(suffix)) + suffix
	}
	n.taken[name] = true
	n.given[original] = name
	return name
}

func (n *naming) cut(name string, room int) string {
	if n.limit > 0 && len(name) > n.limit-room {
		return name[:n.limit-room]
	}
	return name
}

// callID names a call; sent says that its bytes go out as they are.
func (n *naming) callID(id string, sent bool) string {
	name := id
	if sent {
		n.given[id] = id
	} else {
		name = n.newName(id)
	}
	n.pending[id] = append(n.pending[id], name)
	return name
}

// resultID names the call that a result answers: the first open one with its id,
// else the last one.
func (n *naming) resultID(id string) string {
	if open := n.pending[id]; len(open) > 0 {
		n.pending[id] = open[1:]
		return open[0]
	}
	return n.nameOf(id)
}
