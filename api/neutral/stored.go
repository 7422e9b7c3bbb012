package neutral

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var errNewer = errors.New("written by a newer version")

// storedVersion is the version of the form. Readers refuse later ones. In version 1, calls and
// results had the call's id under "id" and the tool under "name". What is written says version 2 if
// no text was cut out of its frame.
const storedVersion = 3

// stored is a message, and what callers have no business with but ids and exact bytes need:
// the bytes that it was read from, which go to their provider unchecked.
type stored struct {
	V int `json:"v"`
	Message
	Parts []storedPart `json:"parts,omitempty"`
	// Frame is written once; what shares it has the distance to the message before that does.
	Frame *storedFrame `json:"frame,omitempty"`
	Back  int          `json:"frame_back,omitempty"`
	Index int          `json:"frame_index,omitempty"`
	Bytes blobs        `json:"bytes,omitempty"`
}

type storedFrame struct {
	API      string `json:"api,omitempty"`
	Raw      string `json:"raw,omitempty"`
	Position int    `json:"position,omitempty"`
	Elements int    `json:"elements,omitempty"`
	Messages int    `json:"messages,omitempty"`
	Bytes    blobs  `json:"bytes,omitempty"`
}

type storedPart struct {
	Part
	ID         string       `json:"id,omitempty"` // of version 1
	Content    []storedPart `json:"content,omitempty"`
	Structured string       `json:"structured,omitempty"` // the exact text
	RawAt      []int        `json:"raw_at,omitempty"`     // where Raw begins in the frame, and its length, in bytes
	TextAt     int          `json:"text_at,omitempty"`    // where Text, quoted, was cut out of the frame's raw; 0 if it was not
	Cache      string       `json:"cache,omitempty"`
	Beside     bool         `json:"beside,omitempty"`
	Program    bool         `json:"program,omitempty"`
	Bytes      blobs        `json:"bytes,omitempty"`
}

// blobs are texts that are not valid UTF-8, which JSON cannot hold, by the name of their
// field. Inside the key fields of results, which are JSON values, they are not kept exactly.
type blobs map[string][]byte

// extractBlobs moves texts that JSON cannot hold out of the fields of a form.
func extractBlobs(form any) (out blobs) {
	eachText(reflect.ValueOf(form).Elem(), func(of reflect.Type, i int, text reflect.Value) {
		if !utf8.ValidString(text.String()) {
			if out == nil {
				out = blobs{}
			}
			out[jsonName(of, i)] = []byte(text.String())
			text.SetString("")
		}
	})
	return out
}

// restore moves the texts back into the fields of a form.
func (b blobs) restore(form any) {
	if b == nil {
		return
	}
	eachText(reflect.ValueOf(form).Elem(), func(of reflect.Type, i int, text reflect.Value) {
		if data, ok := b[jsonName(of, i)]; ok {
			text.SetString(string(data))
		}
	})
}

// eachText calls do with every text of a struct, and the field that it is.
func eachText(form reflect.Value, do func(of reflect.Type, i int, text reflect.Value)) {
	for i := range form.NumField() {
		switch f := form.Field(i); {
		case f.Kind() == reflect.Struct && form.Type().Field(i).Anonymous:
			eachText(f, do)
		case f.Kind() == reflect.String:
			do(form.Type(), i, f)
		}
	}
}

func jsonName(of reflect.Type, i int) string {
	name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
	return name
}

// frameDistance is how many messages before position i is the nearest one with the same
// frame; 0 if there is none.
func frameDistance(t *thread.Thread, i int) int {
	f := t.At(i).Frame
	for back := 1; f != nil && back <= i && back <= max(f.Messages(), 1); back++ {
		if t.At(i-back).Frame == f {
			return back
		}
	}
	return 0
}

// Marshal writes message i of a thread as stores and exports keep it: in neutral form with
// the bytes that it was read from, so that its id is the same when it is read back. The
// number of its turn is left out. The error names what JSON cannot hold: a number that is
// not finite, a time of no real year.
func Marshal(t *thread.Thread, i int) ([]byte, error) {
	m := t.At(i)
	out := stored{V: 2, Message: MessageOf(m), Back: frameDistance(t, i), Index: m.Index}
	out.Turn = 0
	if m.Kind != thread.Plain && out.Kind == "" {
		return nil, fmt.Errorf("message %s: kind %d is not known", m.ID, m.Kind)
	}
	var err error
	if out.Parts, err = storedParts(m.Parts, out.Message.Parts, rawOf(m.Frame)); err != nil {
		return nil, fmt.Errorf("message %s: %w", m.ID, err)
	}
	if m.Frame != nil && out.Back == 0 {
		f := storedFrame{API: m.Frame.API(), Position: m.Frame.Position(), Elements: m.Frame.Elements(), Messages: m.Frame.Messages()}
		var cut bool
		if f.Raw, cut = cutTexts(m.Frame, out.Parts); cut {
			out.V = storedVersion
		}
		f.Bytes = extractBlobs(&f)
		out.Frame = &f
	}
	out.Bytes = extractBlobs(&out)
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(out); err != nil {
		return nil, fmt.Errorf("message %s: %w", m.ID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// rawOf is the text of a frame in which bytes of parts are looked for; "" of one that would have to be made for that.
func rawOf(f *thread.Frame) string {
	if f == nil {
		return ""
	}
	if raw, at, _ := f.Cut(); at == 0 {
		return raw
	}
	return ""
}

// minFramePiece is the length, in bytes, from which on a piece is written as a place in the
// frame.
const minFramePiece = 24

// storedParts adds to the neutral form of parts what is needed to restore them.
func storedParts(list []thread.Part, plain []Part, whole string) ([]storedPart, error) {
	out := make([]storedPart, len(list))
	for n, p := range list {
		o := storedPart{Part: plain[n], Cache: p.From().Cache, Beside: p.From().Beside}
		if o.Type == "" {
			return nil, fmt.Errorf("part %d is of no known type (%T)", n, p)
		}
		o.API, o.Raw = p.From().API, p.From().Raw
		if len(o.Raw) >= minFramePiece {
			if at := strings.Index(whole, o.Raw); at >= 0 {
				o.Raw, o.RawAt = "", []int{at, len(o.Raw)}
			}
		}
		if r, ok := p.(thread.ToolResult); ok {
			var err error
			if o.Content, err = storedParts(r.Content, partsOf(r.Content), whole); err != nil {
				return nil, err
			}
			o.Structured, o.Program = r.Structured, r.Program
		}
		o.Bytes = extractBlobs(&o)
		out[n] = o
	}
	return out, nil
}

// minCutText is the length, in bytes, from which on a text is not written in the frame too.
const minCutText = 256

// cutTexts takes the long texts of parts out of the frame, up to one that is not in it.
func cutTexts(f *thread.Frame, parts []storedPart) (rest string, cut bool) {
	texts := textsOf(parts)
	if rest, at, text := f.Cut(); at > 0 && len(texts) == 1 && texts[0].Text == text {
		texts[0].TextAt = at
		return rest, true
	}
	raw := f.Raw()
	var kept strings.Builder
	for _, p := range texts {
		quoted := rawjson.Quote(p.Text)
		at := strings.Index(raw, quoted[:32]) // the search for a short text is the fast one
		if at <= 0 || !strings.HasPrefix(raw[at:], quoted) {
			break
		}
		kept.WriteString(raw[:at])
		raw, p.TextAt = raw[at+len(quoted):], kept.Len()
	}
	return kept.String() + raw, kept.Len() > 0
}

// putTexts puts them back.
func putTexts(raw string, parts []storedPart) (string, error) {
	var whole strings.Builder
	done := 0 // bytes of raw
	for _, p := range textsOf(parts) {
		if p.TextAt == 0 {
			break
		}
		if p.TextAt < done || p.TextAt > len(raw) {
			return "", fmt.Errorf("text_at %d is not in the frame of %d bytes", p.TextAt, len(raw))
		}
		whole.WriteString(raw[done:p.TextAt])
		whole.WriteString(rawjson.Quote(p.Text))
		done = p.TextAt
	}
	return whole.String() + raw[done:], nil
}

// textsOf are the parts with long texts, those in results too.
func textsOf(parts []storedPart) (out []*storedPart) {
	for i := range parts {
		if p := &parts[i]; len(p.Text) >= minCutText {
			out = append(out, p)
		}
		out = append(out, textsOf(parts[i].Content)...)
	}
	return out
}

// Unmarshal reads what Marshal wrote. frame returns the frame of the message so many
// positions before this one, or nil.
func Unmarshal(data []byte, frame func(back int) *thread.Frame) (m thread.Message, err error) {
	var in stored
	if err := json.Unmarshal(data, &in); err != nil {
		return m, fmt.Errorf("message: %w", err)
	}
	if in.V < 1 || in.V > storedVersion {
		return m, fmt.Errorf("message %s: version %d, this program reads up to version %d: %w", in.ID, in.V, storedVersion, errNewer)
	}
	in.Bytes.restore(&in)
	if f := in.Frame; f != nil {
		f.Bytes.restore(f)
		if f.Raw, err = putTexts(f.Raw, in.Parts); err != nil {
			return m, fmt.Errorf("message %s: %w", in.ID, err)
		}
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
	list, err := readParts(in.Parts, in.V, rawOf(m.Frame))
	if err != nil {
		return m, fmt.Errorf("message %s: %w", in.ID, err)
	}
	out, known := in.exact(list)
	if !known {
		return m, fmt.Errorf("message %s: kind %q is not known: %w", in.ID, in.Kind, errNewer)
	}
	out.Frame, out.Index = m.Frame, in.Index
	return out, nil
}

func readParts(list []storedPart, v int, whole string) ([]thread.Part, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]thread.Part, len(list))
	for n := range list {
		o := &list[n]
		o.Bytes.restore(o)
		if v == 1 && (o.Type == ToolCallPart || o.Type == ToolResultPart) {
			o.CallID, o.Tool, o.ID, o.Name = o.ID, o.Name, "", ""
		}
		if len(o.RawAt) > 0 {
			if len(o.RawAt) != 2 || o.RawAt[0] < 0 || o.RawAt[1] < 0 || o.RawAt[0] > len(whole) || o.RawAt[1] > len(whole)-o.RawAt[0] {
				return nil, fmt.Errorf("part %d: raw_at %v is not in the frame of %d bytes", n, o.RawAt, len(whole))
			}
			o.Raw = whole[o.RawAt[0] : o.RawAt[0]+o.RawAt[1]]
		}
		content, err := readParts(o.Content, v, whole)
		if err != nil {
			return nil, err
		}
		p, known := o.exact(content, thread.Source{API: o.API, Raw: o.Raw, Cache: o.Cache, Beside: o.Beside})
		if !known {
			return nil, fmt.Errorf("part %d: type %q is not known: %w", n, o.Type, errNewer)
		}
		if r, ok := p.(thread.ToolResult); ok {
			r.Structured, r.Program = o.Structured, o.Program
			p = r
		}
		out[n] = p
	}
	return out, nil
}
