package neutral

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/thread"
)

var errNewer = errors.New("written by a newer version")

// storedVersion is the version of the form. Readers refuse later ones. In version 1, calls and
// results had the call's id under "id" and the tool under "name".
const storedVersion = 2

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
	eachText(reflect.ValueOf(form).Elem(), func(name string, text reflect.Value) {
		if !utf8.ValidString(text.String()) {
			if out == nil {
				out = blobs{}
			}
			out[name] = []byte(text.String())
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
	eachText(reflect.ValueOf(form).Elem(), func(name string, text reflect.Value) {
		if data, ok := b[name]; ok {
			text.SetString(string(data))
		}
	})
}

// eachText calls do with every text of a struct and its name in JSON.
func eachText(form reflect.Value, do func(name string, text reflect.Value)) {
	for i := range form.NumField() {
		switch f := form.Type().Field(i); {
		case f.Anonymous:
			eachText(form.Field(i), do)
		case f.Type.Kind() == reflect.String:
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			do(name, form.Field(i))
		}
	}
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
	out := stored{V: storedVersion, Message: MessageOf(m), Back: frameDistance(t, i), Index: m.Index}
	out.Turn = 0
	if m.Kind != thread.Plain && out.Kind == "" {
		return nil, fmt.Errorf("message %s: kind %d is not known", m.ID, m.Kind)
	}
	if m.Frame != nil && out.Back == 0 {
		f := storedFrame{API: m.Frame.API(), Raw: m.Frame.Raw(), Position: m.Frame.Position(), Elements: m.Frame.Elements(), Messages: m.Frame.Messages()}
		f.Bytes = extractBlobs(&f)
		out.Frame = &f
	}
	var err error
	if out.Parts, err = storedParts(m.Parts, out.Message.Parts, rawOf(m.Frame)); err != nil {
		return nil, fmt.Errorf("message %s: %w", m.ID, err)
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

func rawOf(f *thread.Frame) string {
	if f == nil {
		return ""
	}
	return f.Raw()
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
