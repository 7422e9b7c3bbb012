package rehydrate_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/recall"
)

// TestLimits: whatever the artifacts, the limits, the counter and the turns, no
// limit is passed, nothing comes back within its cooldown, and a turn asked
// again gives the same. A10
func TestLimits(t *testing.T) {
	sensitivities := []artifact.Sensitivity{artifact.Public, artifact.Internal, artifact.Confidential, artifact.Restricted}
	property.Check(t, func(rt *rapid.T) {
		s := newShelf(t)
		class := map[string]artifact.Sensitivity{}
		var ids []string
		for i := range rapid.IntRange(1, 8).Draw(rt, "artifacts") {
			text := fmt.Sprintf("%d %s", i, strings.Repeat(rapid.SampledFrom([]string{"word ", "x", "日本\n", "line\n", "👩‍👩‍👧"}).Draw(rt, "unit"), rapid.IntRange(0, 400).Draw(rt, "size")))
			c := rapid.SampledFrom(sensitivities).Draw(rt, "class")
			id := s.put(artifact.Metadata{Sensitivity: c}, text)
			ids, class[id] = append(ids, id), c
		}
		o := recall.Rehydration{
			MaxArtifacts:  rapid.IntRange(-1, 4).Draw(rt, "max artifacts"),
			MaxTokens:     rapid.IntRange(-1, 400).Draw(rt, "max tokens"),
			TotalTokens:   rapid.IntRange(-1, 600).Draw(rt, "total"),
			CooldownTurns: rapid.IntRange(-1, 4).Draw(rt, "cooldown"),
		}
		limit := func(n, fallback int) int {
			if n == 0 {
				return fallback
			}
			return max(n, 0)
		}
		per := rapid.SampledFrom([]int{1, 3, 4}).Draw(rt, "bytes per token")
		measure := func(s string) int { return (len(s) + per - 1) / per }
		r := rehydrate.New(s.store, measure, &o)
		last := map[string]int{}
		number := 0
		for range rapid.IntRange(1, 12).Draw(rt, "turns") {
			number += rapid.IntRange(1, 2).Draw(rt, "step")
			turn := at(number, strings.Join(rapid.SliceOf(rapid.SampledFrom(ids)).Draw(rt, "mentions"), " "))
			contents, given, err := r.Rehydrate(t.Context(), owner, turn, s.plan)
			if err != nil {
				rt.Fatal(err)
			}
			again, _, _ := r.Rehydrate(t.Context(), owner, turn, s.plan)
			if diff := cmp.Diff(contents, again); diff != "" {
				rt.Fatalf("turn %d asked again differs:\n%s", number, diff)
			}
			total := 0
			for _, c := range contents {
				n := measure(c.Text())
				total += n
				if n > limit(o.MaxTokens, 4000) {
					rt.Errorf("%s takes %d tokens", c.ArtifactID, n)
				}
				if !strings.Contains(turn.Agent, c.ArtifactID) {
					rt.Errorf("%s came back and was not mentioned", c.ArtifactID)
				}
				if k := class[c.ArtifactID]; k != artifact.Public && k != artifact.Internal {
					rt.Errorf("%s is %s", c.ArtifactID, k)
				}
				if before, shown := last[c.ArtifactID]; shown && number-before < limit(o.CooldownTurns, 2) {
					rt.Errorf("%s came back in turns %d and %d", c.ArtifactID, before, number)
				}
				last[c.ArtifactID] = number
			}
			if len(contents) > limit(o.MaxArtifacts, 3) || total > limit(o.TotalTokens, 8000) || total != given.Tokens {
				rt.Errorf("%d artifacts in %d tokens, counted as %d", len(contents), total, given.Tokens)
			}
			if shown := r.Shown("t"); len(shown) > len(ids) {
				rt.Errorf("%d artifacts are remembered as %d", len(ids), len(shown))
			}
		}
	})
}

// TestCut: what is too large keeps its head and its tail, and says so.
func TestCut(t *testing.T) {
	s := newShelf(t)
	id := s.put(artifact.Metadata{}, "the first line\n"+strings.Repeat("filler\n", 50_000)+"the last line")
	contents, given, err := s.rehydrator(recall.Rehydration{}).Rehydrate(t.Context(), owner, at(1, id), s.plan)
	if err != nil || len(contents) != 1 {
		t.Fatal(contents, err)
	}
	text := contents[0].Text()
	for _, want := range []string{"the first line\n", "the last line\n", "characters left out", "call read_artifact(\"" + id + "\") for the rest"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not hold %q", want)
		}
	}
	if given.Tokens > 4000 || given.Tokens < 3600 {
		t.Errorf("cut to %d tokens of 4,000", given.Tokens)
	}
	if got, _ := give(t, s.rehydrator(recall.Rehydration{MaxTokens: 20}), at(1, id), s.plan); len(got) != 0 {
		t.Errorf("a heading alone came back: %v", got)
	}
	if last := s.events[len(s.events)-1]; last != "rehydration_blocked "+id+" limit" {
		t.Errorf("the last event is %s", last)
	}
}

// TestRewrittenHistory: a turn number that goes back is another history, which
// has not seen what the first one saw.
func TestRewrittenHistory(t *testing.T) {
	s := newShelf(t)
	id := s.put(artifact.Metadata{}, "content")
	r := s.rehydrator(recall.Rehydration{})
	for _, number := range []int{50, 10, 12} {
		if got, _ := give(t, r, at(number, id), s.plan); len(got) != 1 {
			t.Errorf("turn %d shows %v", number, got)
		}
	}
	if got, _ := give(t, r, at(13, id), s.plan); len(got) != 0 {
		t.Errorf("turn 13 shows %v", got)
	}
}

// TestThreads: cooldowns are those of one thread, and no number of threads makes
// them grow without end.
func TestThreads(t *testing.T) {
	s := newShelf(t)
	id := s.put(artifact.Metadata{}, "content")
	r := rehydrate.New(s.store, count, nil)
	const threads = 5000
	for i := range threads {
		turn := at(1, id)
		turn.ThreadID = fmt.Sprint(i)
		if got, _ := give(t, r, turn, s.plan); len(got) != 1 {
			t.Fatalf("thread %d shows %v", i, got)
		}
	}
	if len(r.Shown(fmt.Sprint(threads-1))) != 1 || len(r.Shown("0")) != 0 {
		t.Error("the newest thread is forgotten, or the oldest is not")
	}
}

// TestMeanwhile: what another turn of the thread shows while this one is reading
// is not shown twice.
func TestMeanwhile(t *testing.T) {
	s := newShelf(t)
	id := s.put(artifact.Metadata{}, "content")
	source := &spy{Source: s.store}
	r := rehydrate.New(source, count, &recall.Rehydration{Events: s})
	source.before = func() {
		source.before = nil
		if got, _ := give(t, r, at(1, id), s.plan); len(got) != 1 {
			t.Errorf("turn 1 shows %v", got)
		}
	}
	if got, given := give(t, r, at(2, id), s.plan); len(got) != 0 || given.Happened {
		t.Errorf("turn 2 shows %v", got)
	}
	s.sawEvents("compaction_rehydrated "+id+" mention", "rehydration_blocked "+id+" cooldown")
}

// TestConcurrent: threads at once do not disturb each other.
func TestConcurrent(t *testing.T) {
	s := newShelf(t)
	id := s.put(artifact.Metadata{}, "content")
	r := s.rehydrator(recall.Rehydration{})
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Go(func() {
			for number := 1; number <= 20; number++ {
				turn := at(number, id)
				turn.ThreadID = fmt.Sprint(n)
				contents, _, err := r.Rehydrate(t.Context(), owner, turn, s.plan)
				if err != nil || len(contents) != number%2 {
					t.Errorf("thread %d, turn %d: %d contents, %v", n, number, len(contents), err)
				}
				r.Shown(fmt.Sprint(n + 1))
			}
		})
	}
	wait.Wait()
}
