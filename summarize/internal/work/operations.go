package work

import (
	"cmp"
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

const maxAnswer = 100 // bytes that are kept of the answer to an operation

// shortAnswer is an answer on one line; of a JSON object, its first plain members.
func shortAnswer(text string) (parts []string) {
	s := strings.TrimSpace(text)
	if !strings.HasPrefix(s, "{") || !rawjson.Valid(s) {
		return []string{clip.Brief(s, maxAnswer)}
	}
	size := 0
	gjson.Parse(s).ForEach(func(k, v gjson.Result) bool {
		if v.IsObject() || v.IsArray() || v.Type == gjson.Null || v.Type == gjson.String && v.Str == "" {
			return size == 0
		}
		part := clip.Brief(k.Str+"="+clip.Brief(v.String(), 60), maxAnswer)
		if size > 0 && size+len(part) > maxAnswer*6/10 {
			return false
		}
		size, parts = size+len(part)+1, append(parts, part)
		return true
	})
	return parts
}

// repeats reports whether a part of an answer stands in the call; an only argument has no name there.
func (c *Call) repeats(part string) bool {
	return strings.Contains(" "+c.Input+" ", " "+part+" ") || strings.HasSuffix(part, "="+c.Input)
}
