package identify

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Kind is what a request is in a conversation.
type Kind string

const (
	// Step is a step of an agent.
	Step Kind = ""
	// Empty has no message.
	Empty Kind = "no-messages"
	// SideRequest is beside the conversation: a title, a summary of text, a question without a history.
	SideRequest Kind = "side-request"
	// ServerSide continues a history that the provider holds: it cannot be made smaller.
	ServerSide Kind = "server-side-history"
	// OwnCompaction asks for a summary of the client's own history.
	OwnCompaction Kind = "own-compaction"
)

// serverSideMembers are the members that name a history which the provider holds.
var serverSideMembers = []string{"previous_response_id", "conversation", "thread"}

// RefersToItems reports whether items of the history are only named, which the provider holds: the
// Vercel AI SDK sends its own calls so (Responses). What answers a call that is not there could not be
// moved, and is not valid by itself.
func RefersToItems(r *Request) bool {
	for i := range r.Prompt.Messages {
		for _, part := range r.Prompt.Messages[i].Parts {
			if o, ok := part.(thread.Opaque); ok && o.Kind == "item_reference" {
				return true
			}
		}
	}
	return false
}

// KindOf tells what a request is; header gives its headers.
func KindOf(r *Request, header func(name string) string) Kind {
	if slices.ContainsFunc(serverSideMembers, r.Has) || RefersToItems(r) {
		return ServerSide
	}
	switch {
	case len(r.Prompt.Messages) == 0:
		return Empty
	case strings.Contains(header("X-Codex-Turn-Metadata"), `"request_kind":"compaction"`), hasTrigger(r), asksForSummary(r):
		return OwnCompaction
	case len(r.Prompt.Tools) == 0 && modelTurns(r.Prompt.Messages) < 2:
		return SideRequest
	}
	return Step
}

// hasTrigger reports whether a history ends with the item that asks the provider to compact it (Responses).
func hasTrigger(r *Request) bool {
	parts := r.Prompt.Messages[len(r.Prompt.Messages)-1].Parts
	if len(parts) == 0 {
		return false
	}
	o, ok := parts[len(parts)-1].(thread.Opaque)
	return ok && o.Kind == "compaction_trigger"
}

// The words of a request for a summary: of what, and without tools.
var (
	summaryWords = lazyregexp.New(`(?i)\bsummar(y|i[sz]e|i[sz]ing|i[sz]ation)\b|\bhandoff\b|\bcheckpoint\b`)
	historyWords = lazyregexp.New(`(?i)\b(conversation|session|history|context)\b`)
	noToolWords  = lazyregexp.New(`(?i)\b(do not|don't|never|must not|without|no)\b[^.!?\n]{0,30}\btools?\b|\btext only\b`)
)

// asksForSummary recognises a client that asks for a summary within the conversation, as Claude Code does:
// no header says so, and its tools are declared as ever. The history ends with a user's text that
// asks for a summary of it, and the tool choice or the text forbids tools. If it was the user who
// said that nothing is lost: the answer is made in a fork, and the conversation continues with
// both in its log.
func asksForSummary(r *Request) bool {
	last := &r.Prompt.Messages[len(r.Prompt.Messages)-1]
	if last.Role != thread.User || modelTurns(r.Prompt.Messages) < 2 {
		return false
	}
	text := last.Text()
	if !summaryWords().MatchString(text) || !historyWords().MatchString(text) {
		return false
	}
	choice := r.Members["tool_choice"]
	return noToolWords().MatchString(text) || choice.Str == "none" || choice.Get("type").Str == "none" || r.memberAt("toolConfig.functionCallingConfig.mode").Str == "NONE"
}

func modelTurns(messages []thread.Message) int {
	n := 0
	for i := range messages {
		if messages[i].Role == thread.Assistant {
			n++
		}
	}
	return n
}
