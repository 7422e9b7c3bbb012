package thread

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
)

// Outcome is how a tool call ended.
type Outcome string

// The outcomes. If a provider only flags errors, no flag means Success.
const (
	Success Outcome = "success"
	Failure Outcome = "failure"
	Partial Outcome = "partial"
)

// Durability says what a compaction may do to a tool result.
type Durability string

const (
	// Ephemeral results may be cleared entirely.
	Ephemeral Durability = "ephemeral"
	// Anchoring results keep a summary and their key fields. This is the default.
	Anchoring Durability = "anchoring"
	// Replayable results may be cleared only while their determinism metadata shows that
	// the tool would return the same again.
	Replayable Durability = "replayable"
	// NonReplayable results are externalized or kept.
	NonReplayable Durability = "non_replayable"
)

// Fields are named values that survive compaction: ids, paths, errors. They are JSON values
// (string, float64, int, bool, nil, []any, map[string]any).
type Fields map[string]any

// ToolResult is the result of a tool call.
type ToolResult struct {
	CallID  string
	Tool    string
	Outcome Outcome
	// Denied says that the call was not allowed, by the record that the agent's program keeps
	// of it: the content is the program's words, with what the user said. The content itself
	// never tells: any tool could print the same. It does not count for the message's id.
	Denied bool
	// Said is what the user said in the content, by the agent's own structure: an identified agent, a
	// tool of its own, and the place where it puts the user's words. The rest of the content is the
	// tool's. It does not count for the message's id.
	Said []Said
	// Author is who wrote the content if no tool of the client did: another agent or the provider. It
	// does not count for the message's id.
	Author Author
	// Program says that a program of the provider made the call, and it alone reads the content: the
	// model does not, so that it takes no tokens. It does not count for the message's id.
	Program bool
	// Content is what the model saw: text, media and opaque parts.
	Content []Part
	// Structured is the content as JSON if the tool returned data, else empty.
	Structured string
	// KeyFields survive clearing.
	KeyFields Fields
	// Durability is empty if nobody declared one; see package toolpolicy.
	Durability Durability
	// Determinism describes the source when the tool read it.
	Determinism        *Determinism
	Started, Completed time.Time
	Source
}

// Text joins the text of the result's content with newlines.
func (r ToolResult) Text() string {
	var texts []string
	for _, p := range r.Content {
		switch p := p.(type) {
		case Text:
			texts = append(texts, p.Text)
		case Media:
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		case Opaque:
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// Cleared returns the placeholder of a cleared result: the tool and its outcome, and its key
// fields together with extra, sorted by name. For a field in both, extra wins.
func (r ToolResult) Cleared(extra Fields) string {
	head := "[" + r.Tool + ": " + string(cmp.Or(r.Outcome, Success)) + "]"
	if len(r.KeyFields)+len(extra) == 0 {
		return head
	}
	fields := make(Fields, len(r.KeyFields)+len(extra))
	maps.Copy(fields, r.KeyFields)
	maps.Copy(fields, extra)
	return head + "\nKey data: " + fields.String()
}

// String returns the fields as JSON, sorted by name, with a space after commas and colons. A
// value that JSON cannot represent becomes null.
func (f Fields) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(f)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(canonjson.Spaced(name))
		b.WriteString(": ")
		b.WriteString(canonjson.Spaced(f[name]))
	}
	b.WriteByte('}')
	return b.String()
}

// UnmarshalJSON reads numbers as float64, or as int if only that is exact.
func (f *Fields) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return err
	}
	*f = fields
	_, err := number(fields)
	return err
}

// number converts the json.Numbers in a JSON value, in place.
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

// Determinism describes the source of a replayable result, so that a later comparison shows
// whether running the tool again would return the same.
type Determinism struct {
	ContentHash string  `json:"content_hash,omitempty"`
	ETag        string  `json:"etag,omitempty"`
	MTime       float64 `json:"mtime,omitempty"` // Unix time in seconds
	Version     string  `json:"version,omitempty"`
}

// Changed reports whether the source has changed since d was captured. It compares the first
// of content hash, ETag, modification time and version that both have. If there is none, it
// returns true.
func (d Determinism) Changed(current Determinism) bool {
	switch {
	case d.ContentHash != "" && current.ContentHash != "":
		return d.ContentHash != current.ContentHash
	case d.ETag != "" && current.ETag != "":
		return d.ETag != current.ETag
	case d.MTime != 0 && current.MTime != 0:
		return d.MTime != current.MTime
	case d.Version != "" && current.Version != "":
		return d.Version != current.Version
	}
	return true
}
