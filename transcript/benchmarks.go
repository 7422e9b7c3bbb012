package transcript

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The files of benchmarks and evaluation frameworks hold messages much like
// those of the chat API, each with its own way to write calls and results.

// readChatLike reads the lists of messages in each value, or the list that it is.
func readChatLike(j *importJob) ([]Transcript, error) {
	return j.eachValue(func(v value) ([]Transcript, error) {
		var all []Transcript
		found := []gjson.Result{v.Result}
		if !v.IsArray() {
			found[0] = v.Get(j.list)
		}
		if j.Format == tau2Format && !found[0].IsArray() {
			found = v.Get("simulations.#.messages").Array()
		}
		// Read once for the whole value: a file may hold many lists.
		model, title := v.Get("model").String(), firstName(v.Result, "sample", "id", "task_id")
		if !v.Get("model").Exists() {
			model = v.Get("info.agent_info.llm").String()
		}
		for n, list := range found {
			b := j.newBuilder(v)
			if len(found) > 1 {
				b.Name += "/" + strconv.Itoa(n+1)
			}
			b.Model, b.Title = model, title
			for m := range rawjson.Items(list) {
				chatMessage(b, m)
			}
			t, err := b.build()
			if err != nil {
				return nil, err
			}
			if t.Thread.Len() > 0 || len(t.System) > 0 {
				all = append(all, t)
			} else {
				j.report.warn(v.line, "holds no conversation: %s", describeValue(v.Result))
			}
		}
		return all, nil
	})
}

func chatMessage(b *builder, m gjson.Result) {
	b.time = parseTime(m.Get("timestamp").String())
	if m.Get("requestor").Str == "user" { // tau2-bench: the agent sees nothing of the user's tools
		b.report.skip("result for the user")
		return
	}
	content := readParts(m.Get("content"))
	switch role := m.Get("role").Str; role {
	case "system", "developer":
		if len(b.messages) > 0 {
			b.say(thread.System, thread.Plain, content...)
			return
		}
		b.addSystem(role, partsText(content))
	case "user":
		for range rawjson.Items(m.Get("tool_calls")) {
			b.report.skip("call by the user")
		}
		kind := thread.Plain
		if b.actedInText { // the result of the action
			kind = thread.Injected
		}
		b.say(thread.User, kind, content...)
	case "assistant":
		calls := 0
		for c := range rawjson.Items(m.Get("tool_calls")) {
			name, args := c.Get("function"), c.Get("arguments")
			switch {
			case name.IsObject():
				name, args = name.Get("name"), name.Get("arguments")
			case !name.Exists():
				name = c.Get("name")
			}
			content = append(content, b.newCall(c.Get("id").Str, name.Str, argumentsJSON(args)))
			calls++
		}
		b.actedInText = m.Get("action").Exists() && calls == 0
		b.say(thread.Assistant, thread.Plain, content...)
	case "tool":
		r := thread.ToolResult{Tool: m.Get("function").Str, Content: content}
		r.CallID = b.openCallID(firstText(m, "tool_call_id", "tool_call_ids.0", "id"))
		if e := m.Get("error"); e.Type == gjson.True || e.IsObject() {
			r.Outcome = thread.Failure
			if len(r.Content) == 0 {
				r.Content = textParts(e.Get("message").Str)
			}
		}
		b.answer(r)
	default:
		b.unknownRole(role)
	}
}

// readToolBench reads an answer of ToolBench: the last list of messages that the search was
// trained on, which is its final path.
func readToolBench(j *importJob) ([]Transcript, error) {
	return j.eachValue(func(v value) ([]Transcript, error) {
		lists := v.Get("answer_generation.train_messages").Array()
		if len(lists) == 0 {
			j.report.warn(v.line, "holds no conversation: %s", describeValue(v.Result))
			return nil, nil
		}
		for range lists[1:] {
			j.report.skip("train_messages before the last")
		}
		t, err := j.messages(v, "answer_generation.train_messages", lists[len(lists)-1].Raw)
		if err != nil {
			return nil, err
		}
		t.Title = clip.Line(v.Get("answer_generation.query").String(), 80)
		for f := range rawjson.Items(v.Get("answer_generation.function")) {
			t.Tools = append(t.Tools, readTool(f))
		}
		return []Transcript{t}, nil
	})
}
