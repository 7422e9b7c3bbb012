package transcript

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Session is what a session file holds besides the conversation.
type Session struct {
	// ID is the agent's id of the session: a UUID that no other session has. The ids of
	// lines are derived from it.
	ID string
	// Dir is the directory that the agent works in.
	Dir string
	// Time is when the file is written; messages without a time get that of the one before,
	// or this.
	Time time.Time
	// Model and Provider are those that the agent should continue with, by its own names.
	// Formats that need a provider guess an empty one from the model's name.
	Model, Provider string
	// Title is shown in the agent's list of sessions; empty leaves it to the agent.
	Title string
}

// Written is a conversation as a session file of an agent.
type Written struct {
	// ID is the agent's id of the session: Session.ID, except for opencode, Kilo, Qwen Code and Kimi
	// Code, whose ids have their own form.
	ID string
	// Path is where the agent looks for the file, below its folder of sessions, with
	// slashes. opencode and Kilo keep no files: their path is a name to import it under.
	Path string
	Data []byte
	// Beside are more files that the agent needs, by their paths, which are like Path.
	Beside map[string][]byte
	// Lost counts the parts that the format has no place for, by type.
	Lost map[string]int
}

// Write makes a session file of an agent from the messages of a prompt, so that the agent can
// continue after them. System prompt and tools are left out, because the agent has its own.
// The same arguments give the same bytes. The error wraps ErrUnknownFormat for a format that
// is not in Writers.
func Write(f Format, p *prompt.Prompt, s Session) (*Written, error) {
	write := f.row().write
	if write == nil {
		return nil, fmt.Errorf("format %q: %w that can be written; those are %s", f, ErrUnknownFormat, joinFormats(Writers()))
	}
	messages := slices.DeleteFunc(slices.Clone(p.Messages), isBlank)
	w := &writer{format: f, session: s, last: s.Time.UTC().Truncate(time.Millisecond), out: &Written{ID: s.ID, Lost: map[string]int{}}}
	w.first = w.last
	for i := range messages { // lines are in the order of their times
		if t := messages[i].Time; !t.IsZero() && t.Before(w.first) {
			w.first = t.UTC().Truncate(time.Millisecond)
		}
	}
	w.last = w.first
	write(w, messages)
	if w.err != nil {
		return nil, fmt.Errorf("transcript: write %s: %w", f, w.err)
	}
	w.out.Data = w.data.Bytes()
	return w.out, nil
}

// isBlank reports whether a message has no content. Encoders of whole requests leave such
// messages out, or join them to their neighbours.
func isBlank(m thread.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p thread.Part) bool {
		t, ok := p.(thread.Text)
		return !ok || strings.TrimSpace(t.Text) != ""
	})
}

// writer collects a session file.
type writer struct {
	format      Format
	session     Session
	first, last time.Time // of all messages, and of the last one written
	lines       int
	data        bytes.Buffer
	out         *Written
	err         error // the first
}

// timeOf is the time of a message: its own, but never before that of the one before.
func (w *writer) timeOf(m *thread.Message) time.Time {
	w.last = w.last.Add(time.Millisecond)
	if t := m.Time.UTC().Truncate(time.Millisecond); t.After(w.last) {
		w.last = t
	}
	return w.last
}

// hash is the source of the ids of line n.
func (w *writer) hash(n int) [sha256.Size]byte {
	return sha256.Sum256([]byte(w.session.ID + " " + strconv.Itoa(n)))
}

// uuid is an id for line n.
func (w *writer) uuid(n int) string {
	sum := w.hash(n)
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (w *writer) line(v any) {
	w.lines++
	w.value(v, "")
}

func isCall(p thread.Part) bool { _, call := p.(thread.ToolCall); return call }

func isText(p thread.Part) bool { _, text := p.(thread.Text); return text }

// blocks writes the parts of a message, and counts those of which block makes nothing; never null.
func (w *writer) blocks(parts []thread.Part, block func(thread.Part) map[string]any) []map[string]any {
	all := []map[string]any{}
	for _, p := range parts {
		if b := block(p); b != nil {
			all = append(all, b)
		} else {
			w.countLost(p)
		}
	}
	return all
}

func (w *writer) value(v any, indent string) {
	e := json.NewEncoder(&w.data)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	w.err = cmp.Or(w.err, e.Encode(v))
}

func (w *writer) countLost(p thread.Part) { w.out.Lost[lossOf(p)]++ }

// lossOf is the type under which a part is counted as lost.
func lossOf(p thread.Part) string {
	switch p := p.(type) {
	case thread.Reasoning:
		return "reasoning"
	case thread.Media:
		return string(p.Type)
	case thread.Opaque:
		return "block of type " + p.Kind
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", p), "thread.")
}

// countMissing counts the parts that encoding a message has left out, or made a note of: they are not
// there when it is read again.
func (w *writer) countMissing(m *thread.Message, back []thread.Message) {
	exact, others := map[string]int{}, map[reflect.Type]int{}
	for i := range back {
		for _, p := range allParts(&back[i]) {
			exact[lossOf(p)]++
			others[reflect.TypeOf(p)]++
		}
	}
	var missing []thread.Part
	for _, p := range allParts(m) {
		if _, said := p.(thread.Text); said {
			continue
		}
		if exact[lossOf(p)] > 0 {
			exact[lossOf(p)]--
			others[reflect.TypeOf(p)]--
		} else {
			missing = append(missing, p)
		}
	}
	for _, p := range missing { // it may be there as another of its kind: a file as a document
		if others[reflect.TypeOf(p)]--; others[reflect.TypeOf(p)] < 0 {
			w.countLost(p)
		}
	}
}

// allParts are the parts of a message and of its result.
func allParts(m *thread.Message) []thread.Part {
	if r, ok := m.Result(); ok {
		return r.Content
	}
	return m.Parts
}

// elements are the elements of a message in a provider's array of messages, without the cache
// marks of an earlier request.
func (w *writer) elements(c wire.Codec, array string, m *thread.Message) []gjson.Result {
	body, err := c.Encode(&prompt.Prompt{Messages: []thread.Message{*m}})
	w.err = cmp.Or(w.err, err)
	if back, err := c.Decode(string(body)); err == nil {
		w.countMissing(m, back.Messages)
	}
	all := gjson.ParseBytes(body).Get(array).Array()
	for i := range all {
		all[i] = withoutCacheMarks(all[i])
	}
	return all
}

// withoutCacheMarks takes the cache marks off the blocks of a message. What a call or a text
// holds under the same name stays.
func withoutCacheMarks(v gjson.Result) gjson.Result {
	if !v.IsObject() || !strings.Contains(v.Raw, `"cache_control"`) {
		return v
	}
	var o rawjson.Object
	for name, f := range rawjson.Members(v) {
		switch {
		case name == "cache_control":
		case name == "content" && f.IsArray():
			o.Raw(name, rawjson.ArrayOf(f.Array(), func(block gjson.Result) string { return withoutCacheMarks(block).Raw }))
		default:
			o.Raw(name, f.Raw)
		}
	}
	return gjson.Parse(o.String())
}

// flatFolderName turns a directory into the name of one folder.
func flatFolderName(dir string, replaced func(r rune) bool) string {
	return strings.Map(func(r rune) rune {
		if replaced(r) {
			return '-'
		}
		return r
	}, dir)
}

func notPlain(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
}

// timestamp is a time as session files have it.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// provider is who serves the session's model, as most clients name it.
func (w *writer) provider() string {
	model := w.session.Model
	if w.session.Provider != "" {
		return w.session.Provider
	}
	for prefix, provider := range map[string]string{
		"claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "codex": "openai", "gemini": "google",
	} {
		if strings.HasPrefix(model, prefix) {
			return provider
		}
	}
	return "anthropic"
}

// inlineImage returns the data of an image that is in the part itself.
func inlineImage(m thread.Media) (mime, data string, ok bool) {
	_, err := base64.StdEncoding.DecodeString(m.Data)
	ok = err == nil && m.Data != "" && m.Type == thread.Image
	return cmp.Or(m.MIME, "image/png"), m.Data, ok
}

// stopWord is one of an agent's words for why an answer ends: it calls tools, or not.
func stopWord(m *thread.Message, end, calls string) string {
	if len(m.Calls()) > 0 {
		return calls
	}
	return end
}

// resultsByCall returns the first result of each call, by its id, up to the next message of the
// assistant.
func resultsByCall(messages []thread.Message) map[string]thread.ToolResult {
	found := map[string]thread.ToolResult{}
	for i := range messages {
		if messages[i].Role == thread.Assistant {
			break
		}
		if r, ok := messages[i].Result(); ok {
			if _, twice := found[r.CallID]; !twice {
				found[r.CallID] = r
			}
		}
	}
	return found
}

func joinFormats(all []Format) string {
	names := make([]string, 0, len(all))
	for _, f := range all {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}
