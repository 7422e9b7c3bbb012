package identify

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// News are the messages of the request from a position on, for a log. What in the results of tools is the
// words of the user is settled for an agent that its User-Agent names.
func (r *Request) News(from int, userAgent string) []thread.Message {
	news := r.kept(from)
	agent := injected.Agent(userAgent)
	if agent == "" || len(news) == 0 {
		return news
	}
	schemas, calls, asked := map[string]string{}, map[string]thread.ToolCall{}, from
	for _, t := range r.Prompt.Tools {
		schemas[t.Name] = cmp.Or(t.Schema, "{}")
	}
	for asked > 0 && r.Prompt.Messages[asked].Role == thread.Tool { // back to what asked for the first results
		asked--
	}
	for i := asked; i < len(r.Prompt.Messages); i++ {
		for _, c := range r.Prompt.Messages[i].Calls() {
			calls[c.ID] = c
		}
		if result, ok := r.Prompt.Messages[i].Result(); ok && i >= from && schemas[result.Tool] != "" {
			call := calls[result.CallID]
			result, _ = news[i-from].Result()
			injected.Settle(agent, schemas[result.Tool], &call, &result)
			news[i-from].Parts = []thread.Part{result} // a tool message holds nothing else
		}
	}
	return news
}

// kept are the messages from a position on with their ids. Where they are most of the request, they hold
// it rather than copies of it.
func (r *Request) kept(from int) []thread.Message {
	messages, ids := r.Prompt.Messages[from:], r.IDs[from:]
	held, last := 0, (*thread.Frame)(nil)
	for i := range messages {
		if f := messages[i].Frame; f != last {
			held, last = held+len(f.Raw()), f
		}
	}
	if held < r.Body.Len()/4*3 {
		return Detach(messages, ids)
	}
	out := slices.Clone(messages)
	for i := range out {
		out[i].ID, out[i].Final = ids[i], true
	}
	return out
}

// Detach copies messages for a log, with the given ids and with strings of their own: a message that is
// kept must not keep alive the request that it was read from. The bytes of a frame are copied
// once, and the strings of its parts are substrings of the copy.
func Detach(messages []thread.Message, ids []thread.ID) []thread.Message {
	out := make([]thread.Message, len(messages))
	var from, to *thread.Frame
	for i, m := range messages {
		own := copiedText("")
		if m.Frame != nil {
			if m.Frame != from {
				from, to = m.Frame, thread.NewFrame(m.Frame.API(), strings.Clone(m.Frame.Raw()), m.Frame.Position(), m.Frame.Elements(), m.Frame.Messages())
			}
			m.Frame, own = to, copiedText(to.Raw())
		}
		m.Role, m.Name, m.ID = constantRole(m.Role), own.copyOf(m.Name), ids[i]
		own.detach(reflect.ValueOf(&m.Parts).Elem())
		out[i] = m
	}
	return out
}

// constantRole is the same role as a constant, which holds no memory of the request.
func constantRole(r thread.Role) thread.Role {
	for _, known := range []thread.Role{thread.User, thread.Assistant, thread.Tool, thread.System} {
		if r == known {
			return known
		}
	}
	return thread.Role(strings.Clone(string(r)))
}

type copiedText string

// copyOf returns a text that holds nothing of the request: a substring of the copied one if it is in
// that. One that is not was made of it, such as a text with its escapes read, and is on its own.
func (c copiedText) copyOf(s string) string {
	if at := strings.Index(string(c), s); at >= 0 {
		return string(c[at : at+len(s)])
	}
	if c == "" { // there is no frame
		return strings.Clone(s)
	}
	return s
}

// detach replaces the strings in a settable value by copies.
func (c copiedText) detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(c.copyOf(v.String()))
	case reflect.Struct:
		switch p := v.Addr().Interface().(type) {
		case *thread.Source:
			p.Raw, p.Cache = c.copyOf(p.Raw), c.copyOf(p.Cache) // the API is a constant
			return
		case *thread.ToolResult:
			p.Tool = strings.Clone(p.Tool) // it stands in another message
		}
		for i := range v.NumField() {
			c.detach(v.Field(i))
		}
	case reflect.Slice:
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			c.detach(own.Index(i))
		}
		if !v.IsNil() {
			v.Set(own)
		}
	case reflect.Interface:
		if !v.IsNil() {
			own := reflect.New(v.Elem().Type()).Elem()
			own.Set(v.Elem())
			c.detach(own)
			v.Set(own)
		}
	}
}
