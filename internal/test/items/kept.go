package items

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Lost says what of a request is not in what is sent in its place: that it is taken, its instructions, its set of
// tools, and what still runs. It is nil if nothing is missing.
func Lost(codec wire.Codec, own, sent string) error {
	mine, err := codec.Decode(own)
	if err != nil {
		return err
	}
	theirs, err := codec.Decode(sent)
	if err != nil {
		return err
	}
	refused := broken(codec, own) // a call whose result is late is refused while it can be seen
	for rule, problem := range broken(codec, sent) {
		if refused[rule] == "" {
			return fmt.Errorf("it would be refused: %s", problem)
		}
	}
	return lost(mine, theirs)
}

func lost(mine, theirs *prompt.Prompt) error {
	want, got := instructions(mine.Messages), instructions(theirs.Messages)
	got = slices.DeleteFunc(got, func(text string) bool { return !slices.Contains(want, text) }) // a summary, perhaps
	if !slices.Equal(want, got) {
		return fmt.Errorf("the instructions\n%q\nbecame\n%q", want, got)
	}
	_, before := toolsAfter(mine.Messages, map[string]bool{})
	tools, _ := toolsAfter(mine.Messages, before)
	if got, _ := toolsAfter(theirs.Messages, before); !maps.Equal(tools, got) {
		return fmt.Errorf("the tools %v became %v", tools, got)
	}
	th, err := thread.New("items").Append(mine.Messages...)
	if err != nil {
		return err
	}
	pairs, shown := thread.Pair(th), map[string]bool{}
	for i := range theirs.Messages {
		for _, text := range texts(&theirs.Messages[i]) {
			shown[text] = true
		}
	}
	for i := range mine.Messages {
		for _, text := range texts(&mine.Messages[i]) {
			if pairs.Open(i) && !shown[text] {
				return fmt.Errorf("message %d is of a call that runs, and is not sent as it was: %s", i, text)
			}
		}
	}
	return nil
}

// broken are the rules that a request breaks, with the first place.
func broken(codec wire.Codec, body string) map[string]string {
	list := map[string]string{}
	for _, problem := range codec.Validate([]byte(body)) {
		if !problem.Advice && list[problem.Rule] == "" {
			list[problem.Rule] = problem.Error()
		}
	}
	return list
}

// toolsAfter are the tools that are there after the changes among the messages, of those that were there before
// them, and what was before the first change of each, which undoes it.
func toolsAfter(messages []thread.Message, before map[string]bool) (after, undone map[string]bool) {
	after, undone = maps.Clone(before), map[string]bool{}
	for i := range messages {
		changes, _ := hosted.ToolChanges(&messages[i])
		for _, c := range changes {
			if _, known := undone[c.Tool]; !known {
				undone[c.Tool] = !c.Adds
			}
			after[c.Tool] = c.Adds
		}
	}
	return after, undone
}

// instructions are what stands, each at its last place, but changes of tools.
func instructions(messages []thread.Message) (list []string) {
	for i := range messages {
		m := &messages[i]
		if _, changes := hosted.ToolChanges(m); changes && len(m.Parts) > 0 {
			continue
		}
		all := texts(m)
		for n, p := range m.Parts {
			part := thread.Message{Role: m.Role, Parts: []thread.Part{p}}
			if m.Kind == thread.Plain && part.IsInstruction() {
				list = append(slices.DeleteFunc(list, func(text string) bool { return text == all[n] }), all[n])
			}
		}
	}
	return list
}

// cacheMark is what a prompt marks blocks with.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// texts are what the parts of a message say, as they were read, without cache marks.
func texts(m *thread.Message) (list []string) {
	for _, p := range m.Parts {
		text := strings.ReplaceAll(p.From().Raw, cacheMark, "")
		if t, ok := p.(thread.Text); ok {
			text = t.Text
		}
		list = append(list, string(m.Role)+"\n"+text)
	}
	return list
}
