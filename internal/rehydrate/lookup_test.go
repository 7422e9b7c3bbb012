package rehydrate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestLookup: an id leads to what it was made of, a pointer that is no content's id to
// its messages, and the beginning of an id to the one that begins so.
func TestLookup(t *testing.T) {
	said := func(id thread.ID, text string) thread.Message {
		return thread.Message{ID: id, Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	result := said("message-c", "")
	result.Role, result.Parts = thread.Tool, []thread.Part{thread.ToolResult{CallID: "1", Tool: "Read", Content: []thread.Part{thread.Text{Text: "package depot"}}}}
	log, err := thread.New("t").Append(said("message-a", "alpha"), said("message-b", "beta"), result)
	if err != nil {
		t.Fatal(err)
	}
	art := artifact.IDOf("t", "package depot")
	pointers := rehydrate.Pointers(nil, &plan.Plan{ThreadID: "t", Externalizations: []plan.Externalization{
		{Span: log.Range(0, 2), ArtifactID: "blob-1"}, {Span: log.Range(2, 3), ArtifactID: art},
	}})
	for name, l := range map[string]*rehydrate.Lookup{
		"with pointers": {Thread: log, Pointers: pointers},
		"keyed":         {Thread: log, Pointers: pointers, Names: func(id, _, text string) bool { return id == art && text == "package depot" }},
		"by the log":    {Thread: log},
	} {
		for id, want := range map[string]string{"message-a": "alpha", art: "package depot", "blob-1": "alpha\nbeta", art[:10]: "package depot"} {
			c, err := rehydrate.Pick(id, l.Find(id))
			if l.Pointers == nil && (id == "blob-1" || id == art[:10]) {
				if !errors.Is(err, artifact.ErrNotFound) {
					t.Errorf("%s: %s: %+v, %v", name, id, c, err)
				}
				continue
			}
			if err != nil || c.Text != want || c.ThreadID != "t" {
				t.Errorf("%s: %s: %+v, %v", name, id, c, err)
			}
			if id == art && (c.Tool != "Read" || !slices.Equal(c.MessageIDs, []thread.ID{"message-c"})) {
				t.Errorf("%s: %+v", name, c)
			}
		}
		for _, id := range []string{"", "mess", "art_0000000000000000"} {
			if _, err := rehydrate.Pick(id, l.Find(id)); !errors.Is(err, artifact.ErrNotFound) {
				t.Errorf("%s: %q: %v", name, id, err)
			}
		}
		_, err := rehydrate.Pick("messag", l.Find("messag"))
		if several, ok := errors.AsType[*rehydrate.AmbiguousError](err); !ok || len(several.Candidates) != 3 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPick: of several conversations a whole id goes before a beginning, and what two of
// them say alike is one.
func TestPick(t *testing.T) {
	a, b := rehydrate.Content{ID: "message-a", ThreadID: "1", Text: "x"}, rehydrate.Content{ID: "message-ab", ThreadID: "2", Text: "y"}
	again, other := a, a
	again.ThreadID, other.ThreadID, other.Text = "3", "4", "z"
	if c, err := rehydrate.Pick("message-a", []rehydrate.Content{b, a, again}); err != nil || c.ThreadID != "1" {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := rehydrate.Pick("message-a", []rehydrate.Content{a, other})
	several, ok := errors.AsType[*rehydrate.AmbiguousError](err)
	if !ok || !slices.Equal(several.Candidates, []string{"message-a (thread 1)", "message-a (thread 4)"}) {
		t.Errorf("%v", err)
	}
}
