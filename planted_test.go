package palimpsest_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// planted are facts that are said once, in passing, among anything else.
var planted = []string{"I prefer Python.", "The budget is $1000.", "Never delete production data."}

func plain(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

// TestPlantedFactsInRandomThreads: whatever models, tools and harnesses say
// around them, facts that the user once said are in the prompt after each later
// compaction. Where a hundred messages of the user's, with dozens of other
// rules, compete for a few thousand tokens, not all can stand: then the rate is
// reported. A21
func TestPlantedFactsInRandomThreads(t *testing.T) {
	counter := o200k(t)
	cycles := 0
	var crowded tally
	property.Few(t, 15, func(rt *rapid.T) {
		api := rapid.SampledFrom(apis).Draw(rt, "api")
		target := rapid.IntRange(3_000, 6_000).Draw(rt, "target")
		crowd := rapid.Bool().Draw(rt, "crowd")
		loop := newLoop(t, counter, api, nil, target*3/2, target)
		loop.append(plain(thread.User, "Tidy the queue, step by step."))
		for n, fact := range planted {
			loop.append(plain(thread.User, fact), plain(thread.Assistant, "Understood."))
			for range rapid.IntRange(2, 5).Draw(rt, "more") {
				for _, m := range threadgen.Thread().Draw(rt, "thread").Messages() {
					m.ID = ""
					if m.Role == thread.User && !crowd {
						m.Kind = thread.Injected
					}
					loop.append(m)
				}
				res, compacted, err := loop.try()
				if errors.Is(err, palimpsest.ErrOverBudget) {
					continue // calls left open by the random thread
				}
				if err != nil {
					rt.Fatal(err)
				}
				if compacted {
					cycles++
				}
				pinned := 0
				for _, i := range res.Pinned {
					pinned += res.Sizes[i]
				}
				if pinned > target/2 {
					continue // a call of thousands of tokens that waits for its result leaves no room
				}
				text := said(res.Prompt)
				for _, f := range planted[:n+1] {
					stands := strings.Contains(text, f)
					switch {
					case crowd:
						crowded.add(stands)
					case !stands:
						rt.Fatalf("cycle %d of %d tokens, %d summaries, %d drops: lost %q", loop.cycles, target, len(res.Plan.Summarizations), len(res.Plan.Drops), f)
					}
				}
			}
		}
	})
	t.Logf("%d compactions; facts that stand in a crowd of other rules: %v", cycles, crowded)
	if cycles < 50 {
		t.Errorf("only %d compactions", cycles)
	}
	if crowded.asked > 50 && crowded.rate() < 0.95 {
		t.Errorf("in a crowd of other rules only %v facts stand", crowded)
	}
}

// TestPlantedFactsInRecordedThreads plants the facts early in recorded sessions
// that go on for five compactions and more. A21
func TestPlantedFactsInRecordedThreads(t *testing.T) {
	counter := o200k(t)
	paths, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), "entire-cli/long-b*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for n, path := range corpus.EveryNth(paths, 3) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			f, err := transcript.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			loop := newLoop(t, counter, apis[n%len(apis)], baseOf(&f.Transcripts[0]), 24_000, 14_000)
			messages := f.Transcripts[0].Thread.Messages()
			var history []thread.Message
			left := planted
			for i, m := range messages {
				// Only where no call waits for its result.
				if len(left) > 0 && i > (len(planted)-len(left)+1)*20 && m.Role == thread.Assistant && messages[i-1].Role != thread.Assistant {
					history = append(history, plain(thread.User, left[0]))
					left = left[1:]
				}
				history = append(history, m)
			}
			loop.replay(history, func(res *palimpsest.Result) {
				text := said(res.Prompt)
				for _, m := range loop.thread.Messages() {
					for _, f := range planted {
						if m.Text() == f && !strings.Contains(text, f) {
							t.Errorf("cycle %d: lost %q", loop.cycles, f)
						}
					}
				}
			})
			if loop.cycles < 5 || len(left) > 0 {
				t.Errorf("%d compactions, %d facts planted", loop.cycles, len(planted)-len(left))
			}
		})
	}
}
