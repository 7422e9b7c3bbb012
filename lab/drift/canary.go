package drift

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// canaries are facts that are planted in a conversation, in groups of a rule of the
// user, a decision with its reason, a value in a tool's result, and an edited file.
type canaries struct{ list []canary }

// canary is one fact.
type canary struct {
	value string   // what must stand in the prompt
	near  []string // one of these beside it
	acts  []string
	ask   string // what a lookup asks
	pos   int    // in its group: the message that holds it
}

// The kinds of canaries, in the order of a group; the groups make 52.
const (
	canaryKinds  = 4
	canaryGroups = 13
)

var canaryNames = [canaryKinds]string{"rule of the user", "decision and reason", "value in a result", "edited file"}

// canaryWords are words that no conversation holds.
var canaryWords = []string{"kestrel", "bandicoot", "osprey", "heron", "gannet", "lapwing", "dunlin", "siskin", "tapir", "ocelot", "quoll", "numbat", "jerboa"}

// newCanaries makes the canaries of a session; the same name gives the same.
func newCanaries(name string) canaries {
	sum := fnv.New64a()
	sum.Write([]byte(name))
	rng := rand.New(rand.NewPCG(sum.Sum64(), 17))
	var c canaries
	for n := range canaryGroups {
		word := fmt.Sprintf("%s%d", canaryWords[n], 10+rng.IntN(90))
		rule, choice, file := "vault_"+word, "mode_"+word, "src/"+word+"/codec.go"
		key, value := "limit_"+word, fmt.Sprint(100_000+rng.IntN(900_000))
		c.list = append(c.list,
			canary{value: rule, near: []string{"Never", "never", "not", "NEVER"}, ask: "what must never be touched or deployed", pos: 0},
			canary{value: choice, near: []string{"replays_" + word}, ask: "decided on which mode because of replays_" + word, pos: 1},
			canary{value: value, near: []string{key}, ask: "value of " + key, pos: 2},
			canary{value: file, acts: references.ActWords[toolclass.Edit], ask: "which codec of " + word + " was edited", pos: 3},
		)
	}
	return c
}

// groupLength is how many messages a group has.
const groupLength = 5

// group are the messages of a group.
func (c *canaries) group(n int) []thread.Message {
	list := c.list[n*canaryKinds:]
	rule, choice, value, file := list[0], list[1], list[2], list[3]
	call := func(kind, name, argument string) thread.ToolCall {
		return thread.ToolCall{ID: c.callID(n, kind), Name: name, Arguments: `{"file_path":"` + argument + `"}`}
	}
	result := func(kind, tool, text string) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: c.callID(n, kind), Tool: tool, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	return []thread.Message{
		{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "One more thing: never touch or deploy " + rule.value + "."}}},
		{Role: thread.Assistant, Parts: []thread.Part{
			thread.Text{Text: "I decided on " + choice.value + ", because " + choice.near[0] + " must stay cheap."},
			call("read", "Read", "conf/"+choice.value+".toml"),
		}},
		result("read", "Read", "# limits\n"+value.near[0]+" = "+value.value+"\n"),
		{Role: thread.Assistant, Parts: []thread.Part{call("edit", "Edit", file.value)}},
		result("edit", "Edit", "ok"),
	}
}

func (c *canaries) callID(n int, kind string) string { return fmt.Sprintf("canary-%d-%s", n, kind) }

// lastGroup is the position behind the last group in a thread.
func (c *canaries) lastGroup(t *thread.Thread) int {
	last := -1
	for i, m := range t.All() {
		if r, ok := m.Result(); ok && strings.HasPrefix(r.CallID, "canary-") {
			last = i
		}
	}
	return last
}

// plant makes the canaries references of a session that holds them.
func (c *canaries) plant(s *references.Session) []references.Need {
	var all []references.Need
	at := map[string]int{} // the first position of each group's call
	for i, m := range s.Thread.All() {
		for _, call := range m.Calls() {
			if _, ok := at[call.ID]; !ok {
				at[call.ID] = i
			}
		}
	}
	for i, x := range c.list {
		asked, ok := at[c.callID(i/canaryKinds, "read")]
		if !ok {
			continue
		}
		pos := asked - 1 + x.pos
		id := int32(len(s.Refs) + i)
		s.Find.Add(id, x.value)
		r := &references.Reference{Ident: ident.Ident{Norm: x.value, Surface: x.value}, Near: x.near, Acts: x.acts, Origin: "tool", Seen: []references.Sighting{{Pos: pos, Strict: true}}}
		all = append(all, references.Need{Reference: r, ID: id, Ask: x.ask})
	}
	return all
}

func (c *canaries) kindOf(i int) int { return i % canaryKinds }

// mutated counts the places in text of the policy where a canary stands, and those where
// it has another number than was planted, after the key of a value or in a name.
func (c *canaries) mutated(s *references.Shown) (told, mutated int) {
	for i := range s.Other {
		text, _ := references.MessageLines(&s.Other[i])
		for _, x := range c.list {
			lead, value := x.lead()
			for rest := text; ; {
				at := strings.Index(rest, lead)
				if at < 0 {
					break
				}
				rest = rest[at+len(lead):]
				after := strings.TrimLeft(rest[:min(len(rest), 60)], " \t\"'`:=")
				if after == "" || !isFigure(after[0]) {
					continue // the key alone, or cut off: nothing is told
				}
				told++
				if !strings.HasPrefix(after, value) || len(after) > len(value) && isFigure(after[len(value)]) {
					mutated++
				}
			}
		}
	}
	return told, mutated
}

// lead is the text that a canary is recognized by, and the number that must follow it.
func (x *canary) lead() (lead, value string) {
	if len(x.near) > 0 && strings.HasPrefix(x.near[0], "limit_") {
		return x.near[0], x.value
	}
	end := strings.IndexAny(x.value, "0123456789")
	figures := len(x.value) - end - len(strings.TrimLeft(x.value[end:], "0123456789"))
	return x.value[:end], x.value[end : end+figures]
}

func isFigure(c byte) bool { return c >= '0' && c <= '9' }
