package summarize

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// grounds is what a summary may stand on: the texts of the span and of the
// previous summary, and who said them.
type grounds struct {
	messages []thread.Message
	at       map[thread.ID]int
	before   map[thread.ID]bool // messages that the previous summary stands on
	pairs    map[int][]int      // calls and their results, both ways
	texts    []string           // of messages: all that was in them
	voices   []string           // what of it the user or the assistant said
	previous string             // the previous summary, rendered
	said     string             // what of it the user or the assistant said
	all      string             // everything
	voice    string             // everything that the user or the assistant said
	ground   map[string]*ground // by text, read once
}

func newGrounds(in *Input) *grounds {
	n := len(in.Messages)
	g := &grounds{
		messages: in.Messages, at: make(map[thread.ID]int, n), before: map[thread.ID]bool{}, pairs: map[int][]int{},
		texts: make([]string, n), voices: make([]string, n), ground: map[string]*ground{},
	}
	calls := map[string]int{}
	for i := range in.Messages {
		m := &in.Messages[i]
		g.at[m.ID] = i
		g.texts[i], g.voices[i] = spoken(m)
		for _, c := range m.Calls() {
			calls[c.ID] = i
		}
		if r, ok := m.Result(); ok {
			if c, ok := calls[r.CallID]; ok {
				g.pairs[i] = append(g.pairs[i], c)
				g.pairs[c] = append(g.pairs[c], i)
			}
		}
	}
	if p := in.Previous; p != nil {
		g.previous = p.Render()
		g.said = summary.Summary{
			CurrentTask: p.CurrentTask, Requests: p.Requests, Constraints: p.Constraints, CurrentPlan: p.CurrentPlan,
			OpenItems: p.OpenItems, Decisions: p.Decisions, Conclusions: p.Conclusions,
		}.Render()
		for _, id := range p.Span.MessageIDs {
			g.before[id] = true
		}
	}
	g.all = strings.Join(g.texts, "\n") + "\n" + g.previous
	g.voice = strings.Join(g.voices, "\n") + "\n" + g.said
	return g
}

// spoken returns all text of a message but its reasoning, and what of it a user
// or an assistant said. Arguments come as they stand and with their strings
// unescaped. A harness's text in the user's name is nobody's word.
func spoken(m *thread.Message) (all, voice string) {
	var a, v strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Text:
			a.WriteString(p.Text + "\n")
			if m.StartsTurn() || m.Role == thread.Assistant {
				v.WriteString(p.Text + "\n")
			}
		case thread.ToolCall:
			text := p.Name + " " + p.Arguments + "\n"
			if rawjson.Valid(p.Arguments) {
				text += unescaped(gjson.Parse(p.Arguments))
			}
			a.WriteString(text)
			v.WriteString(text)
		case thread.ToolResult:
			a.WriteString(p.Tool + " " + string(p.Outcome) + " " + p.Text() + "\n" + p.Structured + "\n")
			if len(p.KeyFields) > 0 {
				if doc, err := json.Marshal(p.KeyFields); err == nil {
					a.Write(doc)
					a.WriteString("\n" + unescaped(gjson.ParseBytes(doc)))
				}
			}
		case thread.Media:
			a.WriteString(p.Name + " " + p.Text + "\n")
		case thread.Opaque:
			a.WriteString(p.Text + "\n")
		}
	}
	return a.String(), v.String()
}

// unescaped lists the strings of a JSON value, a line each.
func unescaped(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str + "\n"
	}
	var b strings.Builder
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(_, e gjson.Result) bool {
			b.WriteString(unescaped(e))
			return true
		})
	}
	return b.String()
}

// fault says why a claim cannot be taken, or "".
func (g *grounds) fault(c *claim) string {
	acted := c.section == secPlan || c.section == secDecision || c.section == secOpen
	everything := g.all
	if acted {
		everything = g.voice
	}
	var sources []*ground
	cited := false
	read := func(text string) {
		if text == "" {
			return
		}
		r := g.ground[text]
		if r == nil {
			r = newGround(text)
			g.ground[text] = r
		}
		sources = append(sources, r)
	}
	for _, id := range c.item.Sources {
		i, ok := g.at[id]
		switch {
		case ok && acted:
			cited = cited || g.voices[i] != ""
			read(g.voices[i])
		case ok:
			cited = true
			read(g.texts[i])
			for _, j := range g.pairs[i] {
				read(g.texts[j])
			}
		case g.before[id] && acted:
			cited = true
			read(g.said)
		case g.before[id]:
			cited = true
			read(g.previous)
		}
	}
	body := c.text
	if c.section == secPlan {
		body = c.item.Text // the status is a word of ours
	}
	switch {
	case len(body) > maxItem:
		return "limit"
	case placeholder(c.item.Text):
		return "placeholder"
	case !cited:
		return "source"
	case speaksForPerson(body):
		return "claim"
	}
	inIdentifier := make([]bool, len(body))
	missing := false
	scanIdentifiers(body, span{0, len(body)}, func(p span) {
		word := body[p.from:p.to]
		if measure(word) {
			return // looked up as a number
		}
		if !occurs(everything, word) {
			missing = true
		}
		if strings.ContainsFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }) {
			for i := p.from; i < p.to; i++ {
				inIdentifier[i] = true
			}
		}
	})
	if missing {
		return "identifier"
	}
	for _, q := range quotations(body) {
		if !containsFolded(everything, q) {
			return "quote"
		}
	}
	for _, n := range numbers(body) {
		if n.from < len(inIdentifier) && inIdentifier[n.from] {
			continue
		}
		if !holdsNumber(sources, body, n) {
			return "number"
		}
	}
	if !sharesWords(sources, body) {
		return "words"
	}
	if turnsAround(sources, body) {
		return "negation"
	}
	return ""
}

// placeholder reports whether an item says that there is nothing to say.
func placeholder(s string) bool {
	s = strings.ToLower(strings.Trim(s, " \t.!()[]<>*_-–—…:\"'`"))
	switch s {
	case "", "none", "n/a", "na", "nil", "null", "unknown", "not applicable", "nothing", "empty", "tbd", "todo", "undefined", "not specified",
		"none so far", "nothing to report", "no open items", "no decisions", "no facts", "no failed attempts", "none yet", "none identified", "not available",
		"keine", "nichts", "entfällt", "aucun", "aucune", "néant", "ninguno", "ninguna", "nada", "无", "なし", "없음":
		return true
	}
	return false
}
