package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Render writes the digest as text, a line each (C10). It is made for an agent
// that reads it back. What tools gave stands in quotes, so that no path or query
// can pass for a line of the digest.
func (d Digest) Render() string {
	var b strings.Builder
	heading := func(name string, n int) {
		if n > 0 {
			fmt.Fprintf(&b, "%s (%d):\n", name, n)
		}
	}
	heading("Produced", len(d.Artifacts))
	for _, a := range d.Artifacts {
		fmt.Fprintf(&b, "- %q, %s, %s", a.Path, a.MIME, a.Visibility)
		if len(a.Sources) > 0 {
			fmt.Fprintf(&b, ", from %q", a.Sources)
		}
		b.WriteByte('\n')
	}
	for _, tool := range slices.Sorted(maps.Keys(d.Tools)) {
		heading(fmt.Sprintf("Results of %q", tool), len(d.Tools[tool]))
		for _, o := range d.Tools[tool] {
			fmt.Fprintf(&b, "- message %s, %q, %s, %d bytes\n", o.MessageID, o.Path, o.Outcome, o.Bytes)
		}
	}
	heading("Searches in memory", len(d.Searches))
	for _, s := range d.Searches {
		fmt.Fprintf(&b, "- %q: %d hits %q\n", s.Query, s.Hits, s.Paths)
	}
	heading("Hidden before", len(d.Hidden))
	for _, h := range d.Hidden {
		fmt.Fprintf(&b, "- message %s, %q: %q\n", h.MessageID, h.Path, h.Replacement)
	}
	if b.Len() == 0 {
		return "Nothing was produced, called or hidden."
	}
	return strings.TrimSuffix(b.String(), "\n")
}
