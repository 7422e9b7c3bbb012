package apikey

import (
	"fmt"
	"strings"
)

// Rights is a set of what a key may do. None follows from another: a key that
// may only write cannot read. The zero value is nothing.
type Rights uint8

// The rights there are.
const (
	// Read is reading threads, plans, prompts and artifacts of the tenant. It spends
	// nothing: no model is asked and no work is begun for it.
	Read Rights = 1 << iota
	// Write is changing them: by itself appending, and together with Read what answers
	// with what was said: steps, compacting, undoing. Nothing that was said is lost by
	// it.
	Write
	// Admin is what is lost for good: deleting threads.
	Admin

	all = Read | Write | Admin
)

var rightNames = []struct {
	right Rights
	name  string
}{{Read, "read"}, {Write, "write"}, {Admin, "admin"}}

// Has reports whether r holds all of want.
func (r Rights) Has(want Rights) bool { return r&want == want }

func (r Rights) valid() bool { return r != 0 && r&^all == 0 }

// String writes the rights as ParseRights reads them: "read,write".
func (r Rights) String() string {
	var names []string
	for _, n := range rightNames {
		if r.Has(n.right) {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// ParseRights reads names with commas between them. The error names what is no
// right; no right at all is an error too.
func ParseRights(s string) (Rights, error) {
	var r Rights
next:
	for name := range strings.SplitSeq(s, ",") {
		for _, n := range rightNames {
			if strings.TrimSpace(name) == n.name {
				r |= n.right
				continue next
			}
		}
		return 0, fmt.Errorf("apikey.ParseRights: %q is no right: want some of %s", name, all)
	}
	return r, nil
}
