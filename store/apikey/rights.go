package apikey

import (
	"fmt"
	"strings"
)

// Rights is a set of rights. None includes another: a key that may only write cannot read.
type Rights uint8

// The rights there are.
const (
	// Read allows to read the tenant's threads, plans, prompts and artifacts. It never
	// calls a model or starts a job.
	Read Rights = 1 << iota
	// Write allows to append; together with Read also calls that return content: steps,
	// compacting, undoing. Nothing in the log can be lost by it.
	Write
	// Admin allows to delete threads.
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

// ParseRights reads names separated by commas. The error names an unknown right; an empty
// text is an error too.
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
		return 0, fmt.Errorf("apikey.ParseRights: %q is not a right: want some of %s", name, all)
	}
	return r, nil
}
