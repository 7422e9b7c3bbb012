package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// noted is an answer of seed D's summarizer: facts, flow, threads, and what is set in
// the lists of the state.
func noted(facts, flow, open []string, set map[string][]string) llmtest.Turn {
	delta := map[string]any{}
	for name, texts := range set {
		var items []any
		for _, text := range texts {
			items = append(items, map[string]any{"text": text, "status": "", "by": ""})
		}
		delta[name] = map[string]any{"set": items, "remove": []any{}}
	}
	body, err := json.Marshal(map[string]any{"summary": map[string]any{"key_facts": facts, "conversation_flow": flow, "open_threads": open}, "state_delta": delta})
	if err != nil {
		panic(err)
	}
	return llmtest.Turn{Reply: llm.Reply{Stop: wire.StopEnd, JSON: string(body)}}
}

// between is what stands between two tags of a question.
func between(text, tag string) string {
	_, text, _ = strings.Cut(text, "<"+tag+">")
	text, _, _ = strings.Cut(text, "</"+tag+">")
	return text
}

// TestWorkstreamConstraintsOfTheModel: of the constraints of a model those in the user's words are in the state,
// pinned, and the others only where the policy trusts the model. D5
func TestWorkstreamConstraintsOfTheModel(t *testing.T) {
	for trust, want := range map[policy.Trust]int{policy.TrustChecked: 1, policy.TrustModel: 2} {
		model := llmtest.Script(noted([]string{"The till is in cents."}, []string{"The till was built."}, nil,
			map[string][]string{"active_constraints": {"Never sell tea_leaf_7.", "Prices stay below ten"}}))
		k := talking(t, palimpsest.Config{Policy: policy.Workstream{Model: model, Trust: trust, ContextSize: 6_000, OutputReserve: 500, SafetyMargin: 500}}, api.Step{Window: 100_000, Output: 500})
		k.add(said("user", "Build the till. Never sell tea_leaf_7."), said("assistant", "The till is in cents. The till was built. "+strings.Repeat("The shop is open all day. ", 600)))
		for n := range 6 {
			k.add(said([]string{"user", "assistant"}[n%2], fmt.Sprintf("newest %d. Paint the door.", n)))
		}
		k.ask(said("user", "And the door?"))
		found := 0
		for _, it := range k.inForce().Summarizations[0].State.ActiveConstraints {
			switch {
			case strings.Contains(it.Text, "Prices stay below ten"):
				found++
				if it.Pinned {
					t.Errorf("%s: the model has pinned %q", trust, it.Text)
				}
			case strings.Contains(it.Text, "tea_leaf_7"):
				found++
				if !it.Pinned {
					t.Errorf("%s: the user's %q is not pinned", trust, it.Text)
				}
			}
		}
		if found != want {
			t.Errorf("%s: %+v", trust, k.inForce().Summarizations[0].State.ActiveConstraints)
		}
	}
}

// TestWorkstreamAsksOverHTTP: through the daemon the model is given text, no reasoning,
// and of tools those of the document's list alone, as a numbered transcript; in the next
// round the summary and the state of the one before, and the messages that came since.
// What it answers becomes the three sections in a system message, before the newest six
// messages, and a state whose lists keep to the document's limits. A turn with open calls
// is not compacted. D2, D3, D4, D5, D7, D8, D9
func TestWorkstreamAsksOverHTTP(t *testing.T) {
	things := func(name string, from, n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("%s number %d", name, from+i))
		}
		return all
	}
	limits := map[string]int{"key_decisions": 8, "active_constraints": 6, "tasks": 10, "open_questions": 5, "risks": 5, "artifacts": 10, "agent_contributions": 6}
	set := map[string][]string{}
	var words []string
	for name := range limits {
		set[name] = things(name, 0, 12)
	}
	for _, name := range []string{"key_decisions", "tasks", "open_questions", "risks", "artifacts", "agent_contributions"} {
		words = append(words, set[name]...)
	}
	rules := ""
	for n := range 9 {
		rules += fmt.Sprintf(" Never sell tea_leaf_%d.", n)
	}
	model := llmtest.Script(
		noted([]string{"The till is in cents."}, []string{"The till was built."}, []string{"Paint the door."}, set),
		noted([]string{"The till is in cents.", "The door is blue."}, []string{"The door was painted."}, nil, map[string][]string{"key_decisions": {"key_decisions number 12"}}))
	k := talking(t, palimpsest.Config{Policy: policy.Workstream{Model: model, ContextSize: 6_000, OutputReserve: 500, SafetyMargin: 500}}, api.Step{Window: 100_000, Output: 500})
	k.add(said("user", "Build the till."+rules),
		neutral.Message{Role: "assistant", Parts: []neutral.Part{{Type: neutral.ReasoningPart, Text: "a secret thought"}, {Type: neutral.TextPart, Text: "The till is in cents. The till was built."}}},
		calling("c1", "linear_get", `{"id":"LIN-7"}`), resulting("c1", "linear_get", "LIN-7: the drawer sticks"),
		calling("c2", "userQuestions", `{"ask":"colour"}`), resulting("c2", "userQuestions", "blue"),
		calling("c3", "Bash", `{"command":"ls"}`), resulting("c3", "Bash", "the listing of files"),
		said("assistant", "Notes: "+strings.Join(words, "; ")+"; key_decisions number 12. "+strings.Repeat("The shop is open all day. ", 420)))
	for n := range 6 {
		k.add(said([]string{"user", "assistant"}[n%2], fmt.Sprintf("newest %d. Paint the door.", n)))
	}
	k.add(calling("c4", "Bash", `{"command":"wc"}`))
	if p := k.ask(resulting("c4", "Bash", "12 lines")); p.PlanVersion != 0 {
		t.Error("a turn that goes on is compacted")
	}
	k.answer(said("assistant", "There are 12 lines."))
	p := k.ask(said("user", "And the door?"))
	if p.PlanVersion != 1 || len(model.Asked()) != 1 {
		t.Fatalf("plan %d, asked %d times", p.PlanVersion, len(model.Asked()))
	}
	question := model.Asked()[0].Prompt.Messages[0].Text()
	transcript := between(question, "new-messages")
	for _, want := range []string{"1. user: Build the till.", "2. assistant: The till is in cents.", "LIN-7: the drawer sticks", "blue", "userQuestions"} {
		if !strings.Contains(transcript, want) {
			t.Errorf("the transcript has no %q", want)
		}
	}
	for _, not := range []string{"secret thought", "listing of files", `"ls"`, "newest 4"} {
		if strings.Contains(transcript, not) {
			t.Errorf("the transcript has %q", not)
		}
	}
	if between(question, "previous-summary") != "" {
		t.Errorf("the first round goes on from %q", between(question, "previous-summary"))
	}
	shown := p.Prompt.Messages
	first := textOf(shown[0])
	if len(shown) != 7 || shown[0].Role != "system" || textOf(shown[6]) != "And the door?" || !strings.HasPrefix(first, "Compacted context summary:\n") {
		t.Fatalf("%d messages:\n%.900s", len(shown), textsOf(shown))
	}
	at := -1
	for _, part := range []string{"Build the till.", "Never sell tea_leaf_8.", "KEY FACTS:\n- The till is in cents.", "CONVERSATION FLOW:\n- The till was built.", "OPEN THREADS:\n- Paint the door."} {
		n := strings.Index(first, part)
		if n <= at {
			t.Errorf("%q stands at %d, behind %d, in\n%s", part, n, at, first)
		}
		at = n
	}
	lists := func() (all map[string][]struct{ Text string }) {
		t.Helper()
		data, err := json.Marshal(k.inForce().Summarizations[0].State)
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	made := lists()
	for name, limit := range limits {
		if items := made[name]; name != "active_constraints" && (len(items) != limit || items[limit-1].Text != set[name][11]) {
			t.Errorf("%s holds %d items, want %d, the newest last: %+v", name, len(items), limit, items)
		}
	}
	if c := fmt.Sprint(made["active_constraints"]); len(made["active_constraints"]) != 6 || !strings.Contains(c, "Never sell tea_leaf_8.") || strings.Contains(c, "active_constraints number") {
		t.Errorf("constraints %s: want what the user said, and nothing else", c)
	}

	k.answer(said("assistant", "The door is blue. The door was painted. "+strings.Repeat("The shop is open all day. ", 540)))
	for n := range 6 {
		k.add(said([]string{"user", "assistant"}[n%2], fmt.Sprintf("later %d.", n)))
	}
	if p = k.ask(said("user", "Go on.")); p.PlanVersion != 2 || len(model.Asked()) != 2 {
		t.Fatalf("plan %d, asked %d times", p.PlanVersion, len(model.Asked()))
	}
	question = model.Asked()[1].Prompt.Messages[0].Text()
	if transcript := between(question, "new-messages"); !strings.Contains(transcript, "newest 4") || strings.Contains(transcript, "LIN-7") || !strings.Contains(transcript, "The door was painted.") {
		t.Errorf("the second transcript is %.600s", transcript)
	}
	if before := between(question, "previous-summary"); !strings.Contains(before, "KEY FACTS:\n- The till is in cents.") || !strings.Contains(between(question, "existing-workstream-state"), "tasks number 11") {
		t.Errorf("the second round goes on from %q", before)
	}
	second := textOf(p.Prompt.Messages[0])
	if strings.Count(textsOf(p.Prompt.Messages), "Compacted context summary:") != 1 || !strings.Contains(second, "The door is blue.") || !strings.Contains(second, "Build the till.") || strings.Contains(second, "The till was built.") {
		t.Errorf("the second summary is\n%s", second)
	}
	if d := lists()["key_decisions"]; len(d) != 8 || d[7].Text != "key_decisions number 12" {
		t.Errorf("decisions %+v", d)
	}
}

// putting is a queue that writes down what is put into it.
type putting struct {
	job.Queue
	keys *[]string
}

func (q putting) Put(ctx context.Context, j job.Job) (bool, error) {
	*q.keys = append(*q.keys, fmt.Sprint(j.Kind, " ", j.Key))
	return q.Queue.Put(ctx, j)
}

// TestTurnsEndPutsAJobOverHTTP: the turn that ends over the threshold has the daemon put
// one job, under the document's key; a turn that goes on, or that ends below it, puts
// none. The queue does them by the document's figures. D2, D11
func TestTurnsEndPutsAJobOverHTTP(t *testing.T) {
	var keys []string
	var asked job.Options
	var queue job.Queue
	c := start(t, daemon.Config{Compactor: palimpsest.Config{Policy: policy.Workstream{ContextSize: 3_000, OutputReserve: 300, SafetyMargin: 300}}, Jobs: func(work job.Handlers, o *job.Options) (job.Queue, error) {
		asked = o.Defaults()
		queue = job.NewMemory(work, o)
		return putting{queue, &keys}, nil
	}}).client(t, "")
	t.Cleanup(func() { queue.Stop(context.Background()) })
	if asked.Workers != 2 || asked.Timeout != 5*time.Minute || asked.Attempts != 2 || asked.Pause(1) != 3*time.Second || asked.Pause(2) != 6*time.Second {
		t.Errorf("jobs are done by %+v", asked)
	}
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("The hall is bright. ", 260)
	for n, step := range []struct {
		news, answer neutral.Message
		puts         bool
	}{
		{said("user", "Count the boxes."), said("assistant", "I begin."), false},
		{said("user", "And then?"), calling("c1", "inspect", "{}"), false},
		{resulting("c1", "inspect", "ok"), calling("c2", "inspect", `{"why":"`+long+`"}`), false}, // the turn goes on
		{resulting("c2", "inspect", long), said("assistant", "All are counted."), true},
	} {
		if _, err := c.Prepare(t.Context(), "t", api.Any, api.Step{Base: &neutral.Prompt{Model: "m"}, Messages: []neutral.Message{step.news}, Window: 100_000, Output: 300}); err != nil {
			t.Fatal(err)
		}
		before := len(keys)
		if _, err := c.Finish(t.Context(), "t", api.Any, api.Answer{Messages: []neutral.Message{step.answer}}); err != nil {
			t.Fatal(err)
		}
		if puts := len(keys) > before; puts != step.puts {
			t.Errorf("step %d: %q were put", n, keys[before:])
		}
	}
	if !slices.Equal(keys, []string{palimpsest.CompactJob + " compact::t"}) {
		t.Errorf("%q were put", keys)
	}
}
