package transcript

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readAISDK reads messages of Vercel's AI SDK: the ModelMessages that are sent
// (CoreMessages of version 4, too) and the UIMessages that applications keep.
// They stand in a list, in an object's "messages", or one on a line.
func readAISDK(j *importJob) ([]Transcript, error) {
	alone := newBuilder(j.name, j.report) // collects messages that stand one on a line
	found, err := j.eachValue(func(v value) ([]Transcript, error) {
		list := v.Result
		if v.Get("messages").IsArray() {
			list = v.Get("messages")
		}
		if !list.IsArray() {
			alone.aiSDK(v.line, v.Result)
			return nil, nil
		}
		b := newBuilder(v.name, j.report)
		b.Model = v.Get("model").String()
		if s := v.Get("system").Str; s != "" {
			b.System = append(b.System, prompt.System{Text: s, Role: "system"})
		}
		for m := range rawjson.Items(list) {
			b.aiSDK(v.line, m)
		}
		return b.transcripts()
	})
	if err != nil {
		return nil, err
	}
	last, err := alone.transcripts()
	return append(found, last...), err
}

// aiSDK adds a message: an answer of several steps becomes several.
func (b *builder) aiSDK(line int, m gjson.Result) {
	at := parseTime(m.Get("createdAt").String())
	content := m.Get("parts")
	if !content.IsArray() {
		content = m.Get("content")
	}
	switch role := thread.Role(m.Get("role").Str); role {
	case thread.Assistant, thread.Tool:
		if content.Type == gjson.String {
			b.addPart(line, at, textParts(content.Str)...)
		}
		for p := range rawjson.Items(content) {
			b.aiPart(line, at, p)
		}
		if !m.Get("parts").IsArray() {
			for p := range rawjson.Items(m.Get("toolInvocations")) {
				b.aiInvocation(line, at, p, p.Get("toolName").Str)
			}
		}
		if len(b.step.parts) == 0 && len(b.step.results) == 0 {
			b.add(line, at, thread.Plain, thread.Message{Role: role}) // it is counted
		}
		b.flush()
	case thread.System, thread.User:
		said := thread.Message{Role: role}
		if content.Type == gjson.String {
			said.Parts = textParts(content.Str)
		}
		for p := range rawjson.Items(content) {
			if !b.aiSilent(p.Get("type").Str) {
				said.Parts = append(said.Parts, readParts(p)...)
			}
		}
		if role == thread.System && len(b.messages) == 0 {
			b.System = append(b.System, prompt.System{Text: said.Text(), Role: string(role)})
			return
		}
		b.add(line, at, thread.Plain, said)
	default:
		b.report.unknown("role " + string(role))
		b.report.warn(line, "a message of the unknown role %q was left out", role)
	}
}

// aiSilent counts a part that no model is shown.
func (b *builder) aiSilent(kind string) bool {
	silent := kind == "step-start" || strings.HasPrefix(kind, "data-") || strings.HasPrefix(kind, "source-")
	if silent {
		b.report.skip(kind)
	}
	return silent
}

// aiPart adds a part of an answer.
func (b *builder) aiPart(line int, at time.Time, p gjson.Result) {
	kind := p.Get("type").Str
	name, tool := strings.CutPrefix(kind, "tool-")
	// What a model says after the results of its calls is another answer.
	if len(b.step.results) > 0 && len(b.step.parts) > 0 && !tool && kind != "dynamic-tool" {
		b.flush()
	}
	switch {
	case kind == "tool-call":
		b.addPart(line, at, b.aiCall(p, p.Get("toolName").Str))
	case kind == "tool-result":
		b.aiResult(line, at, p)
	case kind == "tool-invocation":
		b.aiInvocation(line, at, p.Get("toolInvocation"), p.Get("toolInvocation.toolName").Str)
	case kind == "dynamic-tool":
		b.aiInvocation(line, at, p, p.Get("toolName").Str)
	case tool && p.Get("toolCallId").Exists() && p.Get("state").Exists():
		b.aiInvocation(line, at, p, name)
	case !b.aiSilent(kind):
		b.addPart(line, at, readParts(p)...)
	}
}

func (b *builder) aiCall(p gjson.Result, name string) thread.ToolCall {
	input := p.Get("input")
	if !input.Exists() {
		input = p.Get("args")
	}
	return b.newCall(p.Get("toolCallId").Str, name, argumentsJSON(input))
}

// aiResult reads a tool-result part.
func (b *builder) aiResult(line int, at time.Time, p gjson.Result) {
	r := thread.ToolResult{CallID: b.openCallID(p.Get("toolCallId").Str), Tool: p.Get("toolName").Str}
	out := p.Get("output")
	kind, value := out.Get("type").Str, out.Get("value")
	r.Outcome = outcomeOf(p.Get("isError").Bool() || kind == "error-text" || kind == "error-json" || kind == "execution-denied")
	switch kind {
	case "text", "json", "error-text", "error-json":
	case "execution-denied":
		value = out.Get("reason")
	case "content":
		r.Content = readParts(value)
		b.addResult(line, at, toolMessage(r))
		return
	default:
		if value = p.Get("result"); !value.Exists() {
			value = out
		}
	}
	r.Structured, r.Content = structuredResult(value)
	b.addResult(line, at, toolMessage(r))
}

// aiInvocation reads a call and its result in one, as applications keep them.
func (b *builder) aiInvocation(line int, at time.Time, p gjson.Result, name string) {
	call := b.aiCall(p, name)
	b.addPart(line, at, call)
	r := thread.ToolResult{CallID: call.ID, Tool: name, Outcome: thread.Success}
	switch p.Get("state").Str {
	case "output-available":
		r.Structured, r.Content = structuredResult(p.Get("output"))
		if p.Get("preliminary").Bool() {
			r.Outcome = thread.Partial
		}
	case "result":
		r.Structured, r.Content = structuredResult(p.Get("result"))
	case "output-error":
		r.Outcome, r.Content = thread.Failure, textParts(p.Get("errorText").Str)
	case "output-denied":
		r.Outcome, r.Content = thread.Failure, textParts(p.Get("approval.reason").Str)
	default: // the call is still open
		return
	}
	b.addResult(line, at, toolMessage(r))
}
