package palimpsest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func TestMain(m *testing.M) {
	corpus.CollectLessOften()
	m.Run()
}

// large is the size in tokens from which a transcript has to be compacted well.
const large = 10_000

// conversations reads transcripts of the corpus, in a long run all.
func conversations(t *testing.T) []transcript.Transcript {
	t.Helper()
	all, err := readConversations(corpus.Dir(t, "transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	least := 30
	if corpus.Long() {
		least = 100
	}
	if len(all) < least {
		t.Fatalf("only %d transcripts were read", len(all))
	}
	return all
}

var readConversations = func() func(dir string) ([]transcript.Transcript, error) {
	var once sync.Once
	var all []transcript.Transcript
	var err error
	read := func(dir string) error {
		var paths []string
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if name := d.Name(); err == nil && !d.IsDir() && name != "README.md" && name != "LICENSE" && name != "index.json" {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, path := range corpus.EveryNth(paths, 6) {
			f, err := transcript.Open(path, nil)
			if errors.Is(err, transcript.ErrEmpty) {
				continue
			}
			if err != nil {
				return err
			}
			for _, tr := range f.Transcripts {
				tr.Title = strings.TrimPrefix(path, filepath.Dir(filepath.Dir(path))+string(filepath.Separator))
				all = append(all, tr)
			}
		}
		return nil
	}
	return func(dir string) ([]transcript.Transcript, error) {
		once.Do(func() { err = read(dir) })
		return all, err
	}
}()

// TestCorpus compacts large transcripts at four budgets and to four APIs, each budget to another
// one: between transcripts every pair of them comes up. It holds the result to what a user may
// expect of it. A12, A16, A21
func TestCorpus(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	codecs := []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}
	type sized struct {
		transcript.Transcript
		size int
	}
	var found []sized
	for _, tr := range conversations(t) {
		whole := prompt.Prompt{Model: "any-model", System: tr.System, Tools: tr.Tools, Messages: tr.Thread.Messages()}
		if size := counter.Prompt(&whole); size > large {
			found = append(found, sized{tr, size})
		}
	}
	t.Logf("%d transcripts are large enough", len(found))
	least := 10
	if corpus.Long() {
		least = 50
	}
	if len(found) < least {
		t.Errorf("only %d transcripts were large enough", len(found))
	}
	for n, tr := range corpus.EveryNth(found, 7) {
		base := &prompt.Prompt{Model: "any-model", System: tr.System, Tools: tr.Tools}
		t.Run(fmt.Sprintf("%s/%s", tr.Title, tr.Name), func(t *testing.T) {
			t.Parallel()
			for k, budget := range []int{8_000, 16_000, 32_000, tr.size / 2} {
				check(t, tr.Transcript, base, codecs[(n+k)%len(codecs)], counter, budget)
			}
		})
	}
}

func check(t *testing.T, tr transcript.Transcript, base *prompt.Prompt, codec wire.Codec, counter *token.Counter, budget int) {
	t.Helper()
	at := fmt.Sprintf("%s at %d", codec.API(), budget)
	if tr.Prompt != nil && tr.Prompt.Source.API == codec.API() {
		own := *tr.Prompt
		base = &own
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	q := palimpsest.Request{Thread: tr.Thread, Base: base, Budget: budget, Profile: render.For(codec.API())}
	res, err := c.Compact(t.Context(), q)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	if res.After > budget || counter.Prompt(res.Prompt) != res.After {
		t.Errorf("%s: takes %d tokens, reported as %d", at, counter.Prompt(res.Prompt), res.After)
	}
	// A summary tells all that it has of a short session in less than its room.
	if !res.Plan.Empty() && res.After < budget*85/100 && (res.Before > 2*budget || res.After < budget*55/100) {
		t.Errorf("%s: only %d tokens are used, of %d before", at, res.After, res.Before)
	}
	body, err := codec.Encode(res.Prompt)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	for _, p := range codec.Validate(body) {
		if !p.Advice {
			t.Errorf("%s: %v", at, p)
		}
	}
	fresh, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	again, err := fresh.Compact(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := codec.Encode(again.Prompt); !bytes.Equal(body, second) {
		t.Errorf("%s: a second run gave other bytes", at)
	}
	verbatim(t, at, tr.Thread, res, budget, counter.Prompt(base))
}

// verbatim checks that the task and the last exchange stand as they were said.
// Words that alone would fill a third of the budget may be cut in the middle, and the model's
// are old where what came after them would fill two fifths.
func verbatim(t *testing.T, at string, th *thread.Thread, res *palimpsest.Result, budget, fixed int) {
	t.Helper()
	var all strings.Builder
	for _, m := range res.Prompt.Messages {
		all.WriteString(m.Text())
		all.WriteByte('\n')
	}
	first, last, answer := -1, -1, -1
	for i, m := range th.All() {
		switch {
		case m.StartsTurn() && strings.TrimSpace(m.Text()) != "":
			if first < 0 {
				first = i
			}
			last = i
		case m.Role == thread.Assistant && strings.TrimSpace(m.Text()) != "":
			answer = i
		}
	}
	actions := res.Plan.Actions()
	for what, i := range map[string]int{"the task": first, "the last user message": last, "the model's last words": answer} {
		if i < 0 || res.Sizes[i] > budget/3 || i == answer && total(res.Sizes[i:]) > (budget-fixed)*2/5 {
			continue
		}
		m := th.At(i)
		stands := true
		for _, part := range m.Parts {
			if said, ok := part.(thread.Text); ok {
				stands = stands && strings.Contains(all.String(), strings.TrimSpace(said.Text))
			}
		}
		if !stands {
			t.Errorf("%s: %s (message %d, turn %d, %d tokens, %s) does not stand verbatim", at, what, i, m.Turn, res.Sizes[i], actions[m.ID].Action)
		}
	}
	if hidden := len(res.Manifest.Hidden); hidden == 0 && !res.Plan.Empty() {
		t.Errorf("%s: a plan that hides nothing: %v", at, plan.Diff(res.Plan, &plan.Plan{}))
	}
}

func total(sizes []int) (all int) {
	for _, size := range sizes {
		all += size
	}
	return all
}

// agentLoop is what an agent does around its model calls: it appends, sends the
// prompt of its current plan, and compacts when that no longer fits.
type agentLoop struct {
	t       testing.TB
	c       *palimpsest.Compactor
	base    *prompt.Prompt
	profile render.Profile
	// hard is what a request may take; a compaction goes down to target, so
	// that the next one is not due at once.
	hard, target int

	thread *thread.Thread
	plan   *plan.Plan
	cycles int
}

func newLoop(t testing.TB, counter *token.Counter, api string, base *prompt.Prompt, hard, target int) *agentLoop {
	t.Helper()
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	return &agentLoop{t: t, c: c, base: base, profile: render.For(api), hard: hard, target: target, thread: thread.New("loop")}
}

func (l *agentLoop) append(messages ...thread.Message) {
	l.t.Helper()
	next, err := l.thread.Append(messages...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.thread = next
}

// request makes the next request and tells whether it had to compact.
func (l *agentLoop) request() (res *palimpsest.Result, compacted bool) {
	l.t.Helper()
	res, compacted, err := l.try()
	if err != nil {
		l.t.Fatalf("cycle %d, %d messages: %v", l.cycles, l.thread.Len(), err)
	}
	return res, compacted
}

// try is request for threads that may be impossible to compact.
func (l *agentLoop) try() (res *palimpsest.Result, compacted bool, err error) {
	l.t.Helper()
	q := palimpsest.Request{Thread: l.thread, Base: l.base, Budget: l.hard, Profile: l.profile}
	res, err = l.c.Render(l.plan, q)
	if err != nil || res.After <= l.hard {
		return res, false, err
	}
	q.Budget = l.target
	res, err = l.c.Compact(l.t.Context(), q)
	if errors.Is(err, policy.ErrOverBudget) {
		q.Budget = l.hard
		res, err = l.c.Compact(l.t.Context(), q)
	}
	if err != nil {
		return nil, false, err
	}
	if res.After > l.hard {
		l.t.Fatalf("cycle %d: %d tokens, the limit is %d", l.cycles+1, res.After, l.hard)
	}
	l.plan = res.Plan
	l.cycles++
	return res, true, nil
}

// replay runs a recorded conversation through the loop, with a request wherever
// the model was asked, and calls check after each compaction.
func (l *agentLoop) replay(messages []thread.Message, check func(*palimpsest.Result)) {
	l.t.Helper()
	for i, m := range messages {
		if m.Role == thread.Assistant && l.thread.Len() > 0 && (i == 0 || messages[i-1].Role != thread.Assistant) {
			if res, compacted := l.request(); compacted {
				check(res)
			}
		}
		m.ID = ""
		l.append(m)
	}
}

// said is what the prompt shows as words of a person, a model or a summary: not
// what tools gave back, where anything may stand by chance.
func said(p *prompt.Prompt) string {
	var b strings.Builder
	for i := range p.Messages {
		if p.Messages[i].Role != thread.Tool {
			b.WriteString(p.Messages[i].Text())
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// shown is everything that the prompt shows, results and arguments included.
func shown(p *prompt.Prompt) string {
	var b strings.Builder
	b.WriteString(said(p))
	for i := range p.Messages {
		m := &p.Messages[i]
		if r, ok := m.Result(); ok {
			b.WriteString(r.Text())
			b.WriteByte('\n')
		}
		for _, c := range m.Calls() {
			b.WriteString(c.Arguments)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestRequestKeepsBudget: what a provider reads from the body, system and tools
// included, is no larger than the budget, but for what a codec adds to a conversation
// of another API, and what does not fit is refused with
// the parts named. With what a refusal says is needed, the request fits. A12, A13, A21
func TestRequestKeepsBudget(t *testing.T) {
	counter := o200k(t)
	fitted, refused := 0, 0
	defer func() {
		if t.Logf("%d requests fitted, %d did with what a refusal said was needed", fitted, refused); fitted == 0 || refused == 0 {
			t.Error("one of the two ways was not taken")
		}
	}()
	property.Check(t, func(rt *rapid.T) {
		codec := rapid.SampledFrom(codecs).Draw(rt, "codec")
		base := &prompt.Prompt{Model: "any-model"}
		for n := range rapid.IntRange(0, 3).Draw(rt, "system blocks") {
			base.System = append(base.System, prompt.System{Role: "system", Text: fmt.Sprintf("Rule %d. ", n) + strings.Repeat("Answer in short sentences, and say what you did. ", rapid.IntRange(0, 60).Draw(rt, "sentences"))})
		}
		for n := range rapid.IntRange(0, 12).Draw(rt, "tools") {
			base.Tools = append(base.Tools, prompt.Tool{
				Name: fmt.Sprintf("tool_%d", n), Description: strings.Repeat("Reads a file and gives its lines. ", rapid.IntRange(0, 20).Draw(rt, "description")),
				Schema: fmt.Sprintf(`{"type":"object","properties":{%s},"required":[]}`, strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`"field_%d":{"type":"string","description":"what to read"},`, n), 1), ",")),
			})
		}
		c, err := palimpsest.New(palimpsest.Config{Counter: counter})
		if err != nil {
			rt.Fatal(err)
		}
		q := palimpsest.Request{
			Thread: threadgen.Thread().Draw(rt, "thread"), Base: base,
			Budget: rapid.IntRange(200, 9_000).Draw(rt, "budget"), Profile: render.For(codec.API()),
		}
		res, err := c.Compact(t.Context(), q)
		var over *policy.BudgetError
		if errors.As(err, &over) {
			if over.Need <= q.Budget || len(over.Parts) == 0 {
				rt.Fatalf("a refusal names nothing that is too large: %v", over)
			}
			q.Budget = over.Need
			if _, err = c.Compact(t.Context(), q); err != nil {
				rt.Fatalf("what a refusal said was needed does not do: %v, then %v", over, err)
			}
			refused++
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		body, err := codec.Encode(res.Prompt)
		if err != nil {
			rt.Fatal(err)
		}
		read, err := codec.Decode(string(body))
		if err != nil {
			rt.Fatal(err)
		}
		fitted++
		if n := counter.Prompt(read); n > q.Budget+translated(read) {
			rt.Fatalf("%s: the body takes %d tokens, counted as %d before it was written, the budget is %d", codec.API(), n, res.After, q.Budget)
		}
	})
}

// translated is what a codec may add to a conversation of another API, in
// tokens: a seal or a separator, one for each call and each result.
func translated(p *prompt.Prompt) int {
	n := 0
	for _, m := range p.Messages {
		n += len(m.Calls())
		if m.Role == thread.Tool {
			n++
		}
	}
	return n
}

// TestRecordedRequestsKeepBudget is the same over recorded conversations with
// their own system prompts and tools, written for every API. A12, A21
func TestRecordedRequestsKeepBudget(t *testing.T) {
	counter := o200k(t)
	tried := 0
	for n, tr := range corpus.EveryNth(conversations(t), 2) {
		base := baseOf(&tr)
		whole := *base
		whole.Messages = tr.Thread.Messages()
		size := counter.Prompt(&whole)
		if size < 2_000 {
			continue
		}
		codec := codecs[n%len(codecs)]
		c, err := palimpsest.New(palimpsest.Config{Counter: counter})
		if err != nil {
			t.Fatal(err)
		}
		for _, budget := range []int{size / 3, size * 3 / 4, min(size/2, 24_000)} {
			res, err := c.Compact(t.Context(), palimpsest.Request{Thread: tr.Thread, Base: base, Budget: budget, Profile: render.For(codec.API())})
			var over *policy.BudgetError
			if errors.As(err, &over) && over.Need > budget*9/10 {
				continue // system, tools and what must stay are too large
			}
			if err != nil {
				t.Errorf("%s %s: %v", tr.Title, tr.Name, err)
				continue
			}
			body, err := codec.Encode(res.Prompt)
			if err != nil {
				t.Errorf("%s %s: %v", tr.Title, tr.Name, err)
				continue
			}
			read, err := codec.Decode(string(body))
			if err != nil {
				t.Errorf("%s %s: %v", tr.Title, tr.Name, err)
				continue
			}
			tried++
			if got := counter.Prompt(read); got > budget+translated(res.Prompt) {
				t.Errorf("%s %s, %s: the body takes %d tokens, counted as %d before it was written, the budget is %d", tr.Title, tr.Name, codec.API(), got, res.After, budget)
			}
		}
	}
	least := 20
	if corpus.Long() {
		least = 40
	}
	if t.Logf("%d requests", tried); tried < least {
		t.Errorf("only %d requests were tried", tried)
	}
}

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
				if errors.Is(err, policy.ErrOverBudget) {
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
