package policyfile_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// wholly compares settings, what they keep to themselves too.
var wholly = cmp.AllowUnexported(policy.Auto{})

// TestRead: what a file says takes the place of the default, and nothing else
// does.
func TestRead(t *testing.T) {
	got, err := policyfile.Read("p.yaml", []byte(`
base: ladder
trigger: {max_input_tokens: 60000, soft_threshold_percent: 0.7}
cut:
  preserve_recent_turns: 5
ladder:
  enable_externalization: false
  enable_dropping: no_such: true
`))
	if err == nil {
		t.Fatal("broken YAML was read", got)
	}
	got, err = policyfile.Read("p.yaml", []byte(`# every field of the seed's table (A19)
base: ladder
trigger: {max_input_tokens: 60000, soft_threshold_percent: 0.7}
cut:
  preserve_recent_turns: 5
ladder:
  enable_externalization: false
  enable_summarization: false
  enable_clearing: false
  enable_dropping: false
  externalize_threshold_tokens: 2000
  summarize_target_ratio: 0.5
counter: chars/4
summarizer:
  use: [anthropic:claude-haiku-4-5, "openai:qwen3:8b", extractive]
  rules: openai:gpt-5-mini
  timeout: 90s
  temperature: 0
  max_output: 3000
  standing: 0.2
  chunk_characters: 50000
  trust: model
  cache: false
rehydration:
  enabled: false
  max_artifacts_per_turn: 1
  max_tokens_per_artifact: 100
  total_budget_tokens: 200
  cooldown_turns: 0
  auto_rehydrate_sensitivities: [public]
tools:
  default_durability: non_replayable
  overrides:
    create_order:
      durability: anchoring
      preserve_fields: [order_id, status]
      externalize_threshold_tokens: 500
      replay_cost: expensive
`))
	if err != nil {
		t.Fatal(err)
	}
	want := policyfile.Default("ladder")
	want.Ladder.MaxInputTokens, want.Ladder.SoftThreshold = 60_000, 0.7
	want.Ladder.PreserveRecentTurns = 5
	want.Ladder.DisableExternalization, want.Ladder.DisableSummarization, want.Ladder.DisableClearing, want.Ladder.DisableDropping = true, true, true, true
	want.Ladder.ExternalizeThreshold, want.Ladder.SummarizeTargetRatio = 2_000, 0.5
	want.Counter = "chars/4"
	want.Summarizer = policyfile.Summarizer{
		Use: []string{"anthropic:claude-haiku-4-5", "openai:qwen3:8b"}, Rules: []string{"openai:gpt-5-mini"}, Timeout: 90 * time.Second, Standing: 0.2, MaxOutput: 3_000, ChunkCharacters: 50_000, Trust: policy.TrustModel,
	}
	want.Rehydration.Disabled, want.Rehydration.MaxArtifacts, want.Rehydration.MaxTokens = true, 1, 100
	want.Rehydration.TotalTokens, want.Rehydration.CooldownTurns = 200, -1
	want.Rehydration.Sensitivities = []artifact.Sensitivity{artifact.Public}
	want.Durability = thread.NonReplayable
	want.Tools = map[string]toolpolicy.Policy{"create_order": {
		Durability: thread.Anchoring, PreserveFields: []string{"order_id", "status"}, ExternalizeThreshold: 500, ReplayCost: toolpolicy.Expensive,
	}}
	if diff := cmp.Diff(want, got, wholly); diff != "" {
		t.Error(diff)
	}
	if rungs := got.Rungs(); got.HasOwnForm() || rungs == nil || len(rungs) > 0 {
		t.Error("every rung is off:", rungs)
	}
	tools := got.Registry()
	if p := tools.Policy("mcp__shop__create-order"); p.Durability != thread.Anchoring || p.ExternalizeThreshold != 500 {
		t.Error(p) // A9
	}
	if p := tools.Policy("nobody_knows_it"); p.Durability != thread.NonReplayable {
		t.Error(p) // A19
	}
	if p := tools.Policy("Read"); p.Durability != thread.Replayable {
		t.Error("the default changed a tool that the table knows:", p)
	}
}

// TestReadShort: short forms mean what they seem to.
func TestReadShort(t *testing.T) {
	for name, in := range map[string]string{
		"a chain":   "summarizer: [openai:gpt-5-mini, anthropic:claude-haiku-4-5]",
		"one model": "base: auto\nsummarizer: openai:gpt-5-mini",
		"none":      "summarizer: extractive",
		"a cut":     "base: last-turns:7",
		"JSON":      `{"base": "ratio", "cut": {"ratio": 0.25}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := policyfile.Read("p.yaml", []byte(in))
			if err != nil {
				t.Fatal(err)
			}
			got := s.Name() + " " + strings.Join(s.Summarizer.Use, " ")
			want := map[string]string{
				"a chain": "auto openai:gpt-5-mini anthropic:claude-haiku-4-5", "one model": "auto openai:gpt-5-mini", "none": "auto ",
				"a cut": "last-turns:7 ", "JSON": "ratio:0.25 ",
			}[name]
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestProblems: each mistake is told with its place and what would be right.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "p.yaml: it is empty"},
		{"# nothing\n", "p.yaml: it is empty"},
		{"---\nbase: auto\n---\nbase: loop\n", "several documents"},
		{"auto", "p.yaml:1:1: want keys with values, such as base: auto"},
		{"- auto", "want keys with values"},
		{"base: [", "it is not YAML"},
		{"base: auto\n\tcounter: x", "it is not YAML"},
		{"base: auto\nx: " + strings.Repeat("[", 60_000), "p.yaml:2:104: more than 100 brackets are open here"},
		{"base: auto\nx: " + strings.Repeat("{a: ", 10_000), "brackets are open"},
		{manyKeys(1000), "p.yaml: and 980 problems more"},
		{strings.Repeat("- ", 30_000), "more than 100 lists begin on this line"},
		{"base: auto\xff", "p.yaml: it is not UTF-8 text"},
		{strings.Repeat("#", 70_000), "the most is 65536"},
		{"base: seesion", `p.yaml:1:7: base: unknown policy "seesion"; known are auto, notes, ladder, session, timeline, workstream, loop, last-messages:N, last-tokens:N, last-turns:N, ratio:SHARE (did you mean session?)`},
		{"base: last-turns:0", "want a whole number from 1 to 100000000 after the colon, such as last-turns:3"},
		{"base: 7", "p.yaml:1:7: base: want the name of a policy"},
		{"policy: loop", "p.yaml:1:1: policy: unknown key; did you mean base?"},
		{"base: loop\ntriger:\n  utilization: 0.5", "p.yaml:2:1: triger: unknown key; did you mean trigger?"},
		{"base: loop\ntrigger:\n  utilisation: 0.5", "p.yaml:3:3: trigger.utilisation: unknown key; did you mean trigger.utilization?"},
		{"base: loop\nutilization: 0.5", "p.yaml:2:1: utilization: unknown key; did you mean trigger.utilization?"},
		{"base: loop\ntrigger:\n  threshold_percent: 0.5", "trigger.threshold_percent: unknown key; it is for session, the base is loop"},
		{"base: loop\ncolour: red", "colour: unknown key; known are base, trigger, cut, counter"},
		{"base: loop\ntrigger:\n  utilization: high", "p.yaml:3:16: trigger.utilization: want a number from 0.001 to 1; found high"},
		{"base: loop\ntrigger:\n  utilization: 80", "want a number from 0.001 to 1; found 80"},
		{"base: loop\ntrigger:\n  utilization: .nan", "want a number from 0.001 to 1"},
		{"base: loop\ntrigger:\n  utilization: .inf", "want a number from 0.001 to 1"},
		{"base: loop\ntrigger:\n  utilization:", "found nothing"},
		{"base: loop\ntrigger:\n  long_context: maybe", "want true or false; found maybe"},
		{"base: loop\ntrigger:\n  context_limit: 1.5", "want a whole number from 1 to 100000000, or auto; found 1.5"},
		{"base: loop\ntrigger:\n  context_limit: -1", "found -1"},
		{"base: loop\ntrigger:\n  context_limit: 99999999999999999999999", "want a whole number"},
		{"base: loop\ntrigger: 0.8", "trigger: want keys with values"},
		{"base: timeline\nexpire: {ttl: 5}", "expire.ttl: want a duration such as 90s, 5m or 1h30m, from 1s to 8760h, or auto, or off; found 5"},
		{"base: workstream\nsummary: {role: tool}", "want one of system, user, assistant; found tool"},
		{"base: workstream\ntranscript: {tool_names: [a, 1]}", "want a text in the list, found 1"},
		{"rehydration: {auto_rehydrate_sensitivities: [secret]}", "want a list of public, internal, confidential, restricted; found a list"},
		{"summarizer: gpt-5", "summarizer.use: want extractive, or a list of models such as anthropic:MODEL or openai:MODEL; found gpt-5"},
		{"summarizer: [extractive, openai:x]", "summarizer.use: want"},
		{"summarizer: {timeout: 0s}", "from 1ms to 1h; found 0s"},
		{"base: auto\nbase: loop", "already defined"},
		{"? [a]\n: b", "it is not YAML: found an invalid key"},
		{"x: &a 1\ny: *a", "unknown key"},
		{"counter: &a o200k", "an anchor, alias or tag"},
		{"base: auto\n\ncounter: foo", "p.yaml:3:10: counter: want auto, or a counter: o200k, cl100k, claude, claude-4.7, gemini, chars/N or bytes/N, with N from 0.1 to 100; found foo"},
		{"counter: chars/0", "p.yaml:1:10: counter: want auto, or a counter"},
		{"retrieval: {vector_store: cohere:x}", "p.yaml:1:27: retrieval.vector_store: want none, or openai:MODEL; found cohere:x"},
		{"tools:\n  overrides:\n    Bash: {durabilty: anchoring}", "p.yaml:3:12: tools.overrides.Bash.durabilty: unknown key; did you mean tools.overrides.Bash.durability?"},
		{"tools:\n  overrides:\n    Bash: {durability: forever}", "want one of ephemeral, anchoring, replayable, non_replayable; found forever"},
		{"tools:\n  overrides:\n    Bash: {}\n    bash: {}", "it is the same tool as Bash"},
		{"tools:\n  overrides:\n    '*': {}", "default_durability holds for tools that nobody declares"},
		{"summarizer: {model: openai:x}", "did you mean summarizer.use?"},
		{"tools: {Bash: {durability: anchoring}}", "did you mean tools.overrides.Bash?"},
		{"base: loop\ncache_points: {offset: 3}", "p.yaml:2:1: cache_points: unknown key; it is for timeline, the base is loop"},
		{"tools: {overrides: {Bash: 3}}", "tools.overrides.Bash: want keys with values"},
	} {
		s, err := policyfile.Read("p.yaml", []byte(c.in))
		if err == nil {
			t.Errorf("%q was read: %s", c.in, s.Name())
			continue
		}
		if !errors.Is(err, policyfile.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n%v\nwant %s", c.in, err, c.want)
		}
	}
	// All of them at once, in the order of the file.
	_, err := policyfile.Read("p.yaml", []byte("base: session\ncut: {keep: none}\nsumarizer: extractive\ntrigger: {safety_buffer: 0}"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 || !strings.HasPrefix(err.Error(), "p.yaml:2:13: cut.keep") {
		t.Error(err)
	}
	var p *policyfile.Problem
	if !errors.As(err, &p) || p.Line != 2 || p.Column != 13 || p.Path != "cut.keep" {
		t.Errorf("%+v", p)
	}
}

// TestNamed: the names of the command line.
func TestNamed(t *testing.T) {
	for _, name := range []string{"auto", "notes", "ladder", "session", "timeline", "workstream", "loop", "last-messages:12", "last-tokens:6000", "last-turns:1", "ratio:0.1"} {
		s, err := policyfile.ByName(name)
		if err != nil || s.Name() != name || s.Policy(nil).Name() != name {
			t.Error(name, err)
		}
	}
	for name, want := range map[string]string{
		"best": `unknown policy "best"; known are auto, notes, ladder`, "": "unknown policy", "last-messages": "unknown policy", "auto:3": "unknown policy",
		"last-turns:x": "such as last-turns:3", "last-tokens:999999999999": "want a whole number from 1", "ratio:1": "from 0.001 to 0.999", "ratio:NaN": "from 0.001 to 0.999", "timline": "did you mean timeline?",
	} {
		if _, err := policyfile.ByName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGolden: what people are shown, and the schema that editors use.
func TestGolden(t *testing.T) {
	golden.Equal(t, "testdata/policy.schema.json", policyfile.Schema())
	for _, base := range policyfile.Bases() {
		golden.Equal(t, "testdata/"+base+".yaml", policyfile.Default(base).YAML())
	}
}

// TestBack: every base, written and read again, is the same.
func TestBack(t *testing.T) {
	for _, base := range policyfile.Bases() {
		want := policyfile.Default(base)
		got, err := policyfile.Read(base, want.YAML())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Error(cmp.Diff(want, got, wholly))
		}
	}
}

// TestDocs: the files of the documentation are policy files.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```yaml\n")[1:]
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if s, err := policyfile.Read("docs/policies.md", []byte(text)); err != nil || len(s.Summarizer.Use) != 2 {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if len(blocks) < 2 {
		t.Error("examples are missing")
	}
	for _, base := range policyfile.Bases() {
		if !strings.Contains(string(data), "**"+base) && !strings.Contains(string(data), base+":") {
			t.Error(base, "is not described")
		}
	}
}

func ExampleRead() {
	s, err := policyfile.Read("mine.yaml", []byte("base: ladder\ntrigger:\n  max_input_tokens: 60000\n"))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Policy(nil).Name(), s.Ladder.MaxInputTokens, s.Ladder.SoftThreshold)

	_, err = policyfile.Read("mine.yaml", []byte("base: ladder\ntrigger:\n  max_tokens: 60000\n"))
	fmt.Println(err)
	// Output:
	// ladder 60000 0.85
	// mine.yaml:3:3: trigger.max_tokens: unknown key; did you mean trigger.max_input_tokens?
}

// manyKeys are so many lines with keys that nobody knows.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	return b.String()
}
