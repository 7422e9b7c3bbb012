package palimpsest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestRehydratedOnMention: what was externalized is kept before the plan is in
// force, and comes back for one prompt when the agent names it; the log never
// holds it, and it takes no part in the pressure. A10, A11
func TestRehydratedOnMention(t *testing.T) {
	counter := o200k(t)
	c, err := palimpsest.New(palimpsest.Config{
		Policy: policy.Ladder{}, Counter: counter, Artifacts: artifact.NewStore(new(artifact.Memory), nil), Recall: &palimpsest.Recall{},
	})
	if err != nil {
		t.Fatal(err)
	}
	th, step, _ := longLoop(t, c)
	plans, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	aside := plans[len(plans)-1].Externalizations
	if len(aside) == 0 {
		t.Fatal("nothing was externalized")
	}
	id := aside[len(aside)-1].ArtifactID
	if err := th.FinishStep(t.Context(), nil, wire.Usage{}, plain(thread.Assistant, "I need "+id+" again.")); err != nil {
		t.Fatal(err)
	}
	shows := func() bool {
		t.Helper()
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Messages {
			if strings.Contains(m.Text(), "[Rehydrated Content - artifact:"+id+"]") && strings.Contains(m.Text(), "func handle") {
				return true
			}
		}
		return false
	}
	step.Messages = []thread.Message{plain(thread.User, "Go on.")}
	if !shows() {
		t.Error("the agent names an artifact and is not shown it")
	}
	if err := th.FinishStep(t.Context(), nil, wire.Usage{}, plain(thread.Assistant, "Thank you.")); err != nil {
		t.Fatal(err)
	}
	step.Messages = []thread.Message{plain(thread.User, "And now the rest.")}
	if shows() {
		t.Error("what was shown once stays in the prompt")
	}
}

// full is a backend whose disk is full.
type full struct{ artifact.Backend }

func (full) Put(context.Context, artifact.Metadata, []byte, artifact.Condition) (bool, error) {
	return false, errors.New("disk full")
}

// TestNothingPointsAtWhatIsNotKept: a plan whose content cannot be kept does not
// come into force; the agent goes on under the plan before it, or with everything.
// What a plan only summarizes stands in the log and needs no other place.
func TestNothingPointsAtWhatIsNotKept(t *testing.T) {
	var told recorder
	c, err := palimpsest.New(palimpsest.Config{Artifacts: artifact.NewStore(full{new(artifact.Memory)}, nil), Events: &told})
	if err != nil {
		t.Fatal(err)
	}
	th, _, prompts := longLoop(t, c)
	plans, err := th.Plans(t.Context())
	if err != nil || told.count(event.Failed) == 0 {
		t.Errorf("%d failures told, %v", told.count(event.Failed), err)
	}
	for n, p := range plans {
		if len(p.Externalizations) > 0 {
			t.Errorf("plan %d points at %d contents that are not kept", n+1, len(p.Externalizations))
		}
	}
	for n, messages := range prompts {
		for _, m := range messages {
			if r, _ := m.Result(); strings.Contains(m.Text()+r.Text(), "read_artifact(") {
				t.Errorf("prompt %d points at content that is not kept", n)
			}
		}
	}
}
