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

// member is a plain member of the arguments of an operation or of the answer to it. A text has no name.
type member struct {
	name, value string
	order       int // 0 of a number, else 1
}

// membersOf are the first members of a JSON object that are no objects or lists, numbers first, which may be amounts; of
// anything else the text.
func membersOf(text string) (all []member) {
	s := strings.TrimSpace(text)
	if !strings.HasPrefix(s, "{") || !rawjson.Valid(s) {
		return []member{{value: clip.Brief(s, maxAnswer)}}
	}
	gjson.Parse(s).ForEach(func(k, v gjson.Result) bool {
		if value := v.String(); v.Type == gjson.Number {
			all = append(all, member{k.Str, value, 0})
		} else if value != "" && !v.IsObject() && !v.IsArray() {
			all = append(all, member{k.Str, value, 1})
		}
		return len(all) < maxMembers
	})
	slices.SortStableFunc(all, func(a, b member) int { return a.order - b.order })
	return all
}

// shortAnswer tells on one line what an answer adds to the call.
func (c *Call) shortAnswer(answer []member) string {
	var parts []string
	size := 0
	for _, m := range answer {
		if m.name == "" {
			return m.value
		}
		if part := clip.Brief(m.name+"="+clip.Brief(m.value, maxMember), maxAnswer); (size == 0 || size+len(part) <= maxShown) && !slices.Contains(c.given, m) {
			size, parts = size+len(part)+1, append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}
