package setup

import (
	"errors"
	"os"
	"testing"

	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
)

// TestRulesAreOfTheirOwn: summarizer.rules says who judges what the user laid down, whoever writes the summaries.
func TestRulesAreOfTheirOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	const two = `["anthropic:claude-a", "openai:b"]`
	for _, test := range []struct {
		summarizer, want string
		fails            error
	}{
		{summarizer: "{use: extractive}"},
		{summarizer: "{use: " + two + "}", want: "anthropic:claude-a,openai:b"},
		{summarizer: "{use: " + two + ", rules: table}"},
		{summarizer: "{use: extractive, rules: " + two + "}", want: "anthropic:claude-a,openai:b"},
		{summarizer: `{use: "openai:b", rules: model}`, want: "openai:b"},
		{summarizer: `{use: "openai:b", rules: "anthropic:claude-a"}`, want: "anthropic:claude-a"},
		{summarizer: "{use: extractive, rules: model}", fails: policyfile.ErrInvalid},
		{summarizer: "{use: extractive, rules: extractive}", fails: policyfile.ErrInvalid},
		{summarizer: `{rules: [table, "openai:b"]}`, fails: policyfile.ErrInvalid},
		{summarizer: "{rules: agent}", fails: ErrUsage},
	} {
		for _, base := range policyfile.Bases() {
			if base == "notes" { // it asks no model
				continue
			}
			file := "base: " + base + "\nsummarizer: " + test.summarizer + "\n"
			if err := os.WriteFile("mine.yaml", []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			chosen, err := Open("mine.yaml", &Options{Getenv: env(map[string]string{"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"})})
			if !errors.Is(err, test.fails) {
				t.Fatalf("%s: %v", file, err)
			}
			if err != nil {
				continue
			}
			got := ""
			if rules, ok := chosen.Config(mustCounter(t)).Summarizer.(*model.Judged); ok {
				got = rules.Generator.Model()
			}
			if got != test.want {
				t.Errorf("%sis judged by %q, want %q", file, got, test.want)
			}
		}
	}
}
