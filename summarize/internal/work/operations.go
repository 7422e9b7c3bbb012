package work

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// refusal is why a system refused an operation, by the first line of a text or the error in a JSON document; or "".
func refusal(head, text string) string {
	if strings.HasPrefix(head, "{") && rawjson.Valid(text) {
		return refusedIn(gjson.Parse(text))
	}
	if first, _, _ := strings.Cut(head, "\n"); begins("refusing", first) {
		return clip.Brief(first, maxQuote)
	}
	return ""
}

// refusedIn is the error in a JSON document; "" if there is none.
func refusedIn(doc gjson.Result) string {
	why := func(v gjson.Result) string {
		return clip.Brief(rawjson.FirstText(v, "message", "detail", "reason"), maxQuote)
	}
	for _, key := range [...]string{"error", "errors", "error_message", "errorMessage"} {
		switch e := doc.Get(key); {
		case e.Type == gjson.String && strings.TrimSpace(e.Str) != "":
			return clip.Brief(e.Str, maxQuote)
		case e.IsObject(), e.IsArray() && len(e.Array()) > 0:
			return cmp.Or(why(e), clip.Brief(e.Raw, maxQuote))
		}
	}
	if doc.Get("success").Type == gjson.False || doc.Get("ok").Type == gjson.False || doc.Get("isError").Type == gjson.True {
		return cmp.Or(why(doc), "success false")
	}
	switch s := strings.ToLower(doc.Get("status").String()); s {
	case "error", "failed", "failure", "denied", "rejected":
		return cmp.Or(why(doc), "status "+s)
	}
	return ""
}

// Of the answer to an operation so many bytes of a text are kept, of a member of a document, and of all members; and so
// many members are read.
const (
	maxAnswer  = 110
	maxMember  = 60
	maxShown   = 60
	maxMembers = 64
)

// member is a plain member of the arguments of an operation or of the answer to it. An answer that is a text has no name.
type member struct {
	name, value string
	number      bool
}

// plainMembers are the first members of a JSON object that are no objects or lists, and say something.
func plainMembers(doc gjson.Result) (all []member) {
	if !doc.IsObject() {
		return nil
	}
	doc.ForEach(func(k, v gjson.Result) bool {
		if value := v.String(); value != "" && !v.IsObject() && !v.IsArray() {
			all = append(all, member{k.Str, value, v.Type == gjson.Number})
		}
		return len(all) < maxMembers
	})
	return all
}

// readAnswer reads an answer: a JSON object by its members, anything else as a text.
func readAnswer(text string) []member {
	s := strings.TrimSpace(text)
	if strings.HasPrefix(s, "{") && rawjson.Valid(s) {
		return plainMembers(gjson.Parse(s))
	}
	return []member{{value: clip.Brief(s, maxAnswer)}}
}

// shortAnswer tells on one line what an answer adds to the call, numbers first: they may be amounts.
func (c *Call) shortAnswer(answer []member) string {
	var parts []string
	size := 0
	for _, numbers := range [...]bool{true, false} {
		for _, m := range answer {
			if m.number != numbers {
				continue
			}
			if m.name == "" {
				return m.value
			}
			if slices.ContainsFunc(c.given, func(g member) bool { return g.name == m.name && g.value == m.value }) {
				continue
			}
			part := clip.Brief(m.name+"="+clip.Brief(m.value, maxMember), maxAnswer)
			if size == 0 || size+len(part) <= maxShown {
				size, parts = size+len(part)+1, append(parts, part)
			}
		}
	}
	return strings.Join(parts, " ")
}
