package policy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// TestSessionAsksInTheSeedsWords: every line of the two prompts that the document of
// seed B gives is in what the model is asked, in its order. B6, B7
func TestSessionAsksInTheSeedsWords(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(corpus.Dir(t, "spec"), "seeds", "001_de18f529e65eee2b.txt"))
	if err != nil {
		t.Fatal(err)
	}
	model := llmtest.Script(llmtest.Say("#### Current State\n- Working on: the harness"))
	s := stateOf(t, threadOf(t, bench()...), nil)
	s.Forced = true
	if _, err := (policy.Session{Model: model, Keep: 1}).Plan(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	asked := model.Asked()[0]
	if temperature := asked.Options.Temperature; temperature == nil || *temperature != 0.3 || asked.Options.MaxOutput != 1000 {
		t.Errorf("asked with %+v", asked.Options)
	}
	for name, text := range map[string]string{"systemPrompt": asked.Prompt.System[0].Text, "userPrompt": asked.Prompt.Messages[0].Text()} {
		_, template, _ := strings.Cut(string(document), "const "+name+" = `")
		template, _, _ = strings.Cut(template, "`;")
		lines := 0
		for line := range strings.Lines(template) {
			line = strings.TrimSpace(strings.ReplaceAll(line, "${compactionRound}", "1"))
			if line == "" || strings.HasPrefix(line, "${") {
				continue
			}
			lines++
			before, after, found := strings.Cut(text, line)
			if !found || before != "" && !strings.HasSuffix(strings.TrimRight(before, " "), "\n") {
				t.Errorf("%s: the line is not there, or not in its place: %s", name, line)
				continue
			}
			text = after
		}
		if lines < 4 {
			t.Errorf("%s: %d lines in the document", name, lines)
		}
	}
}

// TestDocumentedTests: every test and scenario that policy/rules.md names is there.
func TestDocumentedTests(t *testing.T) {
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "storetest") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("rules.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b(?:Test|Benchmark)[A-Z]\w+`).FindAllString(string(page), -1)
	if len(named) < 80 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, name := range named {
		if !there[name] {
			t.Errorf("there is no %s", name)
		}
	}
	scenarios := regexp.MustCompile("`scenarios/(\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(scenarios) < 10 {
		t.Errorf("%d scenarios are named", len(scenarios))
	}
	for _, s := range scenarios {
		if _, err := os.Stat("../testdata/scenarios/" + s[1] + ".txtar"); err != nil {
			t.Error(err)
		}
	}
}
