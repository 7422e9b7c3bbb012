package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/lab/eval"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// TestMain lets the test program be the program that TestPeers asks.
func TestMain(m *testing.M) {
	if mode := os.Getenv("PALIMPSEST_TEST_PEER"); mode != "" {
		os.Exit(peerProgram(mode))
	}
	os.Exit(m.Run())
}

// peerProgram leaves all, the tail alone, or all with other words.
func peerProgram(mode string) int {
	if mode == "mute" {
		fmt.Fprintln(os.Stderr, "no such library")
		return 3
	}
	fmt.Println(`{"contenders":["all","half","words","wrong","orphans"]}`)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil || len(q.Tokens) != len(q.Messages) || q.Budget == 0 {
			fmt.Printf("{\"error\":%q}\n", fmt.Sprint("a bad question: ", err))
			continue
		}
		a := answer{Messages: q.Messages}
		switch q.Contender {
		case "half":
			a.Messages = a.Messages[len(a.Messages)/2:]
			for len(a.Messages) > 0 && a.Messages[0].Role == "tool" {
				a.Messages = a.Messages[1:]
			}
		case "words":
			for i := range a.Messages {
				if a.Messages[i].Role == "tool" {
					a.Messages[i].Parts[0].Content = []neutral.Part{{Type: neutral.TextPart, Text: "gone"}}
					a.Messages[i].Parts[0].Structured = nil
				}
			}
		case "wrong":
			a = answer{Error: "no room"}
		case "orphans":
			for a.Messages[0].Role != "tool" {
				a.Messages = a.Messages[1:]
			}
		}
		out, err := json.Marshal(a)
		if err != nil {
			return 1
		}
		fmt.Println(string(out))
	}
}

// TestPeers: contenders of another program stand in the table, scored by what
// they left: the whole history recalls all, a part of it less, other words of a
// message count as such, and what the provider would refuse is shown as failed.
func TestPeers(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PALIMPSEST_TEST_PEER", "good")
	set, err := references.Load(t.Context(), []string{"../../testdata/sessions/fix-retry.claude-code.jsonl"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	program, err := Start(t.Context(), []string{self}, set.Counter)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Stop()
	r, err := eval.Run(t.Context(), set, &eval.Options{Budgets: []string{"8k"}, Contenders: []string{references.AutoName}, Others: program.Contenders()})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]eval.Score{}
	for _, s := range r.Columns[0].Scores {
		got[s.Contender] = s
	}
	if s := got["all"]; s.Bound != 1 || s.Failed != 0 || s.Over != 1 {
		t.Errorf("all that was said recalls %v, %v failed, %v over", s.Bound, s.Failed, s.Over)
	}
	if s := got["half"]; s.Bound == 0 || s.Bound == 1 || s.Failed != 0 {
		t.Errorf("half recalls %v, %v failed", s.Bound, s.Failed)
	}
	if s := got["words"]; s.Bound >= got["all"].Bound || s.Full >= got["all"].Full || s.Failed != 0 {
		t.Errorf("without results the recall is %v, filled %v, %v failed", s.Bound, s.Full, s.Failed)
	}
	if s := got["wrong"]; s.Failed != 1 || s.Bound != 0 {
		t.Errorf("an error recalls %v, %v failed", s.Bound, s.Failed)
	}
	if s := got["orphans"]; s.Failed != 1 {
		t.Errorf("a result without its call: %v failed", s.Failed)
	}
	t.Setenv("PALIMPSEST_TEST_PEER", "mute")
	if _, err := Start(t.Context(), []string{self}, set.Counter); err == nil || !strings.Contains(err.Error(), "no such library") {
		t.Errorf("a program that does not speak: %v", err)
	}
	if _, err := Start(t.Context(), []string{filepath.Join(t.TempDir(), "none")}, set.Counter); err == nil {
		t.Error("no program and no error")
	}
}
