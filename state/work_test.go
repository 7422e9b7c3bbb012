package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestMergeWork(t *testing.T) {
	a := Work{
		Branch: Seen{Text: "main", Sources: []thread.ID{"1"}}, PullRequest: Seen{Text: "https://x/pull/1", Sources: []thread.ID{"2"}},
		Commits:    []Commit{{Hash: "aaaaaaa", Subject: "one", Sources: []thread.ID{"3"}}},
		Edited:     []Edit{{Path: "a.go", Operation: "edited", Sources: []thread.ID{"4"}}},
		Checks:     []Check{{Kind: "test", Command: "go test", Outcome: thread.Success, Sources: []thread.ID{"5"}}, {Kind: "lint", Command: "go vet", Sources: []thread.ID{"6"}}},
		Operations: []Operation{{Tool: "send", Input: "50", Outcome: thread.Success, Sources: []thread.ID{"7"}}},
		Next:       Seen{Text: "I'll go on", Sources: []thread.ID{"8"}},
		Omitted:    Omitted{Commits: 2, Edited: 3},
	}
	after := Work{
		Edited:     []Edit{{Path: "b.go", Operation: "created", Sources: []thread.ID{"14"}}},
		Checks:     []Check{{Kind: "test", Command: "go test", Outcome: thread.Failure, Sources: []thread.ID{"15"}}},
		Operations: []Operation{{Tool: "send", Input: "50", Outcome: thread.Success, Sources: []thread.ID{"17"}}},
	}
	got := Merge(a, after)
	if len(got.Commits) != 1 || len(got.Edited) != 2 || got.Omitted != (Omitted{Commits: 2, Edited: 3}) || len(got.Operations) != 2 || got.Next.Text != "" || got.PullRequest.Text == "" {
		t.Errorf("joined: %+v", got)
	}
	if len(got.Checks) != 2 || got.Checks[0].Command != "go vet" || !cmp.Equal(got.Checks[0].Since, []string{"b.go"}) || got.Checks[1].Outcome != thread.Failure {
		t.Errorf("checks: %+v", got.Checks)
	}
	if len(a.Checks[1].Since) != 0 {
		t.Error("the input was written to")
	}
	after.Commits = []Commit{{Subject: "two", Sources: []thread.ID{"16"}}}
	after.Branch = Seen{Text: "other", Sources: []thread.ID{"18"}}
	got = Merge(a, after)
	if len(got.Edited) != 1 || got.Edited[0].Path != "b.go" || got.Omitted.Edited != 0 || len(got.Commits) != 2 || got.PullRequest.Text != "" {
		t.Errorf("after a commit on another branch: %+v", got)
	}
	knowing := Work{Commits: a.Commits}
	if got := Merge(a, knowing); !cmp.Equal(got, knowing) {
		t.Errorf("what was made in the knowledge of the earlier stands alone: %+v", got)
	}
	if got := Merge(a, Work{}); !cmp.Equal(got, a) {
		t.Errorf("nothing later: %+v", got)
	}
	if got := Merge(Work{}, a); !cmp.Equal(got, a) {
		t.Errorf("nothing earlier: %+v", got)
	}
	if !(Work{}).IsZero() || a.IsZero() {
		t.Error("IsZero")
	}
}
