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
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
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
