// Package codec holds what the codecs of all APIs share. The validators do not use it,
// so that they can find its mistakes.
package codec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Format reports errors about bodies that are not requests of an API. It is the API's
// name in those errors.
type Format string

// Errorf is an error about the value at a JSON path. It wraps wire.ErrFormat.
func (f Format) Errorf(path, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %s: %w", string(f), path, fmt.Sprintf(format, args...), wire.ErrFormat)
}

// Check reports what is wrong with a text that should be one JSON document.
func (f Format) Check(doc string) error {
	if err := rawjson.Check(doc); err != nil {
		return f.Errorf("body", "%v", err)
	}
	return nil
}

// Open opens a body that passed Check. A field of once that stands twice is an error:
// nobody could tell which of the two the provider reads. name spells keys; see
// rawjson.Open.
func (f Format) Open(doc string, name func(string) string, once ...string) (*rawjson.Document, error) {
	d, ok := rawjson.Open(doc, name)
	if !ok {
		return nil, f.Errorf("body", "want a JSON object")
	}
	if twice := d.FirstDuplicate(once...); twice != "" {
		return nil, f.Errorf(twice, "given twice; send it once")
	}
	return d, nil
}

// Read opens a body that may be anything, with open of its API.
func (f Format) Read(body string, open func(body string) (*rawjson.Document, error)) (*rawjson.Document, error) {
	if err := f.Check(body); err != nil {
		return nil, err
	}
	return open(body)
}

// Base returns the body that a prompt was read from, for its changed members to be set,
// or an empty object for a prompt of another API. It sets the model.
func Base(p *prompt.Prompt, api string, open func(body string) (*rawjson.Document, error)) (d *rawjson.Document, spliced bool, err error) {
	if spliced = p.Source != nil && p.Source.API == api; spliced {
		d, err = open(p.Source.Body)
	} else {
		d, _ = rawjson.Open("{}", nil)
	}
	if err == nil && (!spliced || p.Model != d.Get("model").Str) {
		d.Set("model", rawjson.Quote(p.Model))
	}
	return d, spliced, err
}

// Objects returns the elements of an array of objects; none where it is null or missing.
// what is the word for an element in errors.
func (f Format) Objects(path string, array gjson.Result, what string) ([]gjson.Result, error) {
	if array.Type != gjson.Null && !array.IsArray() {
		return nil, f.Errorf(path, "want an array")
	}
	list, bad := rawjson.Objects(array, nil)
	if bad >= 0 {
		return nil, f.Errorf(fmt.Sprintf("%s[%d]", path, bad), "want %s", what)
	}
	return list, nil
}

// WholeFrame returns how many messages at the start of a list are all those that were
// read from one element of a request of the API, in order. It is 0 where one of them is
// missing or was replaced: then the element cannot be sent as it was read.
func WholeFrame(list []thread.Message, api string) int {
	f := list[0].Frame
	if f == nil || f.API() != api || !f.HasRaw() || f.Messages() < 1 || f.Messages() > len(list) {
		return 0
	}
	for i := range list[:f.Messages()] {
		if list[i].Frame != f || list[i].Index != i {
			return 0
		}
	}
	return f.Messages()
}

// CacheTTL reads a cache_control member. The default of Anthropic's models, through
// whichever API they are asked, is five minutes.
func CacheTTL(mark gjson.Result) string {
	if !mark.IsObject() {
		return ""
	}
	return cmp.Or(mark.Get("ttl").Str, "5m")
}

// IsPlain reports whether s has 1 to most of the characters a-z, A-Z, 0-9, _ and -.
func IsPlain(s string, most int) bool {
	return s != "" && len(s) <= most && !slices.ContainsFunc([]byte(s), func(c byte) bool { return !PlainByte(c) })
}

// PlainByte reports whether c is one of a-z, A-Z, 0-9, _ and -.
func PlainByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// FitPlainName is FitName for APIs that allow PlainByte anywhere in a name.
func FitPlainName(name string, most int) string {
	return FitName(name, most, func(c byte, _ bool) bool { return PlainByte(c) })
}

// FitName returns a tool's name in the bytes and the length that an API allows; allowed
// is asked for each byte, and whether it comes first. A name that has to change ends in a
// hash of itself, so that two tools never share a name, and one tool has the same name in
// its declaration, its calls and its results.
func FitName(name string, most int, allowed func(c byte, first bool) bool) string {
	b := []byte(name)
	fits := name != "" && len(name) <= most
	for i, c := range b {
		if !allowed(c, i == 0) {
			fits = false
		}
		if !allowed(c, false) {
			b[i] = '_'
		}
	}
	if fits {
		return name
	}
	if len(b) == 0 || !allowed(b[0], true) {
		b = append([]byte{'_'}, b...)
	}
	return string(b[:min(len(b), most-9)]) + "_" + Hash(name, 4)
}

// Hash returns so many bytes of a hash of s, in hexadecimal digits.
func Hash(s string, bytes int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:bytes])
}

// NoAnswer is an error that wraps wire.ErrAnswer.
func NoAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %w", wire.ErrAnswer, fmt.Errorf(format, args...))
}

// ParseAnswer parses an answer in one piece. The error wraps wire.ErrAnswer.
func ParseAnswer(body []byte) (gjson.Result, error) {
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		return gjson.Result{}, NoAnswer("%w", err)
	}
	return gjson.Parse(doc), nil
}

// stops are the words of all APIs and servers for why a model stopped, in lower case.
var stops = map[string]wire.Stop{
	"stop": wire.StopEnd, "eos": wire.StopEnd, "eos_token": wire.StopEnd, "end_turn": wire.StopEnd, "stop_sequence": wire.StopEnd,
	"length": wire.StopLength, "max_tokens": wire.StopLength, "model_length": wire.StopLength,
	"tool_calls": wire.StopTool, "function_call": wire.StopTool, "tool_use": wire.StopTool,
	"refusal":        wire.StopRefusal,
	"content_filter": wire.StopFilter, "safety": wire.StopFilter, "recitation": wire.StopFilter, "prohibited_content": wire.StopFilter,
	"sensitive": wire.StopFilter, "blocklist": wire.StopFilter, "spii": wire.StopFilter, "image_safety": wire.StopFilter,
	"model_context_window_exceeded": wire.StopContext, // Anthropic, z.ai
}

// StopOf returns what a provider's word for stopping means. No word is "": a stream that
// goes on has none yet, and the codecs know what an answer without one means.
func StopOf(reason string) wire.Stop {
	if reason == "" {
		return ""
	}
	return cmp.Or(stops[strings.ToLower(reason)], wire.StopOther)
}
