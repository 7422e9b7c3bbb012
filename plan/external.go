package plan

import (
	"fmt"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// External is content that a plan keeps outside the prompt.
type External struct {
	// ArtifactID names the content, Messages are those that hold it.
	ArtifactID string
	Messages   []thread.ID
	// Path is the JSON path of the record that says so.
	Path string
}

// Externalized lists what the plan has externalized: what its externalizations replace, and
// the results that no tool gives a second time in what it summarizes and drops.
func (p *Plan) Externalized() []External {
	var out []External
	kept := func(path string, list []Kept) {
		for i, k := range list {
			out = append(out, External{k.ArtifactID, []thread.ID{k.MessageID}, fmt.Sprintf("%s.kept[%d]", path, i)})
		}
	}
	for n, r := range p.Externalizations {
		out = append(out, External{r.ArtifactID, r.Span.MessageIDs, Ref{Externalize, n}.String()})
	}
	for n, r := range p.Summarizations {
		kept(Ref{Summarize, n}.String(), r.Kept)
	}
	for n, r := range p.Drops {
		kept(Ref{Drop, n}.String(), r.Kept)
	}
	return out
}
