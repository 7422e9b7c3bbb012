package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
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
	for name, text := range map[string]string{"mine": "base: loop\n", "mine.yaml": "base: session\nsummarizer: openai:m\n", "bad.yml": "bas: loop\n", "part": "ladder: {enable_dropping: false}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := map[string]string{"OPENAI_API_KEY": "secret-1", "ANTHROPIC_AUTH_TOKEN": "secret-2"}
	for _, c := range []struct {
		name, chain, favor string
		env                map[string]string
		policy, err        string
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
		{name: "auto", favor: "quality", policy: "auto"},
		{name: "auto", favor: "speed", err: `favor "speed": want one of quality, balanced, cost`},
		{name: "notes", favor: "cost", policy: "notes"},
		{name: "notes", chain: "agent", err: "the policy notes asks no model"},
		{name: "notes", chain: "extractive", policy: "notes"},
		{name: "mine", favor: "cost", err: "favor cost: the policy loop has its own marks; only auto and notes have favors"},
		{name: "part", favor: "cost", err: "favor cost: the policy part has a part of its ladder switched off"},
		{name: "last-turns", err: "(did you mean last-turns:N?)"},
		{name: "", err: `unknown policy ""`},
		{name: "other", err: `unknown policy "other"`},
		{name: "other.json", err: "there is no policy file other.json"},
		{name: "dir/other", err: "there is no policy file dir/other"},
	} {
		got, err := Open(c.name, &Options{Summarizer: c.chain, Favor: c.favor, Getenv: env(c.env)})
		if c.err != "" {
			if err == nil || !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || got.Config(mustCounter(t)).Policy.Name() != c.policy {
			t.Errorf("%+v: %v", c, err)
		}
		if c.favor != "" && string(got.Settings.Auto.Favor) != c.favor {
			t.Errorf("%+v: favor %s", c, got.Settings.Auto.Favor)
		}
	}
	for field, valid := range map[string]bool{"favor: cost": false, "working: 9000": false, "favor: quality": true, "favor: balanced": true} {
		if err := os.WriteFile("part", []byte("trigger: {"+field+"}\nladder: {enable_dropping: false}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("part", nil); valid != (err == nil) || !valid && (!errors.Is(err, policyfile.ErrInvalid) || !strings.Contains(err.Error(), "part: trigger.")) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := Open("bad.yml", nil); !errors.Is(err, policyfile.ErrInvalid) || errors.Is(err, ErrUsage) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()+string(filepath.Separator), nil); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
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

// TestGuarded: a model that failed is left alone for a while, unless it was the
// question's fault. With answers around it the same question is asked once, unless
// the settings say that nothing is to be kept. A19
func TestGuarded(t *testing.T) {
	now := time.Unix(0, 0)
	booked := 0
	settings := policyfile.Default("auto").Summarizer
	o := &Options{Now: func() time.Time { return now }, OnUsage: func(string, wire.Usage) { booked++ }}
	answers := llm.NewAnswers(nil)
	var g *guardedModel
	ask := func(text string) string {
		r, err := answers.Ask(t.Context(), g, asked(text), nil)
		if err != nil {
			return err.Error()
		}
		return r.Text
	}
	script := llmtest.Script(llmtest.Say("a"), llmtest.Say("b"), llmtest.Fail(llm.ErrOverflow), llmtest.Fail(llm.ErrServer), llmtest.Say("d"))
	g = guard("openai:m", script, &settings, o)
	for _, step := range []struct {
		wait      time.Duration
		ask, want string
	}{
		{0, "1", "a"}, {0, "1", "a"}, {0, "2", "b"}, {0, "1", "a"},
		{0, "3", "script: context overflow: scripted"}, {0, "3", "not asked again after: script: context overflow: scripted"},
		{0, "4", "script: server error: scripted"},
		{0, "5", "not asked again after: script: server error: scripted"}, {30 * time.Second, "5", "not asked again after: script: server error: scripted"}, {0, "2", "b"},
		{31 * time.Second, "5", "d"},
	} {
		now = now.Add(step.wait)
		if got := ask(step.ask); got != step.want {
			t.Fatalf("%+v: %q", step, got)
		}
	}
	if script.Remaining() != 0 || booked != 3 {
		t.Error(script.Remaining(), booked)
	}
	settings.Cache = false
	g = guard("openai:m", llmtest.Script(llmtest.Say("a"), llmtest.Say("b")), &settings, o)
	if ask("new") != "a" || ask("new") != "b" {
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
	}{{policyfile.PromptTemperature, 0, "0.3 100"}, {policyfile.NoTemperature, 0, "none 100"}, {0, 7, "0 7"}, {1.5, 0, "1.5 100"}} {
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
			s := policyfile.Default(base)
			now := time.Unix(1_700_000_000, 0)
			o := &Options{Now: func() time.Time { now = now.Add(2 * retryDelay); return now }} // a model rests for no call
			c := &Policy{Settings: s}
			script := make([]llmtest.Turn, 0, 200)
			for range 40 {
				script = append(script, llmtest.Fail(llm.ErrServer), llmtest.Say(""), llmtest.Say("I will not."), llmtest.Fail(llm.ErrTimeout), llmtest.Fail(llm.ErrRefused))
			}
			c.models = []*guardedModel{guard("openai:a", llmtest.Script(script...), &s.Summarizer, o), guard("openai:b", llmtest.Script(script[1:]...), &s.Summarizer, o)}
			config := c.Config(mustCounter(t))
			by := map[string]int{}
			config.Events = event.Func(func(_ context.Context, e event.Event) {
				if e.Type == event.Asked {
					by[fmt.Sprint(e.Details["summarizer"])]++
				}
			})
			_, early := policy.As[policy.Background](config.Policy)
			if _, plain := s.Policy(nil).(policy.Background); early != plain {
				t.Errorf("prepared early: %v, without models %v", early, plain)
			}
			comp, err := palimpsest.New(config)
			if err != nil {
				t.Fatal(err)
			}
			th := comp.Session("t")
			step := palimpsest.Step{Profile: render.For(wire.Chat), Window: 16_000, Output: 500}
			longest := 0
			for n := range 40 {
				step.Messages = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Step " + strconv.Itoa(n) + ": look at file" + strconv.Itoa(n) + ".go and say what is wrong there, please."}}}}
				p, err := th.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				longest = max(longest, config.Counter.Prompt(p.Prompt))
				if err := th.FinishStep(t.Context(), nil, wire.Usage{}, thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Repeat("The function reads beyond the end of line "+strconv.Itoa(n)+". ", 60)}}}); err != nil {
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
			if base == "auto" || base == "ladder" {
				return // rules alone may have been enough
			}
			if base == "notes" {
				if len(by) > 0 {
					t.Error("somebody was asked:", by)
				}
				return
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
		"refused":   {llmtest.Turn{Reply: llm.Reply{Text: "no", Stop: wire.StopRefusal}}, "second", nil},
		"cut off":   {llmtest.Turn{Reply: llm.Reply{Text: "The", Stop: wire.StopLength}}, "second", nil},
		"empty":     {llmtest.Say(" \n"), "second", nil},
		"tool":      {llmtest.Turn{Reply: llm.Reply{Text: "let me look", Stop: wire.StopTool}}, "second", nil},
		"failed":    {llmtest.Fail(llm.ErrServer), "second", nil},
		"too large": {llmtest.Fail(llm.ErrOverflow), "", llm.ErrOverflow},
		"answer":    {llmtest.Say("first"), "first", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{}
			ch := &chain{models: []*guardedModel{
				guard("openai:a", llmtest.Script(c.first), &settings, o), guard("openai:b", llmtest.Script(llmtest.Say("second")), &settings, o),
			}}
			r, err := ch.Generate(t.Context(), asked("1"), nil)
			if !errors.Is(err, c.err) || err == nil && r.Text != c.want {
				t.Fatal(r, err)
			}
			if err != nil {
				if all := llm.AttemptsOf("", err); len(all) != 1 || all[0].Model != "openai:a" {
					t.Errorf("%+v", all)
				}
				return
			}
			last := r.Attempts[len(r.Attempts)-1]
			if (len(r.Attempts) == 1) != (c.want == "first") || last.Err != nil || last.Model != map[string]string{"first": "openai:a", "second": "openai:b"}[c.want] {
				t.Errorf("%+v", r.Attempts)
			}
		})
	}
}

// TestChainOfBadAnswers: what no model answered well is the last one's answer, with
// what was wrong with each; one that failed at last is an error that names all.
func TestChainOfBadAnswers(t *testing.T) {
	settings := policyfile.Default("loop").Summarizer
	chained := func(second llmtest.Turn) (*llm.Reply, error) {
		o := &Options{}
		ch := &chain{models: []*guardedModel{guard("openai:a", llmtest.Script(llmtest.Say(" ")), &settings, o), guard("openai:b", llmtest.Script(second), &settings, o)}}
		return ch.Generate(t.Context(), asked("1"), nil)
	}
	r, err := chained(llmtest.Turn{Reply: llm.Reply{Text: "no", Stop: wire.StopRefusal}})
	if err != nil || r.Stop != wire.StopRefusal || len(r.Attempts) != 2 || !errors.Is(r.Attempts[0].Err, summarize.Empty) || !errors.Is(r.Attempts[1].Err, llm.ErrRefused) {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = chained(llmtest.Fail(llm.ErrServer))
	if all := llm.AttemptsOf("", err); len(all) != 2 || !errors.Is(err, summarize.Empty) || !errors.Is(err, llm.ErrServer) || all[1].Model != "openai:b" {
		t.Errorf("%+v", err)
	}
}

// TestInvalidInPlainerWords: a request that the server does not take is asked in
// plainer words at once: the model is not left alone for it.
func TestInvalidInPlainerWords(t *testing.T) {
	settings := policyfile.Default("auto").Summarizer
	script := llmtest.Script(llmtest.Fail(llm.ErrInvalid), llmtest.Say("plain"))
	g := guard("openai:m", script, &settings, &Options{})
	heat := 0.3
	if _, err := g.Generate(t.Context(), asked("1"), &llm.Options{Temperature: &heat}); !errors.Is(err, llm.ErrInvalid) {
		t.Error(err)
	}
	if r, err := g.Generate(t.Context(), asked("1"), nil); err != nil || r.Text != "plain" || len(script.Asked()) != 2 {
		t.Errorf("%+v, %v, asked %d times", r, err, len(script.Asked()))
	}
}
