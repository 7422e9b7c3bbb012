package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readAISDK reads messages of Vercel's AI SDK: the ModelMessages that are sent
// (CoreMessages in version 4) and the UIMessages that applications keep. They come as a
// list, in an object's "messages", or one on a line.
func readAISDK(j *importJob) ([]Transcript, error) {
	alone := j.newBuilder(value{name: j.name}) // for messages that come one on a line
	found, err := j.eachConversation(func(b *builder, v value) {
		list := v.Result
		if v.Get("messages").IsArray() {
			list = v.Get("messages")
		}
		if !list.IsArray() {
			alone.line = v.line
			aiSDKMessage(alone, v.Result)
			return
		}
		b.Model = v.Get("model").String()
		b.addSystem("system", v.Get("system").Str)
		for m := range rawjson.Items(list) {
			aiSDKMessage(b, m)
		}
	})
	if err != nil {
		return nil, err
	}
	last, err := alone.transcripts()
	return append(found, last...), err
}

// aiSDKMessage adds a message. An answer of several steps becomes several.
func aiSDKMessage(b *builder, m gjson.Result) {
	b.time = parseTime(m.Get("createdAt").String())
	content := m.Get("parts")
	if !content.IsArray() {
		content = m.Get("content")
	}
	switch role := thread.Role(m.Get("role").Str); role {
	case thread.Assistant, thread.Tool:
		for p := range geminiParts(content) {
			aiPart(b, p)
		}
		if !m.Get("parts").IsArray() {
			for p := range rawjson.Items(m.Get("toolInvocations")) {
				aiInvocation(b, p, p.Get("toolName").Str)
			}
		}
		if len(b.step.parts) == 0 && len(b.step.results) == 0 {
			b.say(role, thread.Plain) // only to count it
		}
		b.flush()
	case thread.System, thread.User:
		said := thread.Message{Role: role}
		for p := range geminiParts(content) {
			if !aiSilent(b, p.Get("type").Str) {
				said.Parts = append(said.Parts, readParts(p)...)
			}
		}
		if role == thread.System && len(b.messages) == 0 {
			b.System = append(b.System, prompt.System{Text: said.Text(), Role: string(role)})
			return
		}
		b.add(thread.Plain, said)
	default:
		b.unknownRole(string(role))
	}
}

// aiSilent counts a part that no model sees, and reports whether it is one.
func aiSilent(b *builder, kind string) bool {
	silent := kind == "step-start" || kind == "tool-approval-request" || kind == "tool-approval-response" ||
		strings.HasPrefix(kind, "data-") || strings.HasPrefix(kind, "source-")
	if silent {
		b.report.skip(kind)
	}
	return silent
}

func aiPart(b *builder, p gjson.Result) {
	kind := p.Get("type").Str
	name, tool := strings.CutPrefix(kind, "tool-")
	// What a model says after the results of its calls is another answer.
	if len(b.step.results) > 0 && len(b.step.parts) > 0 && !tool && kind != "dynamic-tool" {
		b.flush()
	}
	switch {
	case kind == "tool-call":
		aiCall(b, p, p.Get("toolName").Str)
	case kind == "tool-result":
		aiResult(b, p)
	case kind == "tool-invocation":
		aiInvocation(b, p.Get("toolInvocation"), p.Get("toolInvocation.toolName").Str)
	case kind == "dynamic-tool":
		aiInvocation(b, p, p.Get("toolName").Str)
	case tool && p.Get("toolCallId").Exists() && p.Get("state").Exists():
		aiInvocation(b, p, name)
	case !aiSilent(b, kind):
		b.addPart(readParts(p)...)
	}
}

func aiCall(b *builder, p gjson.Result, name string) string {
	input := p.Get("input")
	if !input.Exists() {
		input = p.Get("args")
	}
	return b.addCall(p.Get("toolCallId").Str, name, argumentsJSON(input))
}

func aiResult(b *builder, p gjson.Result) {
	r := thread.ToolResult{CallID: b.openCallID(p.Get("toolCallId").Str), Tool: p.Get("toolName").Str}
	out := p.Get("output")
	kind, data := out.Get("type").Str, out.Get("value")
	r.Outcome = outcomeOf(p.Get("isError").Bool() || kind == "error-text" || kind == "error-json" || kind == "execution-denied")
	switch kind {
	case "text", "json", "error-text", "error-json", "content":
	case "execution-denied":
		data = out.Get("reason")
	default:
		if data = p.Get("result"); !data.Exists() {
			data = out
		}
	}
	if kind == "content" {
		r.Content = readParts(data)
	} else {
		r.Structured, r.Content = structuredResult(data)
	}
	b.addResult(r)
}

// aiInvocation adds a call and its result, which applications keep in one part.
func aiInvocation(b *builder, p gjson.Result, name string) {
	r := thread.ToolResult{CallID: aiCall(b, p, name), Outcome: thread.Success}
	switch p.Get("state").Str {
	case "output-available":
		r.Structured, r.Content = structuredResult(p.Get("output"))
		if p.Get("preliminary").Bool() {
			r.Outcome = thread.Partial
		}
	case "result":
		r.Structured, r.Content = structuredResult(p.Get("result"))
	case "output-error", "output-denied":
		r.Outcome, r.Content = thread.Failure, firstParts(p, "errorText", "approval.reason")
	default: // the call is still open
		return
	}
	b.addResult(r)
}
