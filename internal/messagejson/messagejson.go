// Package messagejson writes messages of the log as JSON, for stores and exports: the
// neutral form of package api/neutral, and the bytes that a message was read from. Nothing
// is lost, so the ids of a message that is read back are the same.
//
// A message that shares its frame with an earlier one holds the distance to that message
// instead of the frame. The bytes of a part are mostly a piece of the frame, and then only
// their place is written. Turn numbers are not written; appending to a thread counts them
// anew.
//
// Texts that are not valid UTF-8, which JSON cannot hold, are kept under "bytes", in base64,
// by the name of their field. Inside the key fields of results, which are JSON values, such
// texts are not kept exactly.
package messagejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ErrVersion is wrapped by the error of Unmarshal for a message of a later
// version of this module.
var ErrVersion = errors.New("written by a newer version")

// version is the version of the form. Readers refuse later ones. In version 1, calls and
// results had the call's id under "id" and the tool under "name".
const version = 2

// message is the neutral form of a message, and what is needed to restore it byte for byte.
type message struct {
	V int `json:"v"`
	neutral.Message
	Parts []part `json:"parts,omitempty"`
	Frame *frame `json:"frame,omitempty"`
	Back  int    `json:"frame_back,omitempty"`
	Index int    `json:"frame_index,omitempty"`
	Bytes blobs  `json:"bytes,omitempty"`
}

type frame struct {
	API      string `json:"api,omitempty"`
	Raw      string `json:"raw,omitempty"`
	Position int    `json:"position,omitempty"`
	Elements int    `json:"elements,omitempty"`
	Messages int    `json:"messages,omitempty"`
	Bytes    blobs  `json:"bytes,omitempty"`
}

type part struct {
	neutral.Part
	ID         string `json:"id,omitempty"` // of version 1
	Content    []part `json:"content,omitempty"`
	Structured string `json:"structured,omitempty"`
	RawAt      []int  `json:"raw_at,omitempty"` // where Raw begins in the frame, and its length, in bytes
	Cache      string `json:"cache,omitempty"`
	Beside     bool   `json:"beside,omitempty"`
	Bytes      blobs  `json:"bytes,omitempty"`
}

// blobs are texts that are not valid UTF-8, by the name of their field.
type blobs map[string][]byte

// extractBlobs moves texts that JSON cannot hold out of the fields of a form.
func extractBlobs(form reflect.Value) (out blobs) {
	eachText(form, func(name string, text reflect.Value) {
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
func (b blobs) restore(form reflect.Value) {
	if b == nil {
		return
	}
	eachText(form, func(name string, text reflect.Value) {
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

func fields(form any) reflect.Value { return reflect.ValueOf(form).Elem() }

// FrameDistance returns how many messages before position i of a thread is the nearest one
// with the same frame; 0 if there is none.
func FrameDistance(t *thread.Thread, i int) int {
	f := t.At(i).Frame
	if f == nil {
		return 0
	}
	for back := 1; back <= i && back <= max(f.Messages(), 1); back++ {
		if t.At(i-back).Frame == f {
			return back
		}
	}
	return 0
}

// Marshal writes a message. back is its FrameDistance. The error names what JSON cannot
// hold: a number that is not finite, a time of no real year.
func Marshal(m *thread.Message, back int) ([]byte, error) {
	out := message{V: version, Message: neutral.MessageOf(m), Back: back, Index: m.Index}
	out.Turn = 0
	if m.Kind != thread.Plain && out.Kind == "" {
		return nil, fmt.Errorf("message %s: kind %d is not known", m.ID, m.Kind)
	}
	if m.Frame != nil && back == 0 {
		f := frame{API: m.Frame.API(), Raw: m.Frame.Raw(), Position: m.Frame.Position(), Elements: m.Frame.Elements(), Messages: m.Frame.Messages()}
		f.Bytes = extractBlobs(fields(&f))
		out.Frame = &f
	}
	var err error
	if out.Parts, err = encodeParts(m.Parts, out.Message.Parts, rawOf(m.Frame)); err != nil {
		return nil, fmt.Errorf("message %s: %w", m.ID, err)
	}
	out.Bytes = extractBlobs(fields(&out))
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

// encodeParts adds to the neutral form of parts what is needed to restore them.
func encodeParts(list []thread.Part, plain []neutral.Part, whole string) ([]part, error) {
	out := make([]part, len(list))
	for n, p := range list {
		o := part{Part: plain[n], Cache: p.From().Cache, Beside: p.From().Beside}
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
			if o.Content, err = encodeParts(r.Content, o.Part.Content, whole); err != nil {
				return nil, err
			}
			o.Structured = r.Structured
		}
		o.Bytes = extractBlobs(fields(&o))
		out[n] = o
	}
	return out, nil
}

// Unmarshal reads what Marshal wrote. frame returns the frame of the message so many
// positions before this one, or nil.
func Unmarshal(data []byte, frame func(back int) *thread.Frame) (m thread.Message, err error) {
	var in message
	if err := json.Unmarshal(data, &in); err != nil {
		return m, fmt.Errorf("message: %w", err)
	}
	if in.V < 1 || in.V > version {
		return m, fmt.Errorf("message %s: version %d, this program reads up to version %d: %w", in.ID, in.V, version, ErrVersion)
	}
	in.Bytes.restore(fields(&in))
	if f := in.Frame; f != nil {
		f.Bytes.restore(fields(f))
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
	list, err := decodeParts(in.Parts, in.V, rawOf(m.Frame))
	if err != nil {
		return m, fmt.Errorf("message %s: %w", in.ID, err)
	}
	out, known := in.Exact(list)
	if !known {
		return m, fmt.Errorf("message %s: kind %q is not known: %w", in.ID, in.Kind, ErrVersion)
	}
	out.Frame, out.Index = m.Frame, in.Index
	return out, nil
}

func decodeParts(list []part, v int, whole string) ([]thread.Part, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]thread.Part, len(list))
	for n := range list {
		o := &list[n]
		o.Bytes.restore(fields(o))
		if v == 1 && (o.Type == neutral.ToolCallPart || o.Type == neutral.ToolResultPart) {
			o.CallID, o.Tool, o.ID, o.Name = o.ID, o.Name, "", ""
		}
		if len(o.RawAt) > 0 {
			if len(o.RawAt) != 2 || o.RawAt[0] < 0 || o.RawAt[1] < 0 || o.RawAt[0] > len(whole) || o.RawAt[1] > len(whole)-o.RawAt[0] {
				return nil, fmt.Errorf("part %d: raw_at %v is not in the frame of %d bytes", n, o.RawAt, len(whole))
			}
			o.Raw = whole[o.RawAt[0] : o.RawAt[0]+o.RawAt[1]]
		}
		content, err := decodeParts(o.Content, v, whole)
		if err != nil {
			return nil, err
		}
		p, known := o.Exact(content, thread.Source{API: o.API, Raw: o.Raw, Cache: o.Cache, Beside: o.Beside})
		if !known {
			return nil, fmt.Errorf("part %d: type %q is not known: %w", n, o.Type, ErrVersion)
		}
		if r, ok := p.(thread.ToolResult); ok {
			r.Structured = o.Structured
			p = r
		}
		out[n] = p
	}
	return out, nil
}
