package render_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestFewCachePoints: a request carries no more cache marks than the provider takes. The
// one at the end comes first, then the one after what a compaction froze.
func TestFewCachePoints(t *testing.T) {
	var messages []thread.Message
	for n := range 6 {
		role := thread.User
		if n%2 == 1 {
			role = thread.Assistant
		}
		messages = append(messages, thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("message ", n)}}})
	}
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: th.Version(), Clearings: []plan.Clearing{{Span: th.Range(2, 3)}}}
	for points, want := range map[int][]int{0: nil, 1: {5}, 2: {2, 5}, 3: {-1, 2, 5}, 4: {-1, 2, 5}} {
		out, _, err := render.Render(th, p, nil, &render.Options{Profile: render.Profile{CachePoints: points}})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, point := range out.CachePoints {
			got = append(got, point.After)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d cache points: after %v, want %v", points, got, want)
		}
	}
}
