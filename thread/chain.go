package thread

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"strconv"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
)

// volatile are fields of provider blocks that change without the content: cache marks move
// with every request.
var volatile = []string{"cache_control"}

// ChainID computes the id of a message from the id of the message before it ("" for the
// first) and its canonical content: role, name and parts. Turn, time, kind, durability,
// the bytes of the provider and members beside the content do not count. So the same history from another client has the
// same ids, and a rewritten history has different ones from the first difference on.
func ChainID(parent ID, m *Message) ID {
	h := sha256.New()
	w := hasher{bufio.NewWriterSize(h, 512)} // a hash takes no strings without a copy of each
	w.text(string(parent))
	w.text(string(m.Role))
	w.text(m.Name)
	w.parts(m.Parts)
	w.Flush()
	return ID(hex.EncodeToString(h.Sum(nil)[:16]))
}

// beside reports whether a part does not count.
func beside(p Part) bool { return p != nil && p.From().Beside }

// hasher writes fields with their lengths, so that different messages never give the same
// bytes.
type hasher struct{ *bufio.Writer }

func (w hasher) length(n int) {
	w.Write(binary.BigEndian.AppendUint64(w.AvailableBuffer(), uint64(n)))
}

func (w hasher) text(s string) {
	w.length(len(s))
	w.WriteString(s)
}

func (w hasher) parts(parts []Part) {
	n := len(parts)
	for _, p := range parts {
		if beside(p) {
			n--
		}
	}
	w.length(n)
	for _, p := range parts {
		if beside(p) {
			continue
		}
		switch p := p.(type) {
		case Text:
			w.WriteByte('t')
			w.text(p.Text)
		case Reasoning:
			w.WriteByte('r')
			w.text(p.Text)
			w.text(p.Signature)
		case Media:
			w.WriteByte('m')
			for _, s := range []string{string(p.Type), p.MIME, p.Name, p.Detail, p.Data, p.URL, p.FileID, p.Text} {
				w.text(s)
			}
		case ToolCall:
			w.WriteByte('c')
			w.text(p.ID)
			w.text(p.Name)
			w.text(p.Type)
			w.text(p.Signature)
			args, _ := canonjson.Canonical(p.Arguments)
			w.text(args)
		case ToolResult:
			w.WriteByte('o')
			w.text(p.CallID)
			w.text(string(p.Outcome))
			structured, _ := canonjson.Canonical(p.Structured)
			w.text(structured)
			w.parts(p.Content)
		case Opaque:
			w.WriteByte('x')
			w.text(p.Kind)
			doc, _ := canonjson.Without(p.Raw, volatile...)
			w.text(doc)
		}
	}
}

// Fingerprint returns a hash of the content of a message, for caches of one process. Equal
// messages have equal fingerprints under one seed.
func (m *Message) Fingerprint(seed maphash.Seed) uint64 {
	return fingerprint(seed, maphash.Comparable(seed, [3]string{string(m.Role), m.Name, strconv.Itoa(int(m.Kind))}), m.Parts)
}

func fingerprint(seed maphash.Seed, sum uint64, parts []Part) uint64 {
	for _, p := range parts {
		var fields [9]string
		switch p := p.(type) {
		case Text:
			fields = [9]string{"text", p.Text}
		case Reasoning:
			fields = [9]string{"reasoning", p.Text, p.Signature}
		case Media:
			fields = [9]string{"media", string(p.Type), p.MIME, p.Name, p.Detail, p.Data, p.URL, p.FileID, p.Text}
		case ToolCall:
			fields = [9]string{"call", p.ID, p.Name, p.Arguments, p.Type, p.Signature}
		case ToolResult:
			fields = [9]string{"result", p.CallID, p.Tool, string(p.Outcome), p.Structured, p.KeyFields.String(), strconv.Itoa(len(p.Content)), strconv.FormatBool(p.Denied), strconv.FormatBool(p.Program)}
			sum = fingerprint(seed, sum, p.Content)
		case Opaque:
			fields = [9]string{"opaque", p.Kind, p.Text, p.Raw}
		}
		sum = maphash.Comparable(seed, struct {
			before uint64
			fields [9]string
		}{sum, fields})
	}
	return sum
}
