package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// openHandsLog reads an OpenHands conversation. Its log holds events, not messages: each
// call of an answer is an event of its own, and results may come between the calls.
type openHandsLog struct {
	*builder
	response string            // the provider's id of the answer that is put together
	causes   map[string]string // call ids by the ids of their events
	remote   []openHandsACP    // calls of another agent since the last message
}

// readOpenHands reads events of OpenHands: a list, an object that holds one, or one a
// line; those of the agent SDK (with a kind) and those before it (with an action or an
// observation).
func readOpenHands(j *importJob) ([]Transcript, error) {
	lines := j.openHands(value{name: j.name}) // collects events that stand one on a line
	found, err := j.eachValue(func(v value) ([]Transcript, error) {
		if v.IsObject() && !openHandsEvents(v.Result).IsArray() {
			lines.event(v.line, v.Result)
			return nil, nil
		}
		s := j.openHands(v)
		s.Title = v.Get("instance_id").String()
		for e := range rawjson.Items(openHandsEvents(v.Result)) {
			if !e.IsArray() {
				s.event(v.line, e)
			}
			for e := range rawjson.Items(e) { // an action and its observation
				s.event(v.line, e)
			}
		}
		return s.finish()
	})
	if err != nil {
		return nil, err
	}
	all, err := lines.finish()
	return append(all, found...), err
}

func (j *importJob) openHands(v value) *openHandsLog {
	return &openHandsLog{builder: j.newBuilder(v), causes: map[string]string{}}
}

func (s *openHandsLog) finish() ([]Transcript, error) {
	s.flush()
	return s.transcripts()
}

// openHandsEvents is the list of events that a value is or holds.
func openHandsEvents(v gjson.Result) gjson.Result {
	if v.IsArray() {
		return v
	}
	for _, key := range []string{"history", "trajectory", "events", "items"} {
		if list := v.Get(key); list.IsArray() {
			return list
		}
	}
	return gjson.Result{}
}

func isOpenHandsEvent(v gjson.Result) bool {
	if !v.IsObject() || v.Get("role").Exists() {
		return false
	}
	if kind := v.Get("kind").Str; known["openhands"][kind] {
		return v.Get("source").Exists() || v.Get("tool_call_id").Exists() || v.Get("timestamp").Exists()
	}
	return v.Get("source").Exists() &&
		(v.Get("action").Type == gjson.String && v.Get("args").Exists() || v.Get("observation").Type == gjson.String && v.Get("content").Exists())
}

// isOpenHands reports whether a value is an event, or is or holds a list of events. It looks at
// a few, because an event of a later version may come first.
func isOpenHands(v gjson.Result) bool {
	if isOpenHandsEvent(v) {
		return true
	}
	n := 0
	for e := range rawjson.Items(openHandsEvents(v)) {
		if e.IsArray() {
			e = e.Get("0")
		}
		if isOpenHandsEvent(e) {
			return true
		}
		if n++; n == 8 {
			break
		}
	}
	return false
}

func (s *openHandsLog) event(line int, e gjson.Result) {
	stamp := e.Get("timestamp").Str
	s.at(line, cmp.Or(parseTime(stamp), parseTime(strings.TrimSpace(stamp)+"Z"))) // without a zone it counts as UTC
	switch kind := e.Get("kind").Str; {
	case kind == "SystemPromptEvent":
		s.report.skip(kind)
		s.addSystem("system", e.Get("system_prompt.text").Str)
		s.addSystem("system", e.Get("dynamic_context.text").Str)
		s.setTools(e.Get("tools"))
	case kind == "MessageEvent":
		s.message(e)
	case kind == "ActionEvent":
		name := e.Get("tool_name").Str
		call := s.newCall(e.Get("tool_call_id").Str, name, openHandsArguments(e))
		s.call(e.Get("llm_response_id").Str, append(openHandsThoughts(e), readParts(e.Get("thought"))...), call)
	case kind == "ObservationEvent":
		o := e.Get("observation")
		r := thread.ToolResult{CallID: e.Get("tool_call_id").Str, Tool: e.Get("tool_name").Str, Content: readParts(o.Get("content"))}
		if len(r.Content) == 0 {
			r.Content = openHandsOutput(o)
		}
		r.Content = append(r.Content, readParts(e.Get("extended_content"))...)
		s.result(r, o.Get("is_error").Bool() || o.Get("exit_code").Int() > 0)
	case kind == "AgentErrorEvent", kind == "UserRejectObservation":
		why := e.Get("error").Str
		if reason := e.Get("rejection_reason").Str; reason != "" {
			why = "Action rejected: " + reason // as the model is told
		}
		r := thread.ToolResult{CallID: e.Get("tool_call_id").Str, Tool: e.Get("tool_name").Str, Content: textParts(why)}
		s.result(r, true)
	case kind == "ACPToolCallEvent":
		s.acp(e)
	case kind == "UnknownEvent" && e.Get("original_data.kind").Str != kind && e.Get("original_data").IsObject():
		s.event(line, e.Get("original_data")) // of a tool that the program did not know any more
	case kind == "Condensation":
		s.addCondensation(e.Get("summary").Str)
	case kind == "CondensationSummaryEvent" && !s.summarizedAs(e.Get("summary").Str):
		s.addCondensation(e.Get("summary").Str)
	case known["openhands"][kind]:
		s.report.skip(kind)
	case kind != "" && !e.Get("action").Exists() && !e.Get("observation").Exists():
		s.report.unknown(kind)
	case e.Get("action").Type == gjson.String:
		s.action(e)
	case e.Get("observation").Type == gjson.String:
		s.observation(e)
	default:
		s.report.unknown("event without a kind")
	}
}

// setTools reads tools in the form of the chat API.
func (s *openHandsLog) setTools(tools gjson.Result) {
	for t := range rawjson.Items(tools) {
		if f := t.Get("function"); f.Get("name").Str != "" {
			s.Tools = append(s.Tools, readTool(f))
		}
	}
}

// message adds a message. What the harness adds to a user's words is a message of its
// own.
func (s *openHandsLog) message(e gjson.Result) {
	s.flush()
	m := e.Get("llm_message")
	said := readParts(m.Get("content"))
	if m.Get("role").Str == "assistant" || m.Get("role").Str == "" && e.Get("source").Str == "agent" {
		s.say(thread.Assistant, thread.Plain, append(openHandsThoughts(m), said...)...)
		return
	}
	kind := thread.Plain
	if e.Get("source").Str != "user" {
		kind = thread.Injected
	}
	s.say(thread.User, kind, said...)
	s.sayAny(thread.Injected, readParts(e.Get("extended_content")))
}

// call adds a call to the answer that it belongs to, or begins one.
func (s *openHandsLog) call(response string, thought []thread.Part, call thread.ToolCall) {
	if response == "" || response != s.response || len(s.step.parts) == 0 {
		s.flush()
		s.response = response
		s.addPart(thought...)
	}
	s.addPart(call)
}

// result adds the result of a call after the answer that asked for it.
func (s *openHandsLog) result(r thread.ToolResult, failed bool) {
	r.Outcome = outcomeOf(failed)
	asked := thread.Message{Parts: s.step.parts}
	if slices.ContainsFunc(asked.Calls(), func(c thread.ToolCall) bool { return c.ID == r.CallID }) {
		s.addResult(r)
		return
	}
	s.flush()
	s.answer(r)
}

// flush adds the answer that was put together, and the calls of another agent.
func (s *openHandsLog) flush() {
	s.flushACP()
	s.builder.flush()
	s.response = ""
}

// summarizedAs reports whether this is the last summary: a file may hold one twice.
func (s *openHandsLog) summarizedAs(summary string) bool {
	n := len(s.messages)
	return n > 0 && s.messages[n-1].Kind == thread.Recap && s.messages[n-1].Text() == summary
}

// addCondensation adds a compaction, and its summary where there is one.
func (s *openHandsLog) addCondensation(summary string) {
	s.flush()
	s.summarized(Compaction{}, textParts(summary)...)
}

// action reads an action from before the agent SDK. If it has no call of the provider, the model
// wrote it as text, and its event's name stands for the tool.
func (s *openHandsLog) action(e gjson.Result) {
	args, metadata := e.Get("args"), e.Get("tool_call_metadata")
	response := metadata.Get("model_response")
	s.Model = cmp.Or(response.Get("model").Str, s.Model)
	said := response.Get("choices.0.message")
	thought := append(openHandsThoughts(said), readParts(said.Get("content"))...)
	if len(thought) == 0 {
		thought = textParts(args.Get("thought").Str)
	}
	switch kind := e.Get("action").Str; {
	case kind == "system":
		s.report.skip("action/system")
		s.addSystem("system", args.Get("content").Str)
		s.setTools(args.Get("tools"))
	case kind == "message":
		s.flush()
		role, how := thread.User, thread.Plain
		switch e.Get("source").Str {
		case "agent":
			role = thread.Assistant
		case "environment":
			how = thread.Injected
		}
		s.say(role, how, append(textParts(args.Get("content").Str), imageParts(args.Get("image_urls"))...)...)
	case kind == "finish": // nothing answers it
		s.flush()
		if last := firstText(args, "final_thought", "outputs.content", "thought"); last != "" {
			thought = textParts(last)
		}
		s.say(thread.Assistant, thread.Plain, thought...)
	case kind == "condensation":
		s.addCondensation(args.Get("summary").Str)
	case known["openhands before"][kind]:
		s.report.skip("action/" + kind)
	case e.Get("source").Str != "agent":
		s.report.skip("action/" + kind + " of the " + e.Get("source").Str)
	default:
		name, id, arguments := cmp.Or(metadata.Get("function_name").Str, kind), metadata.Get("tool_call_id").Str, withoutKey(args, "thought")
		for c := range rawjson.Items(said.Get("tool_calls")) {
			if c.Get("id").Str == id {
				arguments = c.Get("function.arguments").Str
			}
		}
		call := s.newCall(id, name, arguments)
		s.causes[e.Get("id").String()] = call.ID
		s.call(response.Get("id").Str, thought, call)
	}
}

func (s *openHandsLog) observation(e gjson.Result) {
	kind, content := e.Get("observation").Str, textParts(e.Get("content").Str)
	id := cmp.Or(e.Get("tool_call_metadata.tool_call_id").Str, s.causes[e.Get("cause").String()])
	switch {
	case known["openhands before"][kind]:
		s.report.skip("observation/" + kind)
	case id != "":
		failed := kind == "error" || kind == "user_rejected" || e.Get("extras.metadata.exit_code").Int() > 0 || e.Get("extras.exit_code").Int() > 0
		s.result(thread.ToolResult{CallID: id, Content: content}, failed)
	case kind == "error":
		s.flush()
		s.say(thread.User, thread.Injected, content...)
	default:
		s.report.skip("observation/" + kind + " of no call")
	}
}

// openHandsArguments are the arguments of a call as the model wrote them, or else as OpenHands
// parsed them.
func openHandsArguments(e gjson.Result) string {
	for _, key := range []string{"tool_call.arguments", "tool_call.function.arguments"} {
		if a := e.Get(key); a.Exists() {
			return argumentsJSON(a)
		}
	}
	if a := e.Get("action"); a.IsObject() {
		return withoutKey(a, "kind")
	}
	return "{}"
}

// withoutKey writes an object without one of its members.
func withoutKey(v gjson.Result, key string) string {
	var o rawjson.Object
	for name, f := range rawjson.Members(v) {
		if name != key {
			o.Raw(name, f.Raw)
		}
	}
	return o.String()
}

// openHandsThoughts are the blocks of reasoning beside an answer.
func openHandsThoughts(v gjson.Result) []thread.Part {
	thought := readParts(v.Get("thinking_blocks"))
	// Of an item of the Responses API only the text is of use: it is encrypted for a prompt
	// that nobody has any more.
	for _, key := range []string{"reasoning_content", "responses_reasoning_item.summary", "responses_reasoning_item.content"} {
		var said []string
		v.Get(key).ForEach(func(_, t gjson.Result) bool {
			said = append(said, t.Str)
			return true
		})
		if all := strings.Join(said, "\n\n"); all != "" && len(thought) == 0 {
			thought = append(thought, thread.Reasoning{Text: all})
		}
	}
	return thought
}

// openHandsOutput is the text of an observation without a list of contents.
func openHandsOutput(o gjson.Result) []thread.Part {
	if o.IsObject() {
		return textParts(firstText(o, "output", "text", "error", "message"))
	}
	return readParts(o)
}
