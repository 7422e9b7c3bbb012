package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestTimelinePruning: results older than the TTL are hidden behind replacement
// text once the model's last answer is too; the newest are not. Pruning comes
// before compaction, and the digest says what was hidden. C3, C10, C12
func TestTimelinePruning(t *testing.T) {
	messages := slices.Concat(oneTurn(1), oneTurn(2))
	messages = messages[:len(messages)-1] // the model has not answered to the last result
	for i := range messages {
		messages[i].Time = fixedNow().Add(time.Duration(i-len(messages)) * time.Minute)
	}
	own, _ := messages[2].Result() // what the tool itself gave stays
	own.KeyFields = thread.Fields{"path": "shop/report1.md"}
	messages[2].Parts = []thread.Part{own}
	th := threadOf(t, messages...)
	l := policy.Timeline{MaxTokens: 100_000, TTL: 10 * time.Minute}
	s := stateOf(t, th, nil)
	if due, _ := l.Due(s); due {
		t.Error("due while the cache is warm")
	}
	s.Now = fixedNow().Add(time.Hour)
	if due, _ := l.Due(s); !due {
		t.Error("not due although the cache is cold")
	}
	f, err := l.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Plan.Clearings); n != 5 || len(f.Plan.Summarizations) != 0 || f.Tokens >= s.PromptTokens {
		t.Fatalf("%d results are hidden", n)
	}
	if r, _ := f.Prompt.Messages[2].Result(); r.Text() != "[Read: success]\nKey data: {\"hidden\": \"older than the cache\", \"path\": \"shop/report1.md\"}" {
		t.Errorf("%q", r.Text())
	}
	sendable(t, th, f.Plan)
	after := stateOf(t, th, f.Plan)
	after.Now = s.Now
	if due, _ := l.Due(after); due {
		t.Error("due again")
	}
	after.Forced = true
	l.KeepRecent, l.SummaryTokens, l.PrefixTokens = 100, 240, 60
	f, err = l.Plan(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	d := f.Plan.Summarizations[0].Range.Digest
	if len(d.Hidden) == 0 || !strings.HasPrefix(d.Hidden[0].Replacement, "[Read: success]") || d.Hidden[0].Path != "tc:turn_1.c1_0.result" {
		t.Errorf("%+v", d.Hidden)
	}
	if len(d.Hidden)+len(f.Plan.Clearings) != 5 { // of the two of memsearch a placeholder would be longer
		t.Errorf("%d hidden before, %d now", len(d.Hidden), len(f.Plan.Clearings))
	}
	if !slices.ContainsFunc(d.Artifacts, func(a plan.DigestArtifact) bool {
		return a.Path == "report1.md" && a.MIME == "text/markdown" && a.Visibility == "internal"
	}) {
		t.Errorf("%+v", d.Artifacts)
	}
}

// TestTimelineHidesEveryKind: of what has outlived the cache, results, long arguments
// of calls and what the model said at the end of earlier turns are hidden; the
// user's words, the model's newest ones and the newest call of a tool are not. Without
// a TTL of its own the policy takes the life of the provider's cache. C1, C12
func TestTimelineHidesEveryKind(t *testing.T) {
	long := strings.Repeat("The queue holds orders until somebody takes them out. ", 60)
	write := func(n int) thread.Message {
		return callTool(fmt.Sprint("w", n), "Write", fmt.Sprintf(`{"file_path":"a%d.go","content":%q}`, n, long), "I write it.")
	}
	messages := []thread.Message{
		speak(thread.User, "Task 1. "+long), write(1), answerTool("w1", "Write", long), speak(thread.Assistant, "First, the queue is tidy. "+long),
		speak(thread.User, "Task 2. "+long), write(2), answerTool("w2", "Write", long), speak(thread.Assistant, "Second, the store is tidy. "+long),
	}
	for i := range messages {
		messages[i].Time = fixedNow().Add(-time.Hour)
	}
	messages = append(messages, speak(thread.User, "Go on."))
	th := threadOf(t, messages...)
	for name, c := range map[string]struct {
		ttl, life time.Duration
		hides     bool
	}{
		"its own": {ttl: 5 * time.Minute, hides: true}, "the cache's": {life: 5 * time.Minute, hides: true},
		"longer": {ttl: 2 * time.Hour, life: 5 * time.Minute}, "off": {ttl: -1, life: 5 * time.Minute}, "not known": {},
	} {
		s := stateOf(t, th, nil)
		s.CacheLife = c.life
		l := policy.Timeline{MaxTokens: 1 << 20, TTL: c.ttl}
		if due, _ := l.Due(s); due != c.hides {
			t.Errorf("%s: due is %v", name, due)
		}
		f, err := l.Plan(t.Context(), s)
		if !c.hides {
			if !errors.Is(err, policy.ErrNothing) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var hidden []int
		for _, r := range f.Plan.Clearings {
			i, _ := th.Index(r.Span.First())
			hidden = append(hidden, i)
		}
		if want := []int{1, 2, 3, 6}; !slices.Equal(hidden, want) {
			t.Errorf("%s: hidden are %v, want %v", name, hidden, want)
		}
		shown := promptText(f.Prompt)
		if !strings.Contains(shown, "[assistant.completion: older than the cache]\nFirst, the queue is tidy.") || strings.Contains(shown, "First, the queue is tidy. "+long) {
			t.Errorf("the words of turn 1 are shown as\n%.600s", f.Prompt.Messages[3].Text())
		}
		for _, stays := range []string{"Task 1. " + long, "Task 2. " + long, "Second, the store is tidy. " + long} {
			if !strings.Contains(shown, strings.TrimSpace(stays)) {
				t.Errorf("%.20q is not there", stays)
			}
		}
		sendable(t, th, f.Plan)
	}
}
