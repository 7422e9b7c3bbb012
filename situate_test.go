package palimpsest_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// words is text of about that many tokens, another for each seed.
func words(seed uint64, tokens int) string {
	random := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for n := range tokens / 7 {
		fmt.Fprintf(&b, "queue %d order %d; ", n, random.IntN(900)+100)
	}
	return b.String()
}

// agent is a scripted one behind a system prompt and tools of a given size.
type agent struct {
	session *palimpsest.Session
	step    palimpsest.Step
	fixed   int // of the request, in tokens

	prompts []*palimpsest.Prepared
	plans   []*plan.Plan
}

// newAgent prepares one whose system prompt takes about that many tokens.
func newAgent(t *testing.T, p policy.Policy, step palimpsest.Step, system int) *agent {
	t.Helper()
	kept := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Policy: p, Store: store.Tenant{Log: kept, Plans: kept}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	step.Profile = render.For(wire.Anthropic)
	step.Base = &prompt.Prompt{Model: "claude-sonnet-4-5", System: []prompt.System{{Text: words(1, system)}}}
	return &agent{session: c.Session("t"), step: step, fixed: o200k(t).Prompt(step.Base)}
}

// take sends messages, and then the answer. Each request fits the window.
func (a *agent) take(t *testing.T, answer thread.Message, messages ...thread.Message) {
	t.Helper()
	a.step.Messages = messages
	p, err := a.session.PrepareStep(t.Context(), a.step)
	if err != nil {
		t.Fatal(err)
	}
	if limit := a.step.Window - a.step.Output; p.Tokens > limit {
		t.Errorf("request %d takes %d tokens, %d fit", len(a.prompts)+1, p.Tokens, limit)
	}
	if p.Compacted != nil {
		a.plans = append(a.plans, p.Compacted)
	}
	a.prompts = append(a.prompts, p)
	if err := a.session.FinishStep(t.Context(), p, wire.Usage{}, answer); err != nil {
		t.Fatal(err)
	}
}

// read takes a step of the agent that reads a text, which is sent with the next one.
func (a *agent) read(t *testing.T, n int, before []thread.Message, text string) []thread.Message {
	t.Helper()
	id := fmt.Sprintf("call_%d", n)
	a.take(t, thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.Text{Text: fmt.Sprintf("Step %d: I look at part %d of the queue next.", n, n)},
		thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"queue/part%d.go"}`, n)},
	}}, before...)
	return []thread.Message{toolMessage(id, text)}
}

// rewrites counts the plans that do not take over all summaries of the plan before.
func (a *agent) rewrites() int {
	count := 0
	for i := 1; i < len(a.plans); i++ {
		for _, before := range a.plans[i-1].Summarizations {
			same := func(s plan.Summarization) bool {
				return s.Summary.Render() == before.Summary.Render() && slices.Equal(s.Span.MessageIDs, before.Span.MessageIDs)
			}
			if !slices.ContainsFunc(a.plans[i].Summarizations, same) {
				count++
				break
			}
		}
	}
	return count
}

// TestLargeToolsKeepTheConversation: system and tools of 21,000 tokens in a window of 60,000
// are not taken out of what is kept, and what was said early is still known. G10
func TestLargeToolsKeepTheConversation(t *testing.T) {
	a := newAgent(t, policy.Auto{}, palimpsest.Step{Window: 60_000, Output: 8_000}, 21_000)
	messages := []thread.Message{plain(thread.User, "Read the ledger of the queue, part by part.")}
	var facts [][2]string
	for n := range 90 {
		text := words(uint64(n), 1_200)
		if n < 12 {
			for k := range 5 {
				account, balance := fmt.Sprintf("account-%c%02d", 'k'+rune(k), n), fmt.Sprint(71_003+n*977+k*131)
				facts = append(facts, [2]string{account, balance})
				text += fmt.Sprintf("\nthe balance of %s is %s\n%s", account, balance, words(uint64(n*10+k), 60))
			}
		}
		messages = a.read(t, n, messages, text)
	}
	known := 0
	shown := said(a.prompts[len(a.prompts)-1].Prompt)
	for _, fact := range facts {
		found := strings.Contains(shown, fact[1])
		if !found {
			hits, err := a.session.Recall(t.Context(), "balance of "+fact[0], nil)
			if err != nil {
				t.Fatal(err)
			}
			found = len(hits) > 0 && strings.Contains(hits[0].Excerpt, fact[1])
		}
		if found {
			known++
		}
	}
	t.Logf("%d compactions, %d of %d facts, %d rewrites", len(a.plans), known, len(facts), a.rewrites())
	if known*100 < len(facts)*95 {
		t.Errorf("%d of %d facts are known", known, len(facts))
	}
	room := 52_000 - a.fixed
	for n, p := range a.plans {
		if kept := p.CompactedTokens - a.fixed; kept < room*2/5 || kept > room*3/4 {
			t.Errorf("compaction %d keeps %d tokens of messages, the room is %d", n+1, kept, room)
		}
	}
	if len(a.plans) < 3 {
		t.Errorf("%d compactions", len(a.plans))
	}
}

// TestCompactionsAreApart: where much must stay, what a compaction could reach moves the
// mark, and no request is larger than the window. G10, F8
func TestCompactionsAreApart(t *testing.T) {
	for _, stays := range []int{8_000, 14_000, 20_000} {
		t.Run(fmt.Sprint(stays), func(t *testing.T) {
			a := newAgent(t, policy.Auto{}, palimpsest.Step{Window: 64_000, Output: 8_000}, 15_000)
			messages := []thread.Message{plain(thread.User, "Go through the queue. "+words(5, 3_000))}
			requests := 0
			for n := range 100 {
				messages = a.read(t, n, messages, words(uint64(n), 1_000))
				if n == 2 { // what the user has pinned stays as it was said
					orders := plain(thread.User, "These are the orders: "+words(9, stays))
					orders.ID = "orders"
					messages = append(messages, orders)
				}
				if n == 3 {
					if err := a.session.Pin(t.Context(), "orders", true); err != nil {
						t.Fatal(err)
					}
				}
				requests++
			}
			t.Logf("%d compactions in %d requests, %d rewrites", len(a.plans), requests, a.rewrites())
			if len(a.plans)*6 > requests || len(a.plans) == 0 {
				t.Errorf("%d compactions in %d requests", len(a.plans), requests)
			}
		})
	}
}

// TestSummariesStay: in a window of 200,000 tokens a compaction mostly adds a summary, and
// the earlier ones stay byte for byte. F7
func TestSummariesStay(t *testing.T) {
	a := newAgent(t, policy.Auto{}, palimpsest.Step{Window: 200_000, Output: 16_000}, 12_000)
	messages := []thread.Message{plain(thread.User, "Go through the queue.")}
	for n := 0; len(a.plans) < 9; n++ {
		if n == 400 {
			t.Fatalf("%d compactions", len(a.plans))
		}
		messages = a.read(t, n, messages, words(uint64(n), 2_000))
	}
	t.Logf("%d requests, %d rewrites of %d compactions", len(a.prompts), a.rewrites(), len(a.plans))
	if a.rewrites() > 2 {
		t.Errorf("the summaries are rewritten %d times", a.rewrites())
	}
}

// digestsWanted makes a run of this test binary print so many digests and nothing
// else.
const digestsWanted = "PALIMPSEST_TEST_DIGESTS"

// TestSameBytesEverywhere: runs under each policy, in a long run 48, in processes with one to four
// processors, each with its own order of maps, give the same plans and the same
// request bodies.
func TestSameBytesEverywhere(t *testing.T) {
	processes, each := 2, len(digestPolicies)/2 // each policy in one other process
	if corpus.Long() {
		processes, each = 4, 2*len(digestPolicies)
	}
	counter := o200k(t)
	if n, err := strconv.Atoi(os.Getenv(digestsWanted)); err == nil {
		for run := range each {
			fmt.Printf("digest %d %s\n", n+run, digest(t, counter, n+run))
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for run := range digestPolicies {
		want = append(want, digest(t, counter, run))
	}
	seen := 0
	for n := range processes {
		c := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.count=1")
		c.Env = append(os.Environ(), digestsWanted+"="+strconv.Itoa(n*each), "GOMAXPROCS="+strconv.Itoa(1+n%4))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			var run int
			var got string
			if k, err := fmt.Sscanf(line, "digest %d %s", &run, &got); err != nil || k != 2 {
				continue
			}
			seen++
			if got != want[run%len(want)] {
				t.Errorf("run %d in process %d gave %s, want %s", run, n, got, want[run%len(want)])
			}
		}
	}
	if seen != processes*each {
		t.Errorf("%d digests, want %d", seen, processes*each)
	}
}

// digestPolicies are compacted with in turn, each for one API.
var digestPolicies = []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Session{}, policy.Timeline{}, policy.Workstream{}, policy.Loop{}}

// digest compacts a session step by step under the policy of a run, and takes the
// hash of all plans and request bodies.
func digest(t *testing.T, counter *token.Counter, run int) string {
	t.Helper()
	f, err := transcript.Open(filepath.Join("testdata", "sessions", "import-csv.openai-chat.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := f.Transcripts[0]
	codecs := []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}
	p, codec := digestPolicies[run%len(digestPolicies)], codecs[run%len(digestPolicies)%len(codecs)]
	sum := sha256.New()
	var plans store.Memory
	c, err := palimpsest.New(palimpsest.Config{
		Policy: p, Counter: counter, Store: store.Tenant{Log: &plans, Plans: &plans}, Recall: &palimpsest.Recall{},
		Now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session(tr.Thread.ID())
	base := prompt.Prompt{Model: "a-model", System: tr.System, Tools: tr.Tools}
	messages := tr.Thread.Messages()
	for part := range 3 {
		from, to := part*len(messages)/3, (part+1)*len(messages)/3
		sent, err := th.PrepareStep(t.Context(), palimpsest.Step{Base: &base, Messages: messages[from:to], Profile: render.For(codec.API()), Budget: 6_000})
		if err != nil {
			t.Fatal(err)
		}
		body, err := codec.Encode(sent.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(body)
	}
	made, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(made) == 0 {
		t.Errorf("%s made no plan", p.Name())
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	sum.Write(text)
	return fmt.Sprintf("%x", sum.Sum(nil))
}
