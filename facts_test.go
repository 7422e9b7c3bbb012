package palimpsest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// fact is something that a user said and that must not get lost.
type fact struct {
	Session, Fact, Kind string
	// Turn is when it was said; from turn Until on it may be dropped, 0 is never.
	Turn, Until int
}

// holds reports whether the fact binds in a turn.
func (f fact) holds(turn int) bool { return f.Turn <= turn && (f.Until == 0 || turn < f.Until) }

// tally counts what survived, over all compactions.
type tally struct{ kept, asked int }

func (n *tally) add(kept bool) {
	n.asked++
	if kept {
		n.kept++
	}
}

func (n tally) rate() float64 { return float64(n.kept) / float64(max(n.asked, 1)) }

func (n tally) String() string {
	return fmt.Sprintf("%d of %d (%.1f %%)", n.kept, n.asked, 100*n.rate())
}

func o200k(t testing.TB) *token.Counter {
	t.Helper()
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// TestFactsOfSampleSessions: through at least five compactions of the sample
// sessions every fact stands in the prompt as the user said it, at budgets down
// to a twelfth of the session. A21
func TestFactsOfSampleSessions(t *testing.T) {
	counter := o200k(t)
	data, err := os.ReadFile("testdata/sessions/facts.json")
	if err != nil {
		t.Fatal(err)
	}
	var facts []fact
	if err := json.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	for n, c := range []struct {
		file, session string
		hard, target  int
		// must are the kinds of which every one has to survive, least is the
		// share of all facts that has to.
		must  string
		least float64
	}{
		{"fix-retry.claude-code.jsonl", "fix-retry", 24_000, 14_000, "constraint preference task identifier", 1},
		{"fix-retry.claude-code.jsonl", "fix-retry", 12_000, 8_000, "constraint preference task", 0.95},
		{"fix-retry.claude-code.jsonl", "fix-retry", 6_000, 4_000, "", 0.9},
		{"import-csv.openai-chat.json", "import-csv", 16_000, 10_000, "constraint preference task identifier", 1},
		{"import-csv.openai-chat.json", "import-csv", 8_000, 6_000, "constraint preference task", 0.95},
		{"import-csv.openai-chat.json", "import-csv", 5_000, 4_000, "", 0.9},
		{"small.openai-chat.json", "small", 2_400, 2_100, "constraint preference task identifier", 1},
	} {
		t.Run(fmt.Sprintf("%s at %d", c.session, c.hard), func(t *testing.T) {
			tr := open(t, filepath.Join("testdata/sessions", c.file))
			for _, api := range apis {
				if !corpus.Long() && api != apis[n%len(apis)] {
					continue // each budget for one API
				}
				loop := newLoop(t, counter, api, baseOf(tr), c.hard, c.target)
				var all tally
				loop.replay(tr.Thread.Messages(), func(res *palimpsest.Result) {
					text, turn := said(res.Prompt), loop.thread.Turns()
					for _, f := range facts {
						if f.Session != c.session || !f.holds(turn) {
							continue
						}
						stands := strings.Contains(text, f.Fact)
						all.add(stands)
						if !stands && strings.Contains(c.must, f.Kind) {
							t.Errorf("%s, cycle %d, turn %d: lost the %s %q of turn %d", api, loop.cycles, turn, f.Kind, f.Fact, f.Turn)
						}
					}
					lastExchange(t, fmt.Sprintf("%s, cycle %d", api, loop.cycles), loop.thread, res, c.target)
				})
				t.Logf("%s: %d compactions, facts that stand: %v", api, loop.cycles, all)
				if c.session != "small" && loop.cycles < 5 {
					t.Errorf("%s: only %d compactions", api, loop.cycles)
				}
				if all.rate() < c.least {
					t.Errorf("%s: only %v facts stand", api, all)
				}
			}
		})
	}
}

// lastExchange checks that the task, the user's last message and what the model
// has just done and got stand as they were. Of the room for messages, one of
// them alone must not take more than a fifth, nor all of the last step more than
// a third: such a step is cut, or there would be room for nothing else.
func lastExchange(t *testing.T, at string, th *thread.Thread, res *palimpsest.Result, budget int) {
	t.Helper()
	first, last, step := -1, -1, -1
	for i, m := range th.All() {
		switch {
		case m.StartsTurn():
			if first < 0 {
				first = i
			}
			last = i
		case m.Role == thread.Assistant:
			step = i
		}
	}
	all := shown(res.Prompt)
	must := map[string]int{"the task": first, "the user's last message": last}
	room, size := budget-res.Fixed, 0
	for i := max(step, 0); i < th.Len(); i++ {
		size += res.Sizes[i]
	}
	if step > last && size <= room/3 {
		must["the model's last step"] = step
		for i := step + 1; i < th.Len(); i++ {
			must[fmt.Sprintf("its result at %d", i)] = i
		}
	}
	for what, i := range must {
		if i < 0 || res.Sizes[i] > room/5 {
			continue
		}
		for _, text := range textsOf(th.At(i)) {
			if !strings.Contains(all, strings.TrimSpace(text)) {
				t.Errorf("%s: %s (message %d, %d tokens, %s) does not stand as it was", at, what, i, res.Sizes[i], res.Plan.Actions()[th.At(i).ID].Action)
			}
		}
	}
}

// textsOf are the pieces of a message that a prompt has to show.
func textsOf(m *thread.Message) []string {
	var texts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Text:
			texts = append(texts, p.Text)
		case thread.ToolCall:
			texts = append(texts, p.Arguments)
		case thread.ToolResult:
			texts = append(texts, p.Text())
		}
	}
	return texts
}

var apis = []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini}

func open(t testing.TB, path string) *transcript.Transcript {
	t.Helper()
	f, err := transcript.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &f.Transcripts[0]
}

func baseOf(tr *transcript.Transcript) *prompt.Prompt {
	return &prompt.Prompt{Model: "any-model", System: tr.System, Tools: tr.Tools}
}

// rules finds what a user asks for in short sentences of his own, at most a few
// of each message and longest words first found: independent of what the
// summarizer takes for a rule.
func rules(m *thread.Message) []string {
	var found []string
	for line := range strings.Lines(m.Text()) {
		line = strings.TrimSpace(line)
		if strings.ContainsAny(line, "`{}<>|") { // code and logs
			continue
		}
		for _, sentence := range sentenceEnd.Split(line, -1) {
			if n := utf8.RuneCountInString(sentence); n >= 15 && n <= 200 && len(found) < 3 && ruleWord.MatchString(sentence) {
				found = append(found, sentence)
			}
		}
	}
	return found
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]+\s+`)
	ruleWord    = regexp.MustCompile(`(?i)\b(must|never|don't|dont|do not|always|only|instead|make sure)\b`)
)

// mostRules bounds the rules that one session is asked for.
const mostRules = 25

// smallWords: where all that the user has said takes at most this share of the
// room, all of it fits beside everything else, and no rule may be lost.
const smallWords = 0.1

// TestFactsOfRecordedSessions continues recorded sessions step by step, within
// budgets that make five and more compactions necessary. After each of them the
// task and the last exchange stand, and every rule that the user has set as
// long as the user's words are few; of the others the rate is reported. A21
func TestFactsOfRecordedSessions(t *testing.T) {
	counter := o200k(t)
	var paths []string
	for _, pattern := range []string{"entire-cli/long-*.jsonl.gz", "pi-mono/*.jsonl.gz", "vscode-copilot-chat/*.jsonl*", "agentcmd-claude/*.jsonl*"} {
		found, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	var mu sync.Mutex
	var few, many tally
	sessions := 0
	t.Run("all", func(t *testing.T) {
		for n, path := range corpus.EveryNth(paths, 24) {
			limits := []struct{ hard, target int }{{24_000, 14_000}}
			if n%3 == 0 {
				limits = append(limits, struct{ hard, target int }{12_000, 8_000})
			}
			for _, limit := range limits {
				t.Run(fmt.Sprintf("%s at %d", filepath.Base(path), limit.hard), func(t *testing.T) {
					t.Parallel()
					f, err := transcript.Open(path, nil)
					if err != nil {
						t.Fatal(err)
					}
					tr := &f.Transcripts[0]
					loop := newLoop(t, counter, apis[n%len(apis)], baseOf(tr), limit.hard, limit.target)
					var here [2]tally
					loop.replay(tr.Thread.Messages(), func(res *palimpsest.Result) {
						text := said(res.Prompt)
						words, asked := 0, 0
						for i, m := range loop.thread.All() {
							if m.StartsTurn() {
								words += res.Sizes[i]
							}
						}
						class := 1
						if float64(words) <= smallWords*float64(limit.target-res.Fixed) {
							class = 0
						}
						for i, m := range loop.thread.All() {
							if !m.StartsTurn() {
								continue
							}
							for _, rule := range rules(m) {
								if asked++; asked > mostRules {
									break
								}
								stands := strings.Contains(text, rule)
								here[class].add(stands)
								if !stands && class == 0 {
									t.Errorf("cycle %d: of %d tokens of the user's, lost %q (message %d, turn %d)", loop.cycles, words, rule, i, m.Turn)
								}
							}
						}
						lastExchange(t, fmt.Sprintf("cycle %d", loop.cycles), loop.thread, res, limit.target)
					})
					mu.Lock()
					defer mu.Unlock()
					few.kept, few.asked = few.kept+here[0].kept, few.asked+here[0].asked
					many.kept, many.asked = many.kept+here[1].kept, many.asked+here[1].asked
					if loop.cycles >= 5 {
						sessions++
					}
					if here[1].asked > 0 && here[1].rate() < 0.8 {
						t.Logf("%d compactions; rules that stand while the user has said little: %v, much: %v", loop.cycles, here[0], here[1])
					}
				})
			}
		}
	})
	t.Logf("%d sessions with at least 5 compactions; rules that stand where the user has said little: %v, much: %v", sessions, few, many)
	least := 2
	if corpus.Long() {
		least = 20
	}
	if sessions < least || few.asked < 5*least {
		t.Errorf("only %d sessions and %d rules were tried", sessions, few.asked)
	}
	if many.asked > 0 && many.rate() < 0.8 {
		t.Errorf("where the user has said much, only %v rules stand", many)
	}
}

// rounds is how often a summary is summarized again.
const rounds = 10

// TestSummariesDoNotDrift: ten summarizations, each of which sees only the
// summary before it and what is new. A pinned constraint stands in the last as
// it was said, no value has changed on the way, nothing is there twice, and
// the summary stays within its budget. A21
func TestSummariesDoNotDrift(t *testing.T) {
	counter := o200k(t)
	for _, budget := range []int{600, 1_500, 4_000} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			e := &summarize.Extractive{Counter: counter.Text}
			log := thread.New("drift")
			values := map[string]string{} // what the log says, by key
			var previous *summary.Summary
			for round := 1; round <= rounds; round++ {
				before := log.Len()
				next, err := log.Append(driftRound(round, values)...)
				if err != nil {
					t.Fatal(err)
				}
				log = next
				sum, err := e.Summarize(t.Context(), summarize.Input{Messages: log.Messages()[before:], Previous: previous, Budget: budget})
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				text := sum.Render()
				if n := counter.Text(text); n > budget {
					t.Errorf("round %d: %d tokens, the budget is %d", round, n, budget)
				}
				for _, rule := range driftRules {
					if !strings.Contains(text, rule) {
						t.Errorf("round %d: lost the rule %q", round, rule)
					}
				}
				unchanged(t, round, text, values)
				once(t, round, sum.Summary)
				previous = &sum.Summary
			}
			found := canary.FindAllString(previous.Render(), -1)
			t.Logf("%d of %d values stand after %d rounds", len(found), len(values), rounds)
			if len(found) == 0 {
				t.Error("no value is left")
			}
		})
	}
}

var driftRules = []string{"Never delete production data.", "The budget is $1000 at most", "I prefer Python over Go for scripts."}

// canary is a value under a key that is used once, so that any change shows.
var canary = regexp.MustCompile(`\bcanary_(\d+)=([A-Za-z0-9_.-]+)`)

// driftRound is what happens between two summarizations. The rules are said in
// the first round only.
func driftRound(round int, values map[string]string) []thread.Message {
	value := func(n int) string {
		key := fmt.Sprintf("%d", round*100+n)
		values[key] = fmt.Sprintf("v%d.%d-%x", round, n, (round*7919+n*104729)%65521)
		return "canary_" + key + "=" + values[key]
	}
	var out []thread.Message
	ask := fmt.Sprintf("Go on with part %d of the migration, %s is its ticket.", round, value(0))
	if round == 1 {
		ask = "Please migrate the queue in parts. " + strings.Join(driftRules[:2], " ") + ". " + driftRules[2] + " " + ask
	}
	out = append(out, plain(thread.User, ask))
	for n := 1; n <= 6; n++ {
		id := fmt.Sprintf("call_%d_%d", round, n)
		path := fmt.Sprintf("queue/part%d/file%d.py", round, n)
		call := thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":%q}`, path)}
		result := thread.ToolResult{CallID: id, Tool: "Read", Outcome: thread.Success, Content: []thread.Part{thread.Text{
			Text: fmt.Sprintf("# %s\nlimit = %d\n%s\ndef drain(queue_%d):\n    return queue_%d.pop()\n", path, round*n, value(n), n, n),
		}}}
		if n%3 == 0 {
			call.Name, call.Arguments, result.Tool = "Bash", fmt.Sprintf(`{"command":"pytest queue/part%d -k case%d"}`, round, n), "Bash"
			result.Outcome = thread.Failure
			result.Content = []thread.Part{thread.Text{Text: fmt.Sprintf("FAILED queue/part%d/test.py::case%d - AssertionError: %s\n1 failed, %d passed", round, n, value(n+50), round*n)}}
		}
		out = append(out,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("Looking at file %d of part %d.", n, round)}, call}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{result}})
	}
	return append(out, plain(thread.Assistant, fmt.Sprintf("Part %d is migrated. I decided to keep drain because callers use it; %s.", round, value(90))))
}

// unchanged checks that every value that the text shows is the one of the log.
func unchanged(t *testing.T, round int, text string, values map[string]string) {
	t.Helper()
	for _, m := range canary.FindAllStringSubmatch(text, -1) {
		key, got := m[1], strings.TrimRight(m[2], ".")
		if want, known := values[key]; !known || got != want {
			t.Errorf("round %d: canary_%s is %q, it was said to be %q", round, key, got, want)
		}
	}
}

// once checks that no entry of a section stands there twice.
func once(t *testing.T, round int, s summary.Summary) {
	t.Helper()
	for _, section := range s.Sections() {
		seen := map[string]bool{}
		for _, entry := range section.Entries {
			if seen[entry] {
				t.Errorf("round %d: %s twice: %q", round, section.Heading, entry)
			}
			seen[entry] = true
		}
	}
}

// TestFailedRepetition: what a call has given is not out of date because the same call
// failed later, or has not been answered yet, nor because an edit of the file failed. A
// failure is out of date when the call is made again, with whatever end.
func TestFailedRepetition(t *testing.T) {
	text := strings.Repeat("func price(o Order) int { return o.Cents } // the price of an order\n", 120)
	read := thread.ToolCall{ID: "first", Name: "Read", Arguments: `{"file_path":"a.go"}`}
	edit := thread.ToolCall{ID: "edit", Name: "Edit", Arguments: `{"file_path":"a.go","old_string":"x","new_string":"y"}`}
	run := thread.ToolCall{ID: "test", Name: "Bash", Arguments: `{"command":"go test ./..."}`}
	asks := func(id string, c thread.ToolCall) thread.Message {
		c.ID = id
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{c}}
	}
	gives := func(id, tool, text string, o thread.Outcome) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: o, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	for _, tt := range []struct {
		name  string
		first thread.Message
		call  thread.ToolCall
		then  []thread.Message
		want  bool // the first result is out of date
	}{
		{"read again", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), gives("c2", "Read", text, thread.Success)}, true},
		{"read again in part", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), gives("c2", "Read", text, thread.Partial)}, true},
		{"reading again failed", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), gives("c2", "Read", "no such file", thread.Failure)}, false},
		{"reading again was aborted", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), plain(thread.User, "Stop.")}, false},
		{"reading again is under way", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read)}, false},
		{"edited", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", edit), gives("c2", "Edit", "ok", thread.Success)}, true},
		{"the edit failed", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", edit), gives("c2", "Edit", "x was not found", thread.Failure)}, false},
		{"failed twice", gives("first", "Bash", text, thread.Failure), run, []thread.Message{asks("c2", run), gives("c2", "Bash", "FAIL", thread.Failure)}, true},
		{"failed and then passed", gives("first", "Bash", text, thread.Failure), run, []thread.Message{asks("c2", run), gives("c2", "Bash", "ok", thread.Success)}, true},
		{"passed and then failed", gives("first", "Bash", text, thread.Success), run, []thread.Message{asks("c2", run), gives("c2", "Bash", "FAIL", thread.Failure)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{DisableSummarization: true, DisableDropping: true}})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("t")
			filler := gives("filler", "Read", strings.ReplaceAll(text, "price", "weight"), thread.Success)
			log := []thread.Message{plain(thread.User, "Look."), asks("first", tt.call), tt.first, asks("filler", thread.ToolCall{Name: "Read", Arguments: `{"file_path":"b.go"}`}), filler, plain(thread.User, "Go on.")}
			step := palimpsest.Step{Budget: 3_500, Messages: append(log, tt.then...)}
			p, err := s.Compact(t.Context(), step, "")
			if err != nil {
				t.Fatal(err)
			}
			var reasons []string
			stale := false
			for _, r := range p.Since(nil) {
				why := r.Made().Reason
				reasons = append(reasons, why)
				stale = stale || strings.Contains(why, "again") || strings.Contains(why, "was changed")
			}
			if len(reasons) == 0 || stale != tt.want {
				t.Errorf("out of date: %v, want %v: %q", stale, tt.want, reasons)
			}
		})
	}
}

// TestPlansGrow: over 60 steps of an agent that reads files, each policy makes a
// handful of plans, so that most of what a provider has cached is the same at the
// next step, and records of auto and ladder stay from plan to plan. Session by the
// letter of its seed compacts at each step where the newest ten messages alone are
// over its threshold, so it has a larger window here. F7
func TestPlansGrow(t *testing.T) {
	for name, want := range map[string]struct {
		plans int     // at most
		same  float64 // of the bytes of a request, at least
		stay  bool
	}{
		"auto": {12, 0.7, true}, "notes": {12, 0.7, false}, "ladder": {16, 0.65, true}, "session": {16, 0.5, false}, "timeline": {12, 0.4, false}, "workstream": {12, 0.7, false}, "loop": {14, 0.7, false},
	} {
		p := policyNamed(t, name)
		budget := loopBudget
		if name == "session" {
			budget = 2 * loopBudget
		}
		t.Run(name, func(t *testing.T) {
			kept := &store.Memory{}
			c, err := palimpsest.New(palimpsest.Config{Policy: p, Store: store.Tenant{Log: kept, Plans: kept}, Recall: &palimpsest.Recall{}})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("t")
			step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: budget, Messages: []thread.Message{plain(thread.User, "Tidy the queue. Never touch internal/api.")}}
			var last string
			same, all := 0, 0
			for n := range 60 {
				prepared, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				unmarked := *prepared.Prompt
				unmarked.CachePoints = nil // a mark that moves on breaks no cache
				body, err := anthropic.Codec{}.Encode(&unmarked)
				if err != nil {
					t.Fatal(err)
				}
				if n > 0 {
					same += commonPrefix(last, string(body))
					all += len(body)
				}
				last = string(body)
				call, result := work(n)
				if err := s.FinishStep(t.Context(), prepared, wire.Usage{}, call); err != nil {
					t.Fatal(err)
				}
				step.Messages = []thread.Message{result}
			}
			plans, err := s.Plans(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stay := 0
			for i := 1; i < len(plans); i++ {
				stay += len(plans[i].Refs()) - len(plans[i].Since(plans[i-1]))
			}
			share := float64(same) / float64(all)
			t.Logf("%d plans, %.1f %% of the bytes as a step before, %d records stay", len(plans), 100*share, stay)
			if len(plans) == 0 || len(plans) > want.plans || share < want.same || want.stay && stay == 0 {
				t.Errorf("want %+v", want)
			}
		})
	}
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func policyNamed(t *testing.T, name string) policy.Policy {
	t.Helper()
	for _, p := range allPolicies() {
		if p.Name() == name {
			return p
		}
	}
	t.Fatalf("no policy is called %s", name)
	return nil
}
