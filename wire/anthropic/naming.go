package anthropic

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// maxToolName is the length limit of a tool's name, in characters.
const maxToolName = 128

// toolNames gives each tool one name that the API accepts.
type toolNames struct {
	kept map[string]bool // names in bytes that are sent as they are
}

func (n toolNames) of(name string) string {
	if n.kept[name] {
		return name
	}
	return codec.FitPlainName(name, maxToolName)
}

// callNames gives each call an id that the API accepts (^[a-zA-Z0-9_-]+$) and that no
// other call has. The same ids in the same order always get the same names.
type callNames struct {
	taken   map[string]bool
	given   map[string]string   // the last name given for an id
	pending map[string][]string // names of calls that are not answered yet
	last    map[string]int      // the last number tried behind a name
}

// reserve keeps an id for bytes that are sent as they are.
func (n *callNames) reserve(id string) { n.taken[id], n.given[id] = true, id }

// newName returns a name for a call that nothing else has.
func (n *callNames) newName(id string) string {
	base := strings.Map(func(r rune) rune {
		if r < 0x80 && codec.PlainByte(byte(r)) {
			return r
		}
		return '_'
	}, cmp.Or(id, "call"))
	name := base
	for n.taken[name] {
		// Numbering goes on where it stopped: a model that gives all its calls
		// one id must not make this slow.
		n.last[base]++
		name = base + "_" + strconv.Itoa(n.last[base]+1)
	}
	n.taken[name], n.given[id] = true, name
	return name
}

// call names a call. sent says that its bytes are sent as they are.
func (n *callNames) call(id string, sent bool) string {
	name := id
	if sent {
		n.given[id] = id
	} else {
		name = n.newName(id)
	}
	n.pending[id] = append(n.pending[id], name)
	return name
}

// result returns the name of the call that a result answers: the first open one with its
// id, else the last one.
func (n *callNames) result(id string) string {
	if open := n.pending[id]; len(open) > 0 {
		n.pending[id] = open[1:]
		return open[0]
	}
	if name, ok := n.given[id]; ok {
		return name
	}
	return n.newName(id)
}
