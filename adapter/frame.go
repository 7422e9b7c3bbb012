package adapter

import "github.com/palimpsest-ai/palimpsest/thread"

// Split makes messages of the parts of one message of a framework, for Decode: one of
// each result of a tool, and one of what stands between, in the user's name where the
// role is that of tools. All have one frame, with the raw text and the position of the
// message.
func Split(role thread.Role, parts []thread.Part, api, raw string, position int) (out []thread.Message) {
	other := role
	if role == thread.Tool {
		other = thread.User
	}
	begun := false
	for _, p := range parts {
		if _, ok := p.(thread.ToolResult); ok {
			out, begun = append(out, thread.Message{Role: thread.Tool, Parts: []thread.Part{p}}), false
			continue
		}
		if !begun {
			out, begun = append(out, thread.Message{Role: other}), true
		}
		out[len(out)-1].Parts = append(out[len(out)-1].Parts, p)
	}
	if out == nil {
		out = []thread.Message{{Role: other, Parts: []thread.Part{thread.Text{}}}}
	}
	f := thread.NewFrame(api, raw, position, 1, len(out))
	for n := range out {
		out[n].Frame, out[n].Index = f, n
	}
	return out
}

// Whole is how many messages at the beginning are all those of one frame of the API, as
// Split made them, for Encode; 0 where they are not. There is at least one message.
func Whole(messages []thread.Message, api string) int {
	f := messages[0].Frame
	if f == nil || f.API() != api || messages[0].Index != 0 || f.Messages() > len(messages) {
		return 0
	}
	for i := range f.Messages() {
		if messages[i].Frame != f {
			return 0
		}
	}
	return f.Messages()
}
