package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// talk is a conversation with a running daemon in the neutral form, step by step.
type talk struct {
	t    *testing.T
	host *host
	*api.Client
	step api.Step // around the messages, the same each time
	told *heard
	db   store.DB
	at   time.Time // the clock of the daemon stands still
}

// talking begins a conversation.
func talking(t *testing.T, c palimpsest.Config, step api.Step) *talk {
	t.Helper()
	k := &talk{t: t, step: step, told: &heard{}, db: mem.New(), at: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	if k.step.Base == nil {
		k.step.Base = &neutral.Prompt{Model: "m", System: []neutral.System{{Text: "You look after a shop."}}}
	}
	c.Events = k.told
	k.connect(c)
	if _, err := k.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	return k
}

// connect goes on with a daemon that is started anew on what was kept.
func (k *talk) connect(c palimpsest.Config) {
	k.t.Helper()
	c.Now = func() time.Time { return k.at }
	k.host = start(k.t, daemon.Config{Store: k.db, Compactor: c, Now: c.Now, Limits: daemon.Limits{Rate: 100_000}})
	k.Client = k.host.client(k.t, "")
}

// ask prepares a step with what is new.
func (k *talk) ask(news ...neutral.Message) *api.Prepared {
	k.t.Helper()
	step := k.step
	step.Messages = news
	p, err := k.Prepare(k.t.Context(), "t", api.Any, step)
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

// answer adds what the model said.
func (k *talk) answer(messages ...neutral.Message) {
	k.t.Helper()
	if _, err := k.Finish(k.t.Context(), "t", api.Any, api.Answer{Messages: messages}); err != nil {
		k.t.Fatal(err)
	}
}

// add puts messages into the log without asking anything.
func (k *talk) add(messages ...neutral.Message) {
	k.t.Helper()
	if _, err := k.Append(k.t.Context(), "t", api.Any, api.Append{Messages: messages}); err != nil {
		k.t.Fatal(err)
	}
}

// inForce is the plan in force.
func (k *talk) inForce() *plan.Plan {
	k.t.Helper()
	p, err := k.Plan(k.t.Context(), "t", api.Any)
	if err != nil {
		k.t.Fatal(err)
	}
	return p.Plan
}

// log is everything that was said, with the place of each message.
func (k *talk) log() (all []neutral.Message, at map[thread.ID]int) {
	k.t.Helper()
	cursor := ""
	for {
		page, err := k.Log(k.t.Context(), "t", cursor, 500)
		if err != nil {
			k.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	at = map[thread.ID]int{}
	for i := range all {
		at[thread.ID(all[i].ID)] = i
	}
	return all, at
}

// calling is an answer of the model that calls a tool, resulting what the tool said.
func calling(id, tool, arguments string) neutral.Message {
	return neutral.Message{Role: "assistant", Parts: []neutral.Part{{Type: neutral.ToolCallPart, CallID: id, Tool: tool, Arguments: arguments}}}
}

func resulting(id, tool, text string) neutral.Message {
	return neutral.Message{Role: "tool", Parts: []neutral.Part{{Type: neutral.ToolResultPart, CallID: id, Tool: tool, Content: said("", text).Parts}}}
}

// textOf is all that a message says, results included.
func textOf(m neutral.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
		for _, c := range p.Content {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

// textsOf are the texts of messages, each behind its role.
func textsOf(messages []neutral.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, textOf(m))
	}
	return b.String()
}

// o200k counts as the daemon does, where nothing else is said.
func o200k(t *testing.T) *token.Counter {
	t.Helper()
	c, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
