package scenario

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// words are those of a check: plain, or texts in quotes as Go writes them.
var words = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

// check holds the request of the last step against a line that begins with ">". For N stands a number, or >= or <=
// and a number; texts stand in quotes. The checks are
//
//	plan N                         the version of the plan in force; 0: none
//	messages N                     messages of the request, the system prompt aside
//	has "a" "b"                    all of these stand in the request, the system prompt included; each message
//	                               begins with its role there: "user: Go on."
//	lacks "a" "b"                  none of these does
//	count "a" N                    how often it does
//	order "a" "b"                  they do, in this order
//	line "a" "b" "c"               each line that has the first has one of the others
//	message 0 user is "a"          the first message (-1 is the last), its role and text; or "begins", or "has"
//	size 0 tokens N                its size, in tokens or characters
//	tokens <= N                    the size of the request
//	unchanged                      the request is that of the step before
//	tools recall read_artifact     these, and none beside the agent's own, are offered
//	compacted-tools recall         the same once there is a plan, and none before
//	records summarize N            records of the plan
//	asked N                        how often the summarizer was asked
//	asked 2 has "a" "b"            what it was asked the second time; or "lacks", or "is". With from "a" to "b"
//	                               before it: what stands between these
//	told "x" "y source=z"          the events of these types, in this order, with these details
//	left-out N                     sentences of the summarizer's that were not taken
func (r *runner) check(l line, text string) {
	r.Helper()
	var args []string
	for _, w := range words.FindAllString(text, -1) {
		if strings.HasPrefix(w, `"`) {
			unquoted, err := strconv.Unquote(w)
			if err != nil {
				r.wrong(l, "%s: %v", w, err)
				return
			}
			w = unquoted
		}
		args = append(args, w)
	}
	if r.shown == nil || len(args) == 0 {
		r.wrong(l, "no step came before, or nothing is checked")
		return
	}
	kind, args := args[0], args[1:]
	switch all := r.text(); {
	case kind == "plan" && len(args) > 0:
		r.number(l, r.version, args)
	case kind == "messages" && len(args) > 0:
		r.number(l, len(r.shown.Messages), args)
	case (kind == "has" || kind == "lacks") && len(args) > 0:
		r.holds(l, all, kind, args)
	case kind == "count" && len(args) > 1:
		r.number(l, strings.Count(all, args[0]), args[1:])
	case kind == "order" && len(args) > 1:
		at := -1
		for _, next := range args {
			n := strings.Index(all, next)
			if n <= at {
				r.wrong(l, "%q stands at %d, behind %d, in\n%.2500s\n", next, n, at, all)
			}
			at = n
		}
	case kind == "line" && len(args) > 1:
		for shown := range strings.Lines(all) {
			if strings.Contains(shown, args[0]) && !slices.ContainsFunc(args[1:], func(want string) bool { return strings.Contains(shown, want) }) {
				r.wrong(l, "a line says %q", strings.TrimSpace(shown))
			}
		}
	case kind == "message" && len(args) == 4:
		if m := r.message(l, args[0]); m != nil && (string(m.Role) != args[1] || !fits(args[2], textOf(m), args[3])) {
			r.wrong(l, "it is of the %s: %.2500q", m.Role, textOf(m))
		}
	case kind == "size" && len(args) > 2 && args[1] == "tokens":
		if m := r.message(l, args[0]); m != nil {
			r.number(l, r.count.Text(textOf(m)), args[2:])
		}
	case kind == "size" && len(args) > 2 && args[1] == "characters":
		if m := r.message(l, args[0]); m != nil {
			r.number(l, utf8.RuneCountInString(textOf(m)), args[2:])
		}
	case kind == "tokens" && len(args) > 0:
		r.number(l, r.count.Prompt(r.shown), args)
	case kind == "unchanged":
		if r.before == nil || !reflect.DeepEqual(r.before.Messages, r.shown.Messages) || !reflect.DeepEqual(r.before.System, r.shown.System) {
			r.wrong(l, "it is\n%.2500s\n", all)
		}
	case kind == "tools", kind == "compacted-tools":
		var offered []string
		for _, tool := range r.shown.Tools {
			if tool.Name != "inspect" {
				offered = append(offered, tool.Name)
			}
		}
		if kind == "compacted-tools" && r.version == 0 {
			args = nil
		}
		slices.Sort(offered)
		slices.Sort(args)
		if !slices.Equal(offered, args) {
			r.wrong(l, "under plan %d these are offered: %q", r.version, offered)
		}
	case kind == "records" && len(args) > 1:
		n := 0
		if r.plan != nil {
			for _, ref := range r.plan.Refs() {
				if ref.Action.String() == args[0] {
					n++
				}
			}
		}
		r.number(l, n, args[1:])
	case kind == "asked" && len(args) > 0 && r.model != nil:
		r.asked(l, args)
	case kind == "told" && len(args) > 0:
		r.told(l, args)
	case kind == "left-out" && len(args) > 0:
		n := 0
		for _, e := range r.heard.all() {
			for detail, value := range e.Details {
				if count, ok := value.(int); ok && e.Type == event.Asked && strings.HasPrefix(detail, "dropped_") {
					n += count
				}
			}
		}
		r.number(l, n, args)
	default:
		r.wrong(l, "there is no such check, or it lacks something")
	}
}

// number holds n against "5", ">= 5" or "<= 5".
func (r *runner) number(l line, n int, args []string) {
	r.Helper()
	want, err := strconv.Atoi(args[len(args)-1])
	met := map[string]bool{"5": n == want, ">= 5": n >= want, "<= 5": n <= want}[strings.Join(append(slices.Clone(args[:len(args)-1]), "5"), " ")]
	if err != nil || !met {
		r.wrong(l, "it is %d", n)
	}
}

// fits says whether a text is, begins or has another.
func fits(kind, text, want string) bool {
	return map[string]bool{"is": text == want, "begins": strings.HasPrefix(text, want), "has": strings.Contains(text, want), "lacks": !strings.Contains(text, want)}[kind]
}

// holds holds a text against each of several.
func (r *runner) holds(l line, text, kind string, wants []string) {
	r.Helper()
	for _, want := range wants {
		if !fits(kind, text, want) {
			r.wrong(l, "not so of %.300q in\n%.4000s\n", want, text)
		}
	}
}

// message is the n-th message of the request; -1 is the last.
func (r *runner) message(l line, number string) *thread.Message {
	r.Helper()
	n, err := strconv.Atoi(number)
	if n < 0 {
		n += len(r.shown.Messages)
	}
	if err != nil || n < 0 || n >= len(r.shown.Messages) {
		r.wrong(l, "there are %d messages", len(r.shown.Messages))
		return nil
	}
	return &r.shown.Messages[n]
}

// asked checks how often the summarizer was asked, or what.
func (r *runner) asked(l line, args []string) {
	r.Helper()
	asked := r.model.Asked()
	if len(args) < 3 {
		r.number(l, len(asked), args)
		return
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > len(asked) {
		r.wrong(l, "it was asked %d times", len(asked))
		return
	}
	var b strings.Builder
	for _, s := range asked[n-1].Prompt.System {
		b.WriteString(s.Text + "\n")
	}
	for i := range asked[n-1].Prompt.Messages {
		b.WriteString(asked[n-1].Prompt.Messages[i].Text() + "\n")
	}
	text, ok := b.String(), true
	for args = args[1:]; len(args) > 3 && (args[0] == "from" || args[0] == "to"); args = args[2:] {
		if before, behind, found := strings.Cut(text, args[1]); args[0] == "from" {
			text, ok = behind, ok && found
		} else {
			text, ok = before, ok && found
		}
	}
	if !ok {
		r.wrong(l, "it was asked\n%s\n", b.String())
		return
	}
	r.holds(l, text, args[0], args[1:])
}

// told checks events: those of the types that args begin with.
func (r *runner) told(l line, args []string) {
	r.Helper()
	var told []string
	for _, e := range r.heard.all() {
		for _, arg := range args {
			of, detail, _ := strings.Cut(arg, " ")
			if string(e.Type) != of {
				continue
			}
			name, _, _ := strings.Cut(detail, "=")
			if value := e.Details[name]; value != nil {
				of += fmt.Sprintf(" %s=%v", name, value)
			}
			told = append(told, of)
			break
		}
	}
	if !slices.Equal(told, args) {
		r.wrong(l, "told: %q", told)
	}
}

// text is all that the model reads, each message behind its role.
func (r *runner) text() string {
	var b strings.Builder
	for _, s := range r.shown.System {
		fmt.Fprintf(&b, "system: %s\n", s.Text)
	}
	for i := range r.shown.Messages {
		fmt.Fprintf(&b, "%s: %s\n", r.shown.Messages[i].Role, textOf(&r.shown.Messages[i]))
	}
	return b.String()
}

// textOf is all that a message says: texts, calls, results.
func textOf(m *thread.Message) string {
	var all []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Text:
			all = append(all, p.Text)
		case thread.ToolCall:
			all = append(all, p.Name+p.Arguments)
		case thread.ToolResult:
			all = append(all, p.Text())
		}
	}
	return strings.Join(all, "\n")
}
