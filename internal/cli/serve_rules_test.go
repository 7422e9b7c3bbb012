package cli

import (
	"strings"
	"testing"
)

// TestRulesAct: summarizer.rules says whether a running daemon asks the model which of the user's sentences
// stand, and the agent's prompts show what it answered.
func TestRulesAct(t *testing.T) {
	const question = "which sentences still stand"
	usual, prompts := fieldBases["auto"], map[string]string{}
	for rules, asks := range map[string]bool{"auto": true, "model": true, "table": false} {
		k := usual.talk
		k.model2 = writer(t, false)
		environment(t, k.model2.URL)
		held := talkedTo(t, policyText(t, "auto", usual.with, map[string]any{"summarizer.use": []string{"openai:gpt-5-mini"}, "summarizer.rules": rules}), k)
		var asked string
		prompts[rules], asked, _ = strings.Cut(held, "plan 1: ")
		if strings.Contains(asked, question) != asks {
			t.Errorf("rules: %s: the model was asked: %v, want %v", rules, !asks, asks)
		}
	}
	if prompts["auto"] != prompts["model"] {
		t.Errorf("auto is not model: %s", firstDifference(prompts["auto"], prompts["model"]))
	}
	if prompts["auto"] == prompts["table"] {
		t.Error("the agent sees nothing of what the model said")
	}
}
