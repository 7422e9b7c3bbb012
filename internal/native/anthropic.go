// Package native knows how requests ask for their provider's own compaction, and how the provider
// answers: it reads and checks what is asked, applies it to a request, and gives answers the
// documented shape. It does no I/O and makes no summary; package proxy does both (docs/proxy.md,
// "Native compaction").
//
// The opaque value that an answer gives the client is a Token. It is signed, so that it is known
// when it comes back.
package native

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// The betas of the Anthropic API that are emulated. An upstream that cannot compact may refuse a
// request that names one.
const (
	BetaEdits    = "context-management-2025-06-27"
	BetaCompact  = "compact-2026-01-12"
	BetaOnDemand = "compact-2026-09-04"
)

// Messages is a request of the Anthropic Messages API with what it asks of native compaction. It
// is used by one goroutine.
type Messages struct {
	// Model and Stream are members of the body.
	Model  string
	Stream bool
	// Managed says that the body has context_management; Edits are its edits, in order.
	Managed bool
	Edits   []Edit
	// OnDemand says that the request asks for a summary alone, with these instructions.
	OnDemand     bool
	Instructions string
	// Previous is the summary that the newest compaction block stands for; nil if there is none,
	// or the block is not ours.
	Previous *summary.Summary

	body           string
	top            *rawjson.Document // its members
	messages       []message         // see load
	withoutMembers bool              // the members that ask for compaction were read, and are dropped
	changed        bool              // the messages are not the client's own
	firstEdited    int               // the first message that an edit changed; -1 for none
}

// message is an element of the messages array.
type message struct {
	raw, role string
	blocks    []gjson.Result // nil where the content is a text
	recap     bool           // it stands for messages that a compaction removed
}

// ReadMessages reads a body. The error says that it is no request of the API; the provider says
// that better.
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

// load reads the messages, which most requests that name an edit do not need.
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

// ReadCompaction reads what the request asks of compaction, and takes it out of Body. The error is
// a *Refusal.
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
	// These rules do not depend on the messages.
	probe := withMembers(m.body, "system", "", "tools", "", "messages", `[{"role":"user","content":"."}]`)
	for _, p := range (anthropic.Codec{}).Validate([]byte(probe)) {
		if !p.Advice && (strings.HasPrefix(p.Rule, "context-") || strings.HasPrefix(p.Rule, "compaction-")) {
			return refuse("", "%s: %s", p.Path, p.Message)
		}
	}
	return nil
}

// Validate returns the *Refusal that the API would give the request for anything but compaction.
// It is for requests that no upstream will see.
func (m *Messages) Validate() error {
	for _, p := range (anthropic.Codec{}).Validate([]byte(m.Body())) {
		if !p.Advice {
			return refuse("", "%s: %s", p.Path, p.Message)
		}
	}
	return nil
}

// NothingToSummarize reports whether there is no message but the summary of an earlier compaction.
func (m *Messages) NothingToSummarize() bool {
	m.load()
	return !slices.ContainsFunc(m.messages, func(x message) bool { return !x.recap })
}

// Size is the size of the request in bytes. It has no more tokens than that, except in images
// that are stored elsewhere.
func (m *Messages) Size() int { return len(m.body) }

// Changed reports whether the messages are not those that the client sent.
func (m *Messages) Changed() bool { return m.changed }

// Edited reports whether edits have changed the messages.
func (m *Messages) Edited() bool { return m.firstEdited >= 0 }

func (m *Messages) noteEdit(i int) {
	m.changed = true
	if m.firstEdited < 0 || i < m.firstEdited {
		m.firstEdited = i
	}
}

// Body is the request as it is now. Members and messages that were not changed keep their bytes.
func (m *Messages) Body() string {
	var members []string
	if m.withoutMembers {
		members = []string{"context_management", "", "compaction", ""}
	}
	if m.changed {
		members = append(members, "messages", rawjson.ArrayOf(m.messages, func(x message) string { return x.raw }))
	}
	return withMembers(m.body, members...)
}

// ReplaceMessages puts one message with a text, the summary of the conversation, in place of all.
func (m *Messages) ReplaceMessages(text string) {
	m.messages = []message{recap(text, "")}
	m.noteEdit(0)
}

// apisByName are the APIs with a compaction of their own, as people write them. Chat Completions
// has none, so openai means Responses.
var apisByName = map[string]string{wire.Anthropic: wire.Anthropic, wire.Responses: wire.Responses, "openai": wire.Responses}

// APIs reads names of APIs whose providers compact: anthropic, and responses or openai. It returns
// the names of package wire, sorted and each once, and skips empty ones. The error suggests what
// an unknown name may mean.
func APIs(given []string) ([]string, error) {
	var list []string
	for _, name := range given {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		api, ok := apisByName[name]
		if !ok {
			return nil, fmt.Errorf("native compaction of %.40q is not known; did you mean %s? It is known of anthropic and openai",
				name, suggest.Names(name, []string{wire.Anthropic, "openai", wire.Responses}, 1)[0])
		}
		list = append(list, api)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// MergeUsage sets the members of one usage in another: the last counts of a stream are the whole. An
// empty text is a usage without members.
func MergeUsage(usage, last string) string {
	counts := gjson.Parse(last)
	if !counts.IsObject() {
		return usage
	}
	usage = cmp.Or(usage, "{}")
	for name, v := range rawjson.Members(counts) {
		if v.Type != gjson.Null {
			usage = jsonedit.Set(usage, gjson.Escape(name), v.Raw)
		}
	}
	return usage
}

// MessageIteration is the usage of a message as an iteration of a longer one.
func MessageIteration(usage string) string {
	message := `{"type":"message"}`
	for _, name := range []string{"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"} {
		if v := gjson.Get(usage, name); v.Exists() && v.Type != gjson.Null {
			message = jsonedit.Set(message, name, v.Raw)
		}
	}
	return message
}
