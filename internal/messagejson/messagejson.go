// Package messagejson is the JSON form of a message of the log, as stores and
// exports keep it. Nothing is lost: what is read is what was written, with the
// bytes that it came from, so ids made from it are the same.
//
// A message that shares its frame with an earlier one says how many messages
// back that one stands, instead of holding the frame again. The bytes of a part
// are a piece of the frame, most of the time, and then only their place is
// written. Turn numbers are not written; appending to a thread counts them anew.
//
// Texts that are not valid UTF-8, which JSON cannot hold, stand beside the others
// under "bytes", in base64, by the name of their field. Key fields of results are
// JSON values; inside of them such texts are not kept exactly.
package messagejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ErrVersion is wrapped by the error of Unmarshal for a message of a later
// version of this module.
var ErrVersion = errors.New("written by a newer version")

// version is that of the form. Readers refuse later ones.
const version = 1

type message struct {
	V     int         `json:"v"`
	ID    thread.ID   `json:"id,omitempty"`
	Role  thread.Role `json:"role"`
	Kind  string      `json:"kind,omitempty"`
	Name  string      `json:"name,omitempty"`
	Time  *time.Time  `json:"time,omitempty"`
	Parts []part      `json:"parts,omitempty"`
	Frame *frame      `json:"frame,omitempty"`
	Back  int         `json:"frame_back,omitempty"`
	Index int         `json:"frame_index,omitempty"`
	Bytes blobs       `json:"bytes,omitempty"`
}

type frame struct {
	API      string `json:"api,omitempty"`
	Raw      string `json:"raw,omitempty"`
	Position int    `json:"position,omitempty"`
	Elements int    `json:"elements,omitempty"`
	Messages int    `json:"messages,omitempty"`
	Bytes    blobs  `json:"bytes,omitempty"`
}

// part holds the fields of all kinds; Type says which it is.
type part struct {
	Type       string              `json:"type"`
	Text       string              `json:"text,omitempty"`
	Signature  string              `json:"signature,omitempty"`
	Media      thread.MediaType    `json:"media,omitempty"`
	MIME       string              `json:"mime,omitempty"`
	Name       string              `json:"name,omitempty"`
	Detail     string              `json:"detail,omitempty"`
	Data       string              `json:"data,omitempty"`
	URL        string              `json:"url,omitempty"`
	FileID     string              `json:"file_id,omitempty"`
	ID         string              `json:"id,omitempty"`
	Arguments  string              `json:"arguments,omitempty"`
	CallType   string              `json:"call_type,omitempty"`
	Kind       string              `json:"kind,omitempty"`
	Outcome    thread.Outcome      `json:"outcome,omitempty"`
	Content    []part              `json:"content,omitempty"`
	Structured string              `json:"structured,omitempty"`
	KeyFields  json.RawMessage     `json:"key_fields,omitempty"`
	Durability thread.Durability   `json:"durability,omitempty"`
	Source     *thread.Determinism `json:"determinism,omitempty"`
	Started    *time.Time          `json:"started,omitempty"`
	Completed  *time.Time          `json:"completed,omitempty"`
	API        string              `json:"api,omitempty"`
	Raw        string              `json:"raw,omitempty"`
	RawAt      []int               `json:"raw_at,omitempty"` // where it begins in the frame, and its length, in bytes
	Cache      string              `json:"cache,omitempty"`
	Bytes      blobs               `json:"bytes,omitempty"`
}

const (
	typeText      = "text"
	typeReasoning = "reasoning"
	typeMedia     = "media"
	typeCall      = "tool_call"
	typeResult    = "tool_result"
	typeOpaque    = "opaque"
)

var kinds = [...]string{thread.Plain: "", thread.Injected: "injected", thread.Recap: "recap"}

// blobs are texts that are not valid UTF-8, by the name of their field.
type blobs map[string][]byte

// field is a text and its name.
type field struct {
	name string
	text *string
}

// take moves texts that JSON cannot hold out of their fields.
func take(fields []field) blobs {
	var out blobs
	for _, f := range fields {
		if !utf8.ValidString(*f.text) {
			if out == nil {
				out = blobs{}
			}
			out[f.name], *f.text = []byte(*f.text), ""
		}
	}
	return out
}

// put moves them back.
func (b blobs) put(fields []field) {
	for _, f := range fields {
		if data, ok := b[f.name]; ok {
			*f.text = string(data)
		}
	}
}

func (m *message) fields() []field {
	return []field{{"name", &m.Name}, {"role", (*string)(&m.Role)}}
}

func (f *frame) fields() []field { return []field{{"api", &f.API}, {"raw", &f.Raw}} }

func (p *part) fields() []field {
	return []field{
		{"text", &p.Text}, {"signature", &p.Signature}, {"media", (*string)(&p.Media)}, {"mime", &p.MIME}, {"name", &p.Name},
		{"detail", &p.Detail}, {"data", &p.Data}, {"url", &p.URL}, {"file_id", &p.FileID}, {"id", &p.ID},
		{"arguments", &p.Arguments}, {"call_type", &p.CallType}, {"kind", &p.Kind}, {"outcome", (*string)(&p.Outcome)},
		{"structured", &p.Structured}, {"durability", (*string)(&p.Durability)}, {"api", &p.API}, {"raw", &p.Raw}, {"cache", &p.Cache},
	}
}

// Back returns how many messages before position i of a thread the nearest one
// stands that shares its frame; 0 when none does.
func Back(t *thread.Thread, i int) int {
	f := uncopied.At(t, i).Frame
	if f == nil {
		return 0
	}
	for back := 1; back <= i && back <= max(f.Messages(), 1); back++ {
		if uncopied.At(t, i-back).Frame == f {
			return back
		}
	}
	return 0
}

// Marshal writes a message. back is what Back gives for it. The error names
// what JSON cannot hold: a number that is not finite, a time of no real year.
func Marshal(m *thread.Message, back int) ([]byte, error) {
	out := message{V: version, ID: m.ID, Role: m.Role, Name: m.Name, Time: timed(m.Time), Back: back, Index: m.Index}
	if int(m.Kind) >= len(kinds) {
		return nil, fmt.Errorf("message %s: kind %d is not known", m.ID, m.Kind)
	}
	out.Kind = kinds[m.Kind]
	if m.Frame != nil && back == 0 {
		f := frame{API: m.Frame.API(), Raw: m.Frame.Raw(), Position: m.Frame.Position(), Elements: m.Frame.Elements(), Messages: m.Frame.Messages()}
		f.Bytes = take(f.fields())
		out.Frame = &f
	}
	var err error
	if out.Parts, err = parts(m.Parts, rawOf(m.Frame)); err != nil {
		return nil, fmt.Errorf("message %s: %w", m.ID, err)
	}
	out.Bytes = take(out.fields())
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(out); err != nil {
		return nil, fmt.Errorf("message %s: %w", m.ID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

func rawOf(f *thread.Frame) string {
	if f == nil {
		return ""
	}
	return f.Raw()
}

// shortest is the length of the shortest piece of a frame that is worth its
// place, in bytes.
const shortest = 24

func parts(list []thread.Part, whole string) ([]part, error) {
	out := make([]part, len(list))
	for n, p := range list {
		from := p.From()
		o := part{API: from.API, Raw: from.Raw, Cache: from.Cache}
		if len(from.Raw) >= shortest {
			if at := strings.Index(whole, from.Raw); at >= 0 {
				o.Raw, o.RawAt = "", []int{at, len(from.Raw)}
			}
		}
		switch p := p.(type) {
		case thread.Text:
			o.Type, o.Text = typeText, p.Text
		case thread.Reasoning:
			o.Type, o.Text, o.Signature = typeReasoning, p.Text, p.Signature
		case thread.Media:
			o.Type, o.Media, o.MIME, o.Name, o.Detail = typeMedia, p.Type, p.MIME, p.Name, p.Detail
			o.Data, o.URL, o.FileID, o.Text = p.Data, p.URL, p.FileID, p.Text
		case thread.ToolCall:
			o.Type, o.ID, o.Name, o.Arguments, o.CallType, o.Signature = typeCall, p.ID, p.Name, p.Arguments, p.Type, p.Signature
		case thread.Opaque:
			o.Type, o.Kind, o.Text = typeOpaque, p.Kind, p.Text
		case thread.ToolResult:
			o.Type, o.ID, o.Name, o.Outcome, o.Structured = typeResult, p.CallID, p.Tool, p.Outcome, p.Structured
			o.Durability, o.Source, o.Started, o.Completed = p.Durability, p.Determinism, timed(p.Started), timed(p.Completed)
			var err error
			if o.Content, err = parts(p.Content, whole); err != nil {
				return nil, err
			}
			if p.KeyFields != nil {
				if o.KeyFields, err = json.Marshal(p.KeyFields); err != nil {
					return nil, fmt.Errorf("key fields of call %s: %w", p.CallID, err)
				}
			}
		default:
			return nil, fmt.Errorf("part %d is of no known type (%T)", n, p)
		}
		o.Bytes = take(o.fields())
		out[n] = o
	}
	return out, nil
}

func timed(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Unmarshal reads what Marshal wrote. frame gives the frame of the message that
// stands so many positions before this one, nil when there is none.
func Unmarshal(data []byte, frame func(back int) *thread.Frame) (m thread.Message, err error) {
	var in message
	if err := json.Unmarshal(data, &in); err != nil {
		return m, fmt.Errorf("message: %w", err)
	}
	if in.V != version {
		return m, fmt.Errorf("message %s: version %d, this program reads version %d: %w", in.ID, in.V, version, ErrVersion)
	}
	in.Bytes.put(in.fields())
	m = thread.Message{ID: in.ID, Role: in.Role, Name: in.Name, Index: in.Index}
	if in.Time != nil {
		m.Time = *in.Time
	}
	known := false
	for k, name := range kinds {
		if name == in.Kind {
			m.Kind, known = thread.Kind(k), true
		}
	}
	if !known {
		return m, fmt.Errorf("message %s: kind %q is not known: %w", in.ID, in.Kind, ErrVersion)
	}
	if f := in.Frame; f != nil {
		f.Bytes.put(f.fields())
		m.Frame = thread.NewFrame(f.API, f.Raw, f.Position, f.Elements, f.Messages)
	}
	if in.Back != 0 {
		if in.Back > 0 && in.Frame == nil {
			m.Frame = frame(in.Back)
		}
		if m.Frame == nil || in.Frame != nil {
			return m, fmt.Errorf("message %s: its frame is not %d messages back", in.ID, in.Back)
		}
	}
	if m.Parts, err = unparts(in.Parts, rawOf(m.Frame)); err != nil {
		return m, fmt.Errorf("message %s: %w", in.ID, err)
	}
	return m, nil
}

func unparts(list []part, whole string) ([]thread.Part, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]thread.Part, len(list))
	for n := range list {
		o := &list[n]
		if o.Bytes != nil {
			o.Bytes.put(o.fields())
		}
		if len(o.RawAt) > 0 {
			if len(o.RawAt) != 2 || o.RawAt[0] < 0 || o.RawAt[1] < 0 || o.RawAt[0] > len(whole) || o.RawAt[1] > len(whole)-o.RawAt[0] {
				return nil, fmt.Errorf("part %d: raw_at %v is not in the frame of %d bytes", n, o.RawAt, len(whole))
			}
			o.Raw = whole[o.RawAt[0] : o.RawAt[0]+o.RawAt[1]]
		}
		from := thread.Source{API: o.API, Raw: o.Raw, Cache: o.Cache}
		switch o.Type {
		case typeText:
			out[n] = thread.Text{Text: o.Text, Source: from}
		case typeReasoning:
			out[n] = thread.Reasoning{Text: o.Text, Signature: o.Signature, Source: from}
		case typeMedia:
			out[n] = thread.Media{Type: o.Media, MIME: o.MIME, Name: o.Name, Detail: o.Detail, Data: o.Data, URL: o.URL, FileID: o.FileID, Text: o.Text, Source: from}
		case typeCall:
			out[n] = thread.ToolCall{ID: o.ID, Name: o.Name, Arguments: o.Arguments, Type: o.CallType, Signature: o.Signature, Source: from}
		case typeOpaque:
			out[n] = thread.Opaque{Kind: o.Kind, Text: o.Text, Source: from}
		case typeResult:
			r := thread.ToolResult{
				CallID: o.ID, Tool: o.Name, Outcome: o.Outcome, Structured: o.Structured,
				Durability: o.Durability, Determinism: o.Source, Source: from,
			}
			if o.Started != nil {
				r.Started = *o.Started
			}
			if o.Completed != nil {
				r.Completed = *o.Completed
			}
			var err error
			if r.Content, err = unparts(o.Content, whole); err != nil {
				return nil, err
			}
			if r.KeyFields, err = keyFields(o.KeyFields); err != nil {
				return nil, fmt.Errorf("key fields of call %s: %w", o.ID, err)
			}
			out[n] = r
		default:
			return nil, fmt.Errorf("part %d: type %q is not known: %w", n, o.Type, ErrVersion)
		}
	}
	return out, nil
}

// keyFields reads numbers as float64, and as int where only that is exact.
func keyFields(data json.RawMessage) (thread.Fields, error) {
	if len(data) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil, err
	}
	for k, v := range fields {
		n, err := number(v)
		if err != nil {
			return nil, err
		}
		fields[k] = n
	}
	return fields, nil
}

func number(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		const exact = 1 << 53
		if n, err := v.Int64(); err == nil && (n > exact || n < -exact) && n >= math.MinInt && n <= math.MaxInt && !strings.ContainsAny(v.String(), ".eE") {
			return int(n), nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			n, err := number(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = n
		}
	case map[string]any:
		for k := range v {
			n, err := number(v[k])
			if err != nil {
				return nil, err
			}
			v[k] = n
		}
	}
	return v, nil
}
