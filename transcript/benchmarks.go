package transcript

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// The files of benchmarks and evaluation frameworks hold messages much like
// those of the chat API, each with its own way to write calls and results.

// readInspect reads samples of inspect_ai: an object with messages, or the list
// alone, one or more a file.
func readInspect(j *job) ([]Transcript, error) {
	return j.chatLike(func(v value) []gjson.Result {
		if v.IsArray() {
			return []gjson.Result{v.Result}
		}
		return []gjson.Result{v.Get("messages")}
	})
}

// readTau2 reads simulations of tau2-bench.
func readTau2(j *job) ([]Transcript, error) {
	return j.chatLike(func(v value) []gjson.Result {
		if v.IsArray() {
			return []gjson.Result{v.Result}
		}
		if messages := v.Get("messages"); messages.IsArray() {
			return []gjson.Result{messages}
		}
		return v.Get("simulations.#.messages").Array()
	})
}

// readSWEAgent reads a trajectory of SWE-agent: its history. The steps in
// "trajectory" say the same again.
func readSWEAgent(j *job) ([]Transcript, error) {
	return j.chatLike(func(v value) []gjson.Result {
		if v.IsArray() {
			return []gjson.Result{v.Result}
		}
		return []gjson.Result{v.Get("history")}
	})
}

// chatLike reads the lists of messages that lists finds in each value.
func (j *job) chatLike(lists func(value) []gjson.Result) ([]Transcript, error) {
	return j.values(func(v value) ([]Transcript, error) {
		var all []Transcript
		found := lists(v)
		// What is said of the whole value is looked for once: a file may hold many lists.
		model, title := v.Get("model").String(), ""
		if !v.Get("model").Exists() {
			model = v.Get("info.agent_info.llm").String()
		}
		for _, key := range []string{"sample", "id", "task_id"} {
			if f := v.Get(key); f.Type == gjson.String || f.Type == gjson.Number {
				title = f.String()
				break
			}
		}
		for n, list := range found {
			name := v.name
			if len(found) > 1 {
				name += "/" + strconv.Itoa(n+1)
			}
			b := newBuilder(name, j.report)
			b.model = model
			for m := range rawjson.Items(list) {
				b.chatLike(v.line, m)
			}
			t, err := b.done()
			if err != nil {
				return nil, err
			}
			if title != "" {
				t.Title = title
			}
			if t.Thread.Len() > 0 || len(t.System) > 0 {
				all = append(all, t)
			} else {
				j.report.warn(v.line, "holds no conversation: %s", looks(v.Result))
			}
		}
		return all, nil
	})
}

// chatLike adds one message.
func (b *builder) chatLike(line int, m gjson.Result) {
	at := moment(m.Get("timestamp").String())
	content := parts(m.Get("content"))
	switch role := m.Get("role").Str; role {
	case "system", "developer":
		if len(b.messages) == 0 {
			for _, p := range content {
				if t, ok := p.(thread.Text); ok {
					b.system = append(b.system, prompt.System{Text: t.Text, Role: role})
				}
			}
			return
		}
		b.add(line, at, thread.Plain, thread.Message{Role: thread.System, Parts: content})
	case "user":
		kind := thread.Plain
		if b.acts { // what the action gave back
			kind = thread.Injected
		}
		b.add(line, at, kind, thread.Message{Role: thread.User, Parts: content})
	case "assistant":
		msg := thread.Message{Role: thread.Assistant, Parts: content}
		for c := range rawjson.Items(m.Get("tool_calls")) {
			name, args := c.Get("function"), c.Get("arguments")
			switch {
			case name.IsObject():
				name, args = name.Get("name"), name.Get("arguments")
			case !name.Exists():
				name = c.Get("name")
			}
			msg.Parts = append(msg.Parts, b.call(c.Get("id").Str, name.Str, arguments(args)))
		}
		b.acts = m.Get("action").Exists() && len(msg.Calls()) == 0
		b.add(line, at, thread.Plain, msg)
	case "tool":
		r := thread.ToolResult{Tool: m.Get("function").Str, Outcome: thread.Success, Content: content}
		r.CallID = b.answers(first(m, "tool_call_id", "tool_call_ids.0", "id"))
		if e := m.Get("error"); e.Type == gjson.True || e.IsObject() {
			r.Outcome = thread.Failure
			if message := e.Get("message").Str; message != "" && len(r.Content) == 0 {
				r.Content = text(message)
			}
		}
		b.add(line, at, thread.Plain, answer(r))
	default:
		b.report.unknown("role " + role)
		b.report.warn(line, "a message of the unknown role %q was left out", role)
	}
}

// readToolBench reads an answer of ToolBench: the last list of messages that
// the search was trained on, which is the path that it took in the end.
func readToolBench(j *job) ([]Transcript, error) {
	return j.values(func(v value) ([]Transcript, error) {
		lists := v.Get("answer_generation.train_messages").Array()
		if len(lists) == 0 {
			j.report.warn(v.line, "holds no conversation: %s", looks(v.Result))
			return nil, nil
		}
		for range lists[1:] {
			j.report.skip("train_messages before the last")
		}
		api := provider{list: "messages", messages: openai.DecodeChatMessages}
		t, err := j.messages(api, v, "answer_generation.train_messages", lists[len(lists)-1].Raw)
		if err != nil {
			return nil, err
		}
		t.Title = clip.Line(v.Get("answer_generation.query").String(), 80)
		for f := range rawjson.Items(v.Get("answer_generation.function")) {
			t.Tools = append(t.Tools, prompt.Tool{
				Name: f.Get("name").Str, Description: f.Get("description").Str, Schema: f.Get("parameters").Raw,
			})
		}
		return []Transcript{t}, nil
	})
}
