// Package codec holds what the codecs of all APIs share. The validators do not use it,
// so that they can find its mistakes.
package codec

import (
	"cmp"
	"fmt"

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
	if f == nil || f.API() != api || f.Raw() == "" || f.Messages() < 1 || f.Messages() > len(list) {
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
