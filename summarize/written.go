package summarize

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// written is what the assistant wrote for people through a call: a plan that it put before the
// user, or the body of a commit, a pull request, an issue or a comment. It says in the
// assistant's words what was done, and why.
type written struct {
	label string // where it wrote it
	text  string
}

const (
	inPlan    = "proposed plan"
	inCommit  = "in the commit message"
	inRequest = "in the pull request"
	inIssue   = "in the issue"
	inComment = "in a comment"
)

// writtenIn returns what a command line writes for people. What depends on an expansion of the
// shell is unknown and left out, and so is the subject of a commit, which the state of the work
// has.
func writtenIn(line []shell.Command) written {
	for i := range line {
		c := &line[i]
		var out written
		switch words := c.Plain(); {
		case c.Name() == "git" && len(words) > 1 && slices.Contains(words[1:min(len(words), 4)], "commit"):
			_, body, _ := strings.Cut(message(c, "-m", "--message", "-F", "--file"), "\n\n")
			out = written{inCommit, body}
		case c.Name() == "gh" && len(words) > 2, c.Name() == "glab" && len(words) > 2:
			out = written{placeOf(words[1], words[2]), message(c, "-b", "--body", "-F", "--body-file", "-m", "--message", "-d", "--description", "-f", "--field", "--raw-field")}
		}
		if out.text = withoutTrailers(out.text); out.label != "" && out.text != "" {
			return out
		}
	}
	return written{}
}

// placeOf says where a call of gh or glab writes a text: "gh pr create", "gh api".
func placeOf(command, action string) string {
	switch {
	case command == "api", action == "comment", action == "note", action == "review":
		return inComment
	case (command == "pr" || command == "mr") && (action == "create" || action == "edit"):
		return inRequest
	case command == "issue" && (action == "create" || action == "edit"):
		return inIssue
	}
	return ""
}

// message joins the values of options of a command as paragraphs. A value of "body=TEXT" is a
// field of a request, of which only the body counts; "-" stands for the here-document.
func message(c *shell.Command, options ...string) string {
	var parts []string
	add := func(option string, w shell.Word) {
		text := w.Text
		switch option {
		case "-F", "--file", "--body-file", "-f", "--field", "--raw-field":
			body, isBody := strings.CutPrefix(text, "body=")
			switch {
			case isBody:
				text = body
			case text == "-":
				w, text = c.Document, c.Document.Text
			default:
				return // a file, or another field
			}
		}
		if !w.Open {
			parts = append(parts, strings.TrimSpace(text))
		}
	}
	for i, w := range c.Words {
		name, value, told := strings.Cut(w.Text, "=")
		short := len(w.Text) > 2 && w.Text[0] == '-' && w.Text[1] != '-' && scan.IsLetter(w.Text[1]) // -am
		switch {
		case told && strings.HasPrefix(name, "--") && slices.Contains(options, name):
			add(name, shell.Word{Text: value, Open: w.Open})
		case i+1 == len(c.Words):
		case slices.Contains(options, w.Text):
			add(w.Text, c.Words[i+1])
		case short && slices.Contains(options, "-"+w.Text[len(w.Text)-1:]):
			add("-"+w.Text[len(w.Text)-1:], c.Words[i+1])
		}
	}
	return strings.Join(parts, "\n\n")
}

// writtenWith returns what a tool of a server writes for people, such as create_pull_request.
func writtenWith(name string, args gjson.Result) written {
	name = toolclass.Normal(name)
	for _, place := range [...]struct{ word, label string }{{"comment", inComment}, {"review", inComment}, {"pullrequest", inRequest}, {"issue", inIssue}} {
		if strings.Contains(name, place.word) && (strings.HasPrefix(name, "create") || strings.HasPrefix(name, "add") || strings.HasPrefix(name, "update")) {
			return written{place.label, withoutTrailers(rawjson.FirstText(args, "body"))}
		}
	}
	return written{}
}

// trailers begin lines that say who made something.
var trailers = []string{"Co-Authored-By:", "Co-authored-by:", "Signed-off-by:", "🤖 Generated with", "Generated with [Claude"}

// withoutTrailers takes out the lines that say who made something.
func withoutTrailers(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(trailers, func(mark string) bool { return strings.HasPrefix(line, mark) }) {
			out.WriteString(line)
		}
	}
	return strings.TrimSpace(out.String())
}

// The base value of a piece of what was written.
const (
	wordsPlanned = 0.8
	wordsWritten = 1.4
)

// addWritten adds what the assistant wrote through a call, made in the message at i.
func (b *builder) addWritten(i int, m *thread.Message, w written) {
	g := group{label: w.label, turn: m.Turn, sources: []thread.ID{m.ID}}
	base := float32(wordsWritten)
	if w.label == inPlan {
		base = wordsPlanned
	}
	for _, p := range paragraphs(nil, w.text) {
		if !p.substantial() || heading(p.text) && len(p.idents) == 0 && w.label != inPlan || !b.unseen(seenWords, p.text) {
			continue
		}
		c := b.piece(secSaid, &g, i, base*b.age(i), p)
		if w.label != inPlan {
			c.terms = b.terms.add(i, p.terms)
		}
	}
	if len(g.places) > 0 {
		b.groups[secSaid] = append(b.groups[secSaid], g)
	}
}
