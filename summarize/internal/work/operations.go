package work

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// changing begin the names of tools that change something.
var changing = scan.WordSet("book cancel update modify exchange return send create transfer add remove delete set assign refund pay order place submit " +
	"approve reject change edit reset enable disable activate deactivate suspend resume grant revoke upload post publish close " +
	"reopen rename merge schedule reschedule register unregister subscribe unsubscribe charge reserve purchase buy sell rebook " +
	"toggle reboot unlock lock save start stop deploy escalate invite archive restore move insert issue apply reply comment record " +
	"withdraw deposit redeem replace")

// changes reports whether a tool changes something, by the first word of its name.
func changes(name string) bool {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) {
		name = name[i+2:]
	}
	if i := strings.LastIndexAny(name, "./:"); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	capital := min(1, len(name)) // BookFlight
	end := capital + strings.IndexFunc(name[capital:]+"_", func(c rune) bool { return c < 'a' || c > 'z' })
	return changing[strings.ToLower(name[:end])]
}

// refusals begin the answer of a system that refused an operation.
var refusals = []string{
	"error:", "error -", "error executing", "failed", "failure", "not allowed", "unable to", "cannot ", "can't ", "could not", "forbidden", "unauthorized",
	"permission denied", "access denied", "invalid ", "insufficient", "not enough", "request failed", "declined", "denied", "rejected", "<tool_use_error>",
	"mcp error", "exception:",
}

// refusal is why a system refused an operation: the first line of a text, or the error in a JSON
// document; "" if it did not refuse.
func refusal(head, text string) string {
	if strings.HasPrefix(head, "{") && rawjson.Valid(text) {
		return refusedIn(gjson.Parse(text))
	}
	first, _, _ := strings.Cut(head, "\n")
	for _, mark := range refusals {
		if scan.HasPrefixFold(first, mark) {
			return clip.Brief(first, maxQuote)
		}
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

// breakdowns are words of systems that fail without deciding anything.
var breakdowns = []string{"timed out", "timeout", "connection", "unavailable", "internal server error", "internal error"}

// breaksDown reports whether an error is no refusal.
func breaksDown(why string) bool {
	return slices.ContainsFunc(breakdowns, func(mark string) bool { return strings.Contains(strings.ToLower(why), mark) })
}

// maxAnswer bounds what is kept of the answer to an operation, in bytes.
const maxAnswer = 100

// shortAnswer is an answer on one line; of a JSON object, its first plain members.
func shortAnswer(text string) string {
	s := strings.TrimSpace(text)
	if !strings.HasPrefix(s, "{") || !rawjson.Valid(s) {
		return clip.Brief(s, maxAnswer)
	}
	var b strings.Builder
	gjson.Parse(s).ForEach(func(k, v gjson.Result) bool {
		if v.IsObject() || v.IsArray() || v.Type == gjson.Null || v.Type == gjson.String && v.Str == "" {
			return b.Len() == 0
		}
		part := k.Str + "=" + clip.Brief(v.String(), 60)
		if b.Len() > 0 && b.Len()+len(part) > maxAnswer*6/10 {
			return false
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(part)
		return true
	})
	return clip.Brief(b.String(), maxAnswer)
}
