package rehydrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// BenchmarkNeeded decides for a turn of 8 KB over a plan of 200 artifacts: with
// plain words, and with a question, for which all that the plan says is read.
func BenchmarkNeeded(b *testing.B) {
	p := &plan.Plan{ThreadID: "t"}
	for i := range 200 {
		p.Externalizations = append(p.Externalizations, plan.Externalization{
			ArtifactID: artifact.IDOf("t", fmt.Sprint(i)),
			Summary:    summary.Summary{Facts: []summary.Item{{Text: strings.Repeat(fmt.Sprintf("pkg%d/file%d.go holds things; ", i, i), 20)}}},
		})
	}
	r := rehydrate.New(nowhere{}, count, nil)
	agent := strings.Repeat("The next step is to look at the handler. ", 200)
	for name, agent := range map[string]string{"words": agent, "question": agent + "What does pkg7/file7.go hold?"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Needed(at(1, agent), p)
			}
		})
	}
}
