package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLadderOverHTTP: through the daemon a summary over results that were put aside
// names them, each name can be read, and a question of the user's about one brings its
// content back for that turn. A5, A10
func TestLadderOverHTTP(t *testing.T) {
	c := start(t, daemon.Config{Compactor: palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: 14_000}, Recall: &palimpsest.Recall{}}}).client(t, "")
	ctx := t.Context()
	if _, err := c.CreateThread(ctx, api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	step := api.Step{API: wire.Anthropic, Base: &neutral.Prompt{Model: "m", MaxOutput: 1_000}, Window: 100_000, Output: 1_000, Messages: []neutral.Message{said("user", "Look after the warehouses.")}}
	depots := []string{"frankfurt", "hamburg", "lisbon", "gdansk", "turin", "malmo", "leeds", "nantes"}
	prepare := func() *api.Prepared {
		t.Helper()
		p, err := c.Prepare(ctx, "t", api.Any, step)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	inForce := func() *api.Plan {
		t.Helper()
		p, err := c.Plan(ctx, "t", api.Any)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	named := map[string]bool{}
	for n, seen := 0, 0; n < 44; n++ {
		if n%4 == 0 && n > 0 {
			step.Messages = append(step.Messages, said("user", fmt.Sprintf("Now the one of %s.", depots[n%len(depots)])))
		}
		if p := prepare(); p.PlanVersion > seen {
			seen = p.PlanVersion
			for _, r := range inForce().Plan.Summarizations {
				for _, a := range r.Summary.Artifacts {
					named[a.ArtifactID] = true
				}
			}
		}
		id := fmt.Sprint("c", n)
		file := fmt.Sprintf("depot/%s%d.go", depots[n%len(depots)], n)
		call := neutral.Part{Type: neutral.ToolCallPart, CallID: id, Tool: "Read", Arguments: fmt.Sprintf(`{"file_path":%q}`, file)}
		if _, err := c.Finish(ctx, "t", api.Any, api.Answer{Messages: []neutral.Message{{Role: "assistant", Parts: []neutral.Part{call}}}}); err != nil {
			t.Fatal(err)
		}
		text := "package depot\n" + strings.Repeat(fmt.Sprintf("func rate%d(weight int) int { return weight*%d }\n", n, n), 90)
		step.Messages = []neutral.Message{{Role: "tool", Parts: []neutral.Part{{Type: neutral.ToolResultPart, CallID: id, Tool: "Read", Content: said("", text).Parts}}}}
	}
	if len(named) < 3 {
		t.Errorf("summaries name %d results: the test shows little", len(named))
	}
	for id := range named {
		arguments, err := json.Marshal(map[string]any{"artifact_id": id})
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.Answer(ctx, "t", neutral.Part{Type: neutral.ToolCallPart, CallID: "d", Tool: "read_artifact", Arguments: string(arguments)})
		if err != nil || !strings.Contains(fmt.Sprintf("%+v", m), "package depot") {
			t.Errorf("%s reads %.200v, %v", id, m, err)
		}
	}
	step.Messages = append(step.Messages, said("assistant", "All of them are looked after."))
	prepare()
	aside := inForce().Plan.Externalizations
	if len(aside) == 0 {
		t.Fatal("nothing is put aside")
	}
	_, file, _ := strings.Cut(aside[0].RehydrateHint, "(depot/")
	file = strings.TrimSuffix(file, ")")
	step.Messages = []neutral.Message{said("user", fmt.Sprintf("What rates did depot/%s have?", file))}
	body := string(prepare().Body)
	rate := "func rate" + strings.TrimLeft(strings.TrimSuffix(file, ".go"), "abcdefghijklmnopqrstuvwxyz") + "("
	if _, back, _ := strings.Cut(body, "[Rehydrated Content"); !strings.Contains(back, rate) {
		t.Errorf("a question about %s brings back %.300q", file, back)
	}
	log, err := c.Log(ctx, "t", "", 500)
	if err != nil || strings.Contains(fmt.Sprintf("%+v", log.Items), "[Rehydrated Content") {
		t.Errorf("what came back stands in the log, or it cannot be read: %v", err)
	}
}

// clerk is a model that writes down the decisions and the finished work which it reads,
// those of the summary before it included: the first three and the last six of each.
type clerk struct{ asked int }

func (*clerk) Model() string { return "clerk" }

var worthKeeping = regexp.MustCompile(`(I decided|I finished)[^\n".]*\.`)

func (k *clerk) Generate(_ context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	k.asked++
	var decided, finished []string
	for _, line := range worthKeeping.FindAllString(p.Messages[len(p.Messages)-1].Text(), -1) {
		list := &finished
		if strings.HasPrefix(line, "I decided") {
			list = &decided
		}
		if !slices.Contains(*list, line) {
			*list = append(*list, line)
		}
	}
	short := func(all []string) []string {
		if len(all) > 9 {
			return append(slices.Clone(all[:3]), all[len(all)-6:]...)
		}
		return all
	}
	decided, finished = short(decided), short(finished)
	reply := &llm.Reply{Stop: wire.StopEnd, Text: "#### Completed Work\n- " + strings.Join(finished, "\n- ") + "\n\n#### Key Technical Decisions\n- " + strings.Join(decided, "\n- ")}
	if o != nil && o.Schema != nil {
		doc, err := json.Marshal(map[string]any{"summary": map[string]any{"key_facts": decided, "conversation_flow": finished, "open_threads": []string{}}, "state_delta": map[string]any{}})
		if err != nil {
			return nil, err
		}
		reply.Text, reply.JSON = string(doc), string(doc)
	}
	reply.Message = thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: reply.Text}}}
	return reply, nil
}

// TestTenRoundsOverHTTP: through the daemon, in the prompt after the tenth compaction,
// the task, the rule and the latest request stand under each of the five policies and
// under auto and notes, and the first decisions, and the work that was finished last. F1, B9
func TestTenRoundsOverHTTP(t *testing.T) {
	const task, rule = "Please build the shop, shelf by shelf.", "Never touch the file vendor.lock."
	k := &clerk{}
	for name, p := range map[string]policy.Policy{
		"ladder": policy.Ladder{MaxInputTokens: 9_000}, "session": policy.Session{Model: k, ContextLimit: 18_000, Keep: 6}, "timeline": policy.Timeline{Model: k, MaxTokens: 7_000},
		"workstream": policy.Workstream{Model: k, ContextSize: 8_000}, "loop": policy.Loop{Model: k, ContextLimit: 8_000, MaxOutput: 1_000}, "auto": policy.Auto{}, "notes": policy.Notes{},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, daemon.Config{Compactor: palimpsest.Config{Policy: p}}).client(t, "")
			ctx := t.Context()
			if _, err := c.CreateThread(ctx, api.NewThread{ID: "t"}); err != nil {
				t.Fatal(err)
			}
			step := api.Step{API: wire.Chat, Base: &neutral.Prompt{Model: "m"}, Window: 100_000, Output: 1_000, Messages: []neutral.Message{said("user", task+" "+rule)}}
			if name == "auto" || name == "notes" {
				step.Budget = 7_000
			}
			rounds, latest, body := 0, "", ""
			n := 0
			for ; rounds < 10 && n < 400; n++ {
				if n > 0 {
					latest = fmt.Sprintf("Now build shelf %d of the shop, please.", n)
					step.Messages = append(step.Messages, said("user", latest))
				}
				made, err := c.Prepare(ctx, "t", api.Any, step)
				if err != nil {
					t.Fatal(err)
				}
				body = string(made.Body)
				if rounds = made.PlanVersion; rounds == 10 {
					break
				}
				words := fmt.Sprintf("I decided to paint shelf %d in colour %d, because the wall is bright.\nI finished shelf %d with %d boards and %d screws.\n", n, 100+n, n, 7*n, 13*n)
				if _, err := c.Finish(ctx, "t", api.Any, api.Answer{Messages: []neutral.Message{said("assistant", words+strings.Repeat("The boards lie on the floor of the hall. ", 20))}}); err != nil {
					t.Fatal(err)
				}
				step.Messages = nil
			}
			if rounds < 10 {
				t.Fatalf("%d rounds after %d turns", rounds, n)
			}
			want := []string{task, rule, latest, fmt.Sprintf("I finished shelf %d with", n-1)}
			if name != "ladder" && name != "auto" && name != "notes" { // there no model wrote
				want = append(want, "I decided to paint shelf 0 in colour 100", "I finished shelf 0 with")
			}
			if decisions := strings.Count(body, "I decided to paint shelf"); decisions < 9 && name != "notes" { // it tells of none but the newest
				t.Errorf("round 10, turn %d: %d decisions", n, decisions)
			}
			for _, s := range want {
				if !strings.Contains(body, s) {
					t.Errorf("round 10, turn %d: no %q in\n%s", n, s, body[:min(len(body), 6000)])
				}
			}
		})
	}
	if k.asked < 30 {
		t.Errorf("the model was asked %d times", k.asked)
	}
}
