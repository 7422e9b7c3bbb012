package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// readAISDK reads messages of Vercel's AI SDK: the ModelMessages that are sent
// (CoreMessages of version 4, too) and the UIMessages that applications keep.
// They stand in a list, in an object's "messages", or one on a line.
func readAISDK(j *job) ([]Transcript, error) {
	var alone *builder
	found, err := j.values(func(v value) ([]Transcript, error) {
		list := v.Result
		if v.Get("messages").IsArray() {
			list = v.Get("messages")
		}
		if !list.IsArray() {
			if alone == nil {
				alone = newBuilder(j.name, j.report)
			}
			alone.aiSDK(v.line, v.Result)
			return nil, nil
		}
		b := newBuilder(v.name, j.report)
		b.model = v.Get("model").String()
		if s := v.Get("system").Str; s != "" {
			b.system = append(b.system, prompt.System{Text: s, Role: "system"})
		}
		each(list, func(_, m gjson.Result) bool {
			b.aiSDK(v.line, m)
			return true
		})
		t, err := b.done()
		if err != nil || t.Thread.Len() == 0 && len(t.System) == 0 {
			return nil, err
		}
		return []Transcript{t}, nil
	})
	if err != nil || alone == nil {
		return found, err
	}
	t, err := alone.done()
	if err != nil || t.Thread.Len() == 0 {
		return found, err
	}
	return append(found, t), nil
}

// aiSDK adds a message: an answer of several steps becomes several.
func (b *builder) aiSDK(line int, m gjson.Result) {
	at := moment(m.Get("createdAt").String())
	s := aiStep{b: b, line: line, message: thread.Message{Time: at}}
	switch role := m.Get("role").Str; role {
	case "system":
		if len(b.messages) == 0 {
			b.system = append(b.system, prompt.System{Text: aiText(m), Role: role})
			return
		}
		s.message.Role = thread.System
	case "user":
		s.message.Role = thread.User
	case "assistant":
		s.message.Role = thread.Assistant
	case "tool":
		s.message.Role = thread.Tool
	default:
		b.report.unknown("role " + role)
		b.report.warn(line, "a message of the unknown role %q was left out", role)
		return
	}
	content := m.Get("parts")
	if !content.IsArray() {
		content = m.Get("content")
	}
	if content.Type == gjson.String {
		s.message.Parts = text(content.Str)
	}
	each(content, func(_, p gjson.Result) bool {
		s.part(p)
		return true
	})
	if !m.Get("parts").IsArray() {
		each(m.Get("toolInvocations"), func(_, p gjson.Result) bool {
			s.invocation(p, p.Get("toolName").Str)
			return true
		})
	}
	s.flush()
}

// aiText joins the texts of a message.
func aiText(m gjson.Result) string {
	if c := m.Get("content"); c.Type == gjson.String {
		return c.Str
	}
	var texts []string
	for _, key := range []string{"content", "parts"} {
		each(m.Get(key), func(_, p gjson.Result) bool {
			texts = append(texts, p.Get("text").Str)
			return true
		})
	}
	return strings.Join(texts, "\n")
}

// aiStep is one step of an answer: what the model said, and the results of its
// calls.
type aiStep struct {
	b       *builder
	line    int
	message thread.Message
	results []thread.Message
}

func (s *aiStep) flush() {
	m := s.message
	if m.Role != thread.Tool && (len(m.Parts) > 0 || len(s.results) == 0) {
		s.b.add(s.line, m.Time, thread.Plain, m)
	}
	s.b.add(s.line, m.Time, thread.Plain, s.results...)
	s.message.Parts, s.results = nil, nil
}

func (s *aiStep) gain(p ...thread.Part) { s.message.Parts = append(s.message.Parts, p...) }

func (s *aiStep) part(p gjson.Result) {
	kind := p.Get("type").Str
	// What a model says after the results of its calls is another answer.
	if len(s.results) > 0 && s.message.Role == thread.Assistant && kind != "tool-result" && kind != "dynamic-tool" && !strings.HasPrefix(kind, "tool-") {
		s.flush()
	}
	mime := p.Get("mediaType").String()
	if mime == "" {
		mime = p.Get("mimeType").String()
	}
	switch kind {
	case "text":
		s.gain(text(p.Get("text").Str)...)
	case "reasoning":
		r := thread.Reasoning{Text: p.Get("text").Str, Signature: p.Get("signature").Str}
		if r.Text == "" {
			r.Text = p.Get("reasoning").Str
		}
		for _, key := range []string{"providerOptions", "providerMetadata"} {
			if sig := p.Get(key + ".anthropic.signature").Str; sig != "" {
				r.Signature = sig
			}
		}
		s.gain(r)
	case "image":
		if mime == "" {
			mime = "image"
		}
		s.gain(media(mime, p.Get("image").String()))
	case "file":
		where := p.Get("url").String()
		if where == "" {
			where = p.Get("data").String()
		}
		f := media(mime, where)
		f.Name = p.Get("filename").String()
		s.gain(f)
	case "tool-call":
		input := p.Get("input")
		if !input.Exists() {
			input = p.Get("args")
		}
		s.gain(s.b.call(p.Get("toolCallId").Str, p.Get("toolName").Str, arguments(input)))
	case "tool-result":
		s.result(p)
	case "tool-invocation":
		s.invocation(p.Get("toolInvocation"), p.Get("toolInvocation.toolName").Str)
	case "dynamic-tool":
		s.invocation(p, p.Get("toolName").Str)
	case "step-start":
		s.b.report.skip(kind)
	default:
		if name, ok := strings.CutPrefix(kind, "tool-"); ok && p.Get("toolCallId").Exists() && p.Get("state").Exists() {
			s.invocation(p, name)
			return
		}
		if strings.HasPrefix(kind, "data-") || strings.HasPrefix(kind, "source-") {
			s.b.report.skip(kind)
			return
		}
		s.gain(opaque(p))
	}
}

// result reads a tool-result part.
func (s *aiStep) result(p gjson.Result) {
	r := thread.ToolResult{CallID: s.b.answers(p.Get("toolCallId").Str), Tool: p.Get("toolName").Str, Outcome: thread.Success}
	if p.Get("isError").Bool() {
		r.Outcome = thread.Failure
	}
	out := p.Get("output")
	value := out.Get("value")
	switch out.Get("type").Str {
	case "error-text", "error-json":
		r.Outcome = thread.Failure
	case "execution-denied":
		r.Outcome = thread.Failure
		value = out.Get("reason")
	case "text", "json":
	case "content":
		r.Content = aiContent(value)
		s.results = append(s.results, answer(r))
		return
	default:
		if value = p.Get("result"); !value.Exists() {
			value = out
		}
	}
	r.Structured, r.Content = structured(value)
	s.results = append(s.results, answer(r))
}

// aiContent reads the parts of a result.
func aiContent(list gjson.Result) []thread.Part {
	var parts []thread.Part
	each(list, func(_, p gjson.Result) bool {
		switch kind := p.Get("type").Str; kind {
		case "text":
			parts = append(parts, text(p.Get("text").Str)...)
		case "media", "image-data", "file-data":
			parts = append(parts, media(p.Get("mediaType").Str, p.Get("data").Str))
		case "image-url", "file-url":
			mime := p.Get("mediaType").Str
			if mime == "" && kind == "image-url" {
				mime = "image"
			}
			parts = append(parts, media(mime, p.Get("url").Str))
		default:
			parts = append(parts, opaque(p))
		}
		return true
	})
	return parts
}

// invocation reads a call and its result in one, as applications keep them.
func (s *aiStep) invocation(p gjson.Result, name string) {
	input := p.Get("input")
	if !input.Exists() {
		input = p.Get("args")
	}
	call := s.b.call(p.Get("toolCallId").Str, name, arguments(input))
	s.gain(call)
	r := thread.ToolResult{CallID: call.ID, Tool: name, Outcome: thread.Success}
	switch p.Get("state").Str {
	case "output-available":
		r.Structured, r.Content = structured(p.Get("output"))
		if p.Get("preliminary").Bool() {
			r.Outcome = thread.Partial
		}
	case "result":
		r.Structured, r.Content = structured(p.Get("result"))
	case "output-error":
		r.Outcome, r.Content = thread.Failure, text(p.Get("errorText").Str)
	case "output-denied":
		r.Outcome, r.Content = thread.Failure, text(p.Get("approval.reason").Str)
	default: // the call is still open
		return
	}
	s.results = append(s.results, answer(r))
}
