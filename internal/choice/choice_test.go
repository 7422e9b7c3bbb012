package choice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// TestOpen: names and files, and where keys are looked for.
func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"mine": "base: loop\n", "mine.yaml": "base: session\nsummarizer: openai:m\n", "bad.yml": "bas: loop\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := map[string]string{"OPENAI_API_KEY": "secret-1", "ANTHROPIC_AUTH_TOKEN": "secret-2"}
	for _, c := range []struct {
		name, chain string
		env         map[string]string
		policy, err string
	}{
		{name: "auto", policy: "auto"},
		{name: "ratio:0.2", policy: "ratio:0.2"},
		{name: "mine", policy: "loop"},
		{name: "./mine", policy: "loop"},
		{name: "mine.yaml", env: key, policy: "session"},
		{name: "mine.yaml", chain: "extractive", policy: "session"},
		{name: "mine.yaml", err: "summarizer openai:m: set OPENAI_API_KEY (or OPENAI_BASE_URL, for a server that needs no key)"},
		{name: "mine.yaml", env: map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}, policy: "session"},
		{name: "auto", chain: "anthropic:m,openai:n", env: key, policy: "auto"},
		{name: "auto", chain: "anthropic:m", env: map[string]string{"ANTHROPIC_API_KEY": " "}, err: "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"},
		{name: "auto", chain: "openai:m", env: map[string]string{"OPENAI_BASE_URL": "no address"}, err: "summarizer openai:m"},
		{name: "auto", chain: "gpt", err: `--summarizer "gpt": want extractive`},
		{name: "", err: `unknown policy ""`},
		{name: "other", err: `unknown policy "other"`},
		{name: "other.json", err: "there is no policy file other.json"},
		{name: "dir/other", err: "there is no policy file dir/other"},
	} {
		got, err := Open(c.name, &Options{Summarizer: c.chain, Getenv: env(c.env)})
		if c.err != "" {
			if err == nil || !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || got.Config(mustCounter(t)).Policy.Name() != c.policy {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := Open("bad.yml", nil); !errors.Is(err, policyfile.ErrInvalid) || errors.Is(err, ErrUsage) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()+string(filepath.Separator), nil); err == nil {
		t.Error("a directory was read")
	}
}

func mustCounter(t testing.TB) *token.Counter {
	t.Helper()
	c, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func asked(text string) *prompt.Prompt {
	return &prompt.Prompt{Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}}
}

// TestGuarded: the same question is asked once, another one again; a model that
// failed is left alone for a while, unless it was the question's fault.
func TestGuarded(t *testing.T) {
	script := llmtest.Script(llmtest.Say("a"), llmtest.Say("b"), llmtest.Fail(llm.ErrOverflow), llmtest.Say("c"), llmtest.Fail(llm.ErrServer), llmtest.Say("d"))
	now := time.Unix(0, 0)
	booked := 0
	settings := policyfile.Default("auto").Summarizer
	g := guard("openai:m", script, &settings, &Options{Now: func() time.Time { return now }, Used: func(string, llm.Usage) { booked++ }})
	ask := func(text string) string {
		r, err := g.Generate(t.Context(), asked(text), nil)
		if err != nil {
			return err.Error()
		}
		return r.Text
	}
	for _, step := range []struct {
		wait      time.Duration
		ask, want string
	}{
		{0, "1", "a"}, {0, "1", "a"}, {0, "2", "b"}, {0, "1", "a"},
		{0, "3", "script: context overflow: scripted"}, {0, "3", "c"}, {0, "4", "script: server error: scripted"},
		{0, "5", "not asked again after: script: server error: scripted"}, {30 * time.Second, "5", "not asked again after: script: server error: scripted"}, {0, "2", "b"},
		{31 * time.Second, "5", "d"},
	} {
		now = now.Add(step.wait)
		if got := ask(step.ask); got != step.want {
			t.Fatalf("%+v: %q", step, got)
		}
	}
	if script.Left() != 0 || booked != 4 {
		t.Error(script.Left(), booked)
	}
	if Resting(errors.New("x")) || !Resting(&restingError{llm.ErrServer}) || !errors.Is(&restingError{llm.ErrServer}, llm.ErrServer) {
		t.Error("resting errors are not told apart")
	}
	settings.Cache = false // A19
	script = llmtest.Script(llmtest.Say("a"), llmtest.Say("b"))
	g = guard("openai:m", script, &settings, &Options{})
	if ask("1") != "a" || ask("1") != "b" {
		t.Error("kept although the cache is off")
	}
}

// TestGuardedOptions: the settings stand over what a prompt asks for.
func TestGuardedOptions(t *testing.T) {
	own := 0.3
	for _, c := range []struct {
		temperature float64
		output      int
		want        string
	}{{policyfile.Own, 0, "0.3 100"}, {policyfile.None, 0, "none 100"}, {0, 7, "0 7"}, {1.5, 0, "1.5 100"}} {
		s := policyfile.Default("auto").Summarizer
		s.Temperature, s.MaxOutput = c.temperature, c.output
		script := llmtest.Script(llmtest.Say("a"))
		if _, err := guard("m", script, &s, &Options{}).Generate(t.Context(), asked("1"), &llm.Options{Temperature: &own, MaxOutput: 100}); err != nil {
			t.Fatal(err)
		}
		o := script.Asked()[0].Options
		got := "none"
		if o.Temperature != nil {
			got = fmt.Sprint(*o.Temperature)
		}
		if got += " " + strconv.Itoa(o.MaxOutput); got != c.want || o.Timeout != 2*time.Minute || own != 0.3 {
			t.Errorf("%q, want %q; %v", got, c.want, o.Timeout)
		}
	}
}

// TestLibraryLoop: a long conversation under a policy whose models fail in every
// way goes on, and each compaction tells who wrote its summary.
func TestLibraryLoop(t *testing.T) {
	for _, base := range policyfile.Bases() {
		t.Run(base, func(t *testing.T) {
			var mu sync.Mutex
			var reports []summarize.Report
			s := policyfile.Default(base)
			now := time.Unix(1_700_000_000, 0)
			o := &Options{
				Report: func(_ context.Context, r summarize.Report) { mu.Lock(); reports = append(reports, r); mu.Unlock() },
				Now:    func() time.Time { now = now.Add(2 * rest); return now }, // a model rests for no call
			}
			c := &Choice{Settings: s, report: o.Report}
			script := make([]llmtest.Turn, 0, 200)
			for range 40 {
				script = append(script, llmtest.Fail(llm.ErrServer), llmtest.Say(""), llmtest.Say("I will not."), llmtest.Fail(llm.ErrTimeout), llmtest.Fail(llm.ErrRefused))
			}
			c.models = []*guarded{guard("openai:a", llmtest.Script(script...), &s.Summarizer, o), guard("openai:b", llmtest.Script(script[1:]...), &s.Summarizer, o)}
			config := c.Config(mustCounter(t))
			_, early := config.Policy.(policy.Early)
			if _, plain := s.Policy(nil).(policy.Early); early != plain {
				t.Errorf("prepared early: %v, without models %v", early, plain)
			}
			comp, err := palimpsest.New(config)
			if err != nil {
				t.Fatal(err)
			}
			th := comp.Thread("t")
			step := palimpsest.Step{Profile: render.For(wire.Chat), Window: 16_000, Output: 500}
			longest := 0
			for n := range 40 {
				step.Messages = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Step " + strconv.Itoa(n) + ": look at file" + strconv.Itoa(n) + ".go and say what is wrong there, please."}}}}
				p, err := th.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				longest = max(longest, config.Counter.Prompt(p))
				if err := th.FinishStep(t.Context(), llm.Usage{}, thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Repeat("The function reads beyond the end of line "+strconv.Itoa(n)+". ", 60)}}}); err != nil {
					t.Fatal(err)
				}
			}
			if base == "ladder" || base == "workstream" {
				step.Messages = nil // their own figures are for larger windows
				if _, err := th.Compact(t.Context(), step, ""); err != nil && !errors.Is(err, policy.ErrNothing) {
					t.Error(err)
				}
			} else if longest > 16_000 {
				t.Error("a prompt of", longest)
			}
			by := map[string]int{}
			for _, r := range reports {
				if r.By != "" {
					by[r.By]++
				}
			}
			if base == "auto" || base == "ladder" {
				return // rules alone may have been enough
			}
			if len(by) == 0 {
				t.Error("nobody was told of a summary")
			}
		})
	}
}

// TestChain: what is no answer goes to the next model; a request that is too
// large goes back to the policy, which makes it smaller.
func TestChain(t *testing.T) {
	settings := policyfile.Default("loop").Summarizer
	for name, c := range map[string]struct {
		first llmtest.Turn
		want  string
		err   error
	}{
		"refused":   {llmtest.Turn{Reply: llm.Reply{Text: "no", Stop: llm.StopRefusal}}, "second", nil},
		"cut off":   {llmtest.Turn{Reply: llm.Reply{Text: "The", Stop: llm.StopLength}}, "second", nil},
		"empty":     {llmtest.Say(" \n"), "second", nil},
		"tool":      {llmtest.Turn{Reply: llm.Reply{Text: "let me look", Stop: llm.StopTool}}, "second", nil},
		"failed":    {llmtest.Fail(llm.ErrServer), "second", nil},
		"too large": {llmtest.Fail(llm.ErrOverflow), "", llm.ErrOverflow},
		"answer":    {llmtest.Say("first"), "first", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{}
			ch := &chain{models: []*guarded{
				guard("openai:a", llmtest.Script(c.first), &settings, o), guard("openai:b", llmtest.Script(llmtest.Say("second")), &settings, o),
			}}
			n := &notes{}
			r, err := ch.Generate(context.WithValue(t.Context(), notesKey{}, n), asked("1"), nil)
			if !errors.Is(err, c.err) || err == nil && r.Text != c.want {
				t.Fatal(r, err)
			}
			if (len(n.failures) == 0) != (c.want == "first") || err == nil && n.by != map[string]string{"first": "openai:a", "second": "openai:b"}[c.want] {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestInvalidInPlainerWords: a request that the server does not take is not asked
// again as it is, but in plainer words at once: the model is not left alone for
// it.
func TestInvalidInPlainerWords(t *testing.T) {
	settings := policyfile.Default("auto").Summarizer
	script := llmtest.Script(llmtest.Fail(llm.ErrInvalid), llmtest.Say("plain"))
	g := guard("openai:m", script, &settings, &Options{})
	heat := 0.3
	for range 2 {
		if _, err := g.Generate(t.Context(), asked("1"), &llm.Options{Temperature: &heat}); !errors.Is(err, llm.ErrInvalid) {
			t.Error(err)
		}
	}
	if r, err := g.Generate(t.Context(), asked("1"), nil); err != nil || r.Text != "plain" || len(script.Asked()) != 2 {
		t.Errorf("%+v, %v, asked %d times", r, err, len(script.Asked()))
	}
}
