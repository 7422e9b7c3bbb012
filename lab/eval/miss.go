package eval

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// Miss is a reference that auto did not keep.
type Miss struct {
	Session string `json:"session"`
	Budget  string `json:"budget"`
	Step    int    `json:"step"`
	Type    string `json:"type"`
	Value   string `json:"value"`
	Origin  string `json:"origin"`
	Age     int    `json:"age"`
	// Mentions is how often it was seen before; LastRole and LastTool say where last.
	Mentions int    `json:"mentions"`
	LastRole string `json:"last_role"`
	LastTool string `json:"last_tool,omitempty"`
	// Direct: it is in the prompt, without a word that tells what it is. Lookup: one
	// search brings it.
	Direct bool `json:"direct"`
	Lookup bool `json:"lookup"`
	// Line is the text around its last mention before the moment.
	Line string `json:"line"`
}

func missOf(m *references.Moment, n references.Need, f references.Found, budget string) Miss {
	x := Miss{
		Session: m.Name, Budget: budget, Step: n.Step, Type: n.Type.String(), Value: n.Norm,
		Origin: n.Origin, Age: n.Age, Direct: f.Direct, Lookup: f.Lookup,
	}
	last := 0
	for _, s := range n.Seen {
		if s.Pos < m.Tail {
			last = s.Pos
			x.Mentions++
		}
	}
	msg := m.Thread.At(last)
	x.LastRole = string(msg.Role)
	if r, ok := msg.Result(); ok {
		x.LastTool = r.Tool
	} else if calls := msg.Calls(); len(calls) > 0 {
		x.LastTool = calls[0].Name
	}
	m.Find.Find(m.Texts[last], func(id int32, at, end int) {
		if id == n.ID && x.Line == "" {
			text := m.Texts[last]
			x.Line = text[max(0, at-80):min(len(text), end+80)]
		}
	})
	return x
}

// WriteMisses writes what auto lost by kind, the most frequent kinds first, with a few
// examples.
func (r *Report) WriteMisses(w io.Writer) error {
	type kind struct {
		name     string
		n        int
		lookups  int
		examples []Miss
	}
	var b strings.Builder
	for _, by := range []struct {
		title string
		of    func(Miss) string
	}{
		{"type", func(m Miss) string { return m.Type }},
		{"age in steps", func(m Miss) string { return references.Need{Age: m.Age}.AgeName() }},
		{"origin", func(m Miss) string { return m.Origin }},
		{"last seen in", func(m Miss) string { return m.LastRole + " " + m.LastTool }},
		{"type and where last seen", func(m Miss) string { return m.Type + " in " + m.LastRole + " " + m.LastTool }},
	} {
		kinds := map[string]*kind{}
		for _, m := range r.Misses {
			k := kinds[by.of(m)]
			if k == nil {
				k = &kind{name: by.of(m)}
				kinds[k.name] = k
			}
			k.n++
			if m.Lookup {
				k.lookups++
			}
			if len(k.examples) == 0 || k.examples[len(k.examples)-1].Session != m.Session {
				k.examples = append(k.examples, m)
			}
		}
		sorted := slices.SortedFunc(maps.Values(kinds), func(a, b *kind) int {
			return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name))
		})
		fmt.Fprintf(&b, "\nmisses of auto by %s (%d)\n", by.title, len(r.Misses))
		for i, k := range sorted {
			if i == 20 {
				break
			}
			fmt.Fprintf(&b, "  %5d  %5.1f %%  found by lookup %3.0f %%  %s\n", k.n, 100*float64(k.n)/float64(len(r.Misses)), 100*float64(k.lookups)/float64(k.n), k.name)
			if by.title != "type and where last seen" {
				continue
			}
			for n, m := range k.examples {
				if n == 3 {
					break
				}
				fmt.Fprintf(&b, "           %s step %d age %d seen %d×: %q in %q\n", m.Session, m.Step, m.Age, m.Mentions, m.Value, strings.Join(strings.Fields(m.Line), " "))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
