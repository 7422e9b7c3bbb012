package native

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// The betas of the Anthropic API that are emulated. An upstream that cannot
// compact may refuse a request that names one.
const (
	BetaEdits    = "context-management-2025-06-27"
	BetaCompact  = "compact-2026-01-12"
	BetaOnDemand = "compact-2026-09-04"
)

// Refusal is the documented answer to a request that the Anthropic API refuses.
type Refusal struct {
	// Code is what details name, such as "compaction_block_misplaced"; empty where
	// the API gives none.
	Code string
	// Message says what is wrong, with its path.
	Message string
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

// Body is the refusal as the API writes it, for status 400.
func (r *Refusal) Body() string { return errorBody("invalid_request_error", r.Message, r.Code) }

// Unavailable is the body of the documented answer, of status 529, to a request
// for a summary that cannot be made now: the client keeps its history and asks
// again.
func Unavailable() string {
	return errorBody("overloaded_error", "no summary can be made now: ask again", "compaction_unavailable")
}

func errorBody(kind, message, code string) string {
	details := ""
	if code != "" {
		details = `,"details":{"error_code":` + rawjson.Quote(code) + `}`
	}
	return `{"type":"error","error":{"type":"` + kind + `","message":` + rawjson.Quote(message) + details + `}}`
}

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Messages is a request of the Anthropic Messages API with what it asks of native
// compaction. It is used by one goroutine.
type Messages struct {
	// Model and Stream are the members of the body.
	Model  string
	Stream bool
	// Edits are those of context_management, in order; Managed says that the body
	// has one, even if it is empty.
	Edits   []Edit
	Managed bool
	// OnDemand says that nothing but a summary is asked for, by the instructions.
	OnDemand     bool
	Instructions string
	// Previous is what the newest compaction block stands for, in its parts; nil
	// where there is none, or where it is none of ours.
	Previous *summary.Summary

	body           string
	top            object
	messages       []message // once it is needed; see load
	withoutMembers bool      // what is asked for was read, and does not go on
	changed        bool      // the messages are not the client's own
	firstEdited    int       // the first message that an edit has changed; -1 for none
}

// message is an element of the messages array.
type message struct {
	raw, role string
	blocks    []gjson.Result // nil where the content is a text
	recap     bool           // it stands for what a compaction removed
}

// ReadMessages reads a body. The error says that it is no request of the API, which
// its provider can say better.
func ReadMessages(body string) (*Messages, error) {
	top, err := readObject(body)
	if err != nil {
		return nil, err
	}
	if !top.Get("messages").IsArray() {
		return nil, fmt.Errorf("messages: the array is missing")
	}
	return &Messages{body: body, top: top, firstEdited: -1, Model: top.Get("model").Str, Stream: top.Get("stream").Type == gjson.True}, nil
}

// load reads the messages. Most requests that name an edit need none of them.
func (m *Messages) load() {
	if m.messages != nil {
		return
	}
	for _, v := range m.top.Get("messages").Array() {
		m.messages = append(m.messages, readMessage(v))
	}
}

func readMessage(v gjson.Result) message {
	out := message{raw: v.Raw, role: v.Get("role").Str}
	if content := v.Get("content"); content.IsArray() {
		out.blocks = content.Array()
	}
	return out
}

// ReadCompaction reads what is asked for, which no upstream will see then. The error is a
// *Refusal.
func (m *Messages) ReadCompaction() error {
	m.withoutMembers = true
	context, summarize := m.top.Get("context_management"), m.top.Get("compaction")
	var err error
	if m.Managed = context.Exists() && context.Type != gjson.Null; m.Managed {
		if m.Edits, err = readEdits(context, m.Model); err != nil {
			return err
		}
	}
	if m.OnDemand = summarize.Exists() && summarize.Type != gjson.Null; m.OnDemand {
		instructions := summarize.Get("instructions")
		switch {
		case summarize.Get("type").Str != "summarize":
			return refuse("", "compaction.type: the only type is summarize")
		case instructions.Exists() && instructions.Type != gjson.Null && instructions.Type != gjson.String:
			return refuse("", "compaction.instructions: must be a text")
		case m.top.Get("output_format").IsObject():
			return refuse("", "output_format: cannot be combined with a request for a summary")
		case m.top.Get("output_config").Get("task_budget.remaining").Exists():
			return refuse("", "output_config.task_budget.remaining: cannot be combined with a request for a summary")
		}
		m.Instructions = strings.TrimSpace(instructions.Str)
	}
	if !m.Managed && !m.OnDemand {
		return nil
	}
	// The rules are those that every request is held to, and they do not depend on
	// what the messages say.
	probe := m.top.without("system", "tools").with("messages", `[{"role":"user","content":"."}]`).String()
	for _, p := range (anthropic.Codec{}).Validate([]byte(probe)) {
		if !p.Advice && (strings.HasPrefix(p.Rule, "context-") || strings.HasPrefix(p.Rule, "compaction-")) {
			return refuse("", "%s: %s", p.Path, p.Message)
		}
	}
	return nil
}

// Validate says what the API would refuse the whole request for, beside what
// concerns compaction; nil where it would take it. It is for requests that no
// upstream will see.
func (m *Messages) Validate() error {
	for _, p := range (anthropic.Codec{}).Validate([]byte(m.Body())) {
		if !p.Advice {
			return refuse("", "%s: %s", p.Path, p.Message)
		}
	}
	return nil
}

// NothingToSummarize reports whether there is nothing that a summary could be made of: no
// message beside what an earlier compaction left.
func (m *Messages) NothingToSummarize() bool {
	m.load()
	return !slices.ContainsFunc(m.messages, func(x message) bool { return !x.recap })
}

// Size is the size of the request in bytes. It has no more tokens than that, but
// for images that stand elsewhere.
func (m *Messages) Size() int { return len(m.body) }

// Changed reports whether anything is not as the client sent it, apart from what
// is asked of compaction.
func (m *Messages) Changed() bool { return m.changed }

// Edited reports whether edits have changed the messages.
func (m *Messages) Edited() bool { return m.firstEdited >= 0 }

// noteEdit notes the first message that an edit has changed.
func (m *Messages) noteEdit(i int) {
	m.changed = true
	if m.firstEdited < 0 || i < m.firstEdited {
		m.firstEdited = i
	}
}

// Body is the request as it is now, without what was asked for. Members and
// messages that nobody touched keep their bytes.
func (m *Messages) Body() string {
	out := m.body
	for _, x := range m.top.Fields { // each as often as it is there
		if !m.withoutMembers || x.Name != "context_management" && x.Name != "compaction" {
			continue
		}
		out = jsonedit.Delete(out, x.Name)
	}
	if m.changed {
		out = jsonedit.Set(out, "messages", rawjson.ArrayOf(m.messages, func(x message) string { return x.raw }))
	}
	return out
}

// ReplaceMessages puts one text in the user's name in place of all messages: the summary
// of the whole conversation.
func (m *Messages) ReplaceMessages(text string) {
	m.messages = []message{recap(text, "")}
	m.noteEdit(0)
}
