package daemon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// TestEventsOfAStep: a stream of events that is open gets the checks and the proposals of every step too, before what
// came of them, and no id for them, since they are not stored; one that is opened later gets what is stored. A18
func TestEventsOfAStep(t *testing.T) {
	k := talking(t, palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: 9_000, PreserveRecentTurns: 1}}, api.Step{Window: 20_000, Output: 1_000})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	got, started, done := make(chan api.StreamedEvent, 4096), make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		close(started)
		for e, err := range k.Events(ctx, "t", "0") {
			if err != nil {
				return
			}
			got <- e
		}
	}()
	<-started
	next := func(want event.Type) (all []api.StreamedEvent) {
		for {
			e := <-got
			all = append(all, e)
			if e.Event.Type == want {
				return all
			}
		}
	}
	// The stream is open once an event of a step comes.
	open := false
	for n := 0; !open; n++ {
		k.ask(said("user", fmt.Sprintf("Hello %d.", n)))
		k.answer(said("assistant", "Hello."))
		select {
		case e := <-got:
			open = e.Event.Type == event.CheckStarted || e.Event.Type == event.PromptPrepared
		default:
		}
	}
	for n := 0; ; n++ {
		k.ask(said("user", "Count on. "+strings.Repeat("the box is blue ", 200)))
		k.answer(said("assistant", "Counted."))
		if k.heard(event.Completed) > 0 {
			break
		}
	}
	var types []event.Type
	for _, e := range next(event.Completed) {
		if passing := e.Event.Type == event.CheckStarted || e.Event.Type == event.ProposalGenerated || e.Event.Type == event.PromptPrepared || e.Event.Type == event.Asked; passing != (e.ID == "") {
			t.Errorf("%s has the id %q", e.Event.Type, e.ID)
		}
		types = append(types, e.Event.Type)
	}
	at := -1
	for _, want := range []event.Type{event.CheckStarted, event.ProposalGenerated, event.Summarized} {
		n := slices.Index(types[at+1:], want)
		if n < 0 {
			t.Fatalf("no %s behind the others in %q", want, types)
		}
		at += 1 + n
	}
	stop()
	<-done
	for e, err := range k.Events(t.Context(), "t", "0") {
		if err != nil || e.ID == "" {
			t.Fatalf("%+v, %v", e, err)
		}
		if e.Event.Type == event.Completed {
			break
		}
	}
}

// heard is how many events of a type there were.
func (k *talk) heard(types ...event.Type) int { return len(k.told.of(types...)) }
