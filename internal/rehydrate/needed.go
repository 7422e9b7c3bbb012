package rehydrate

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Turn is what is known when the prompt of a turn is about to be made.
type Turn struct {
	// ThreadID is the thread that cooldowns are kept for.
	ThreadID string
	// Number counts turns for limits and cooldowns. A turn is one message of the agent and
	// what follows it, as in the seed; TurnOf counts so. The same number, as in a retry,
	// gives the same again.
	Number int
	// Agent is the agent's last message, User what the user has said since.
	Agent, User string
	// Calls are the calls of the agent's last message.
	Calls []thread.ToolCall
	// Tools are the tools on offer; their schemas tell which take an artifact.
	Tools []prompt.Tool
	// Room is how many tokens the request can still take. 0 leaves it to
	// recall.Rehydration.TotalTokens; negative is none.
	Room int
	// MaxArtifacts is how many artifacts can come back. 0 leaves it to
	// recall.Rehydration.MaxArtifacts; negative is none.
	MaxArtifacts int
}

// TurnOf reads the turn from the end of a thread: the agent's last message, its calls, and
// what the user has said since. Number is the number of the agent's messages.
func TurnOf(t *thread.Thread, tools []prompt.Tool) Turn {
	turn := Turn{ThreadID: t.ID(), Tools: tools}
	messages := t.Messages()
	last := -1
	for i := range messages {
		if m := &messages[i]; m.Role == thread.Assistant && m.Kind == thread.Plain {
			turn.Number++
			last = i
		}
	}
	if last >= 0 {
		turn.Agent, turn.Calls = messages[last].Text(), messages[last].Calls()
	}
	for i := range messages[last+1:] {
		if m := &messages[last+1+i]; m.StartsTurn() {
			if turn.User != "" {
				turn.User += "\n"
			}
			turn.User += m.Text()
		}
	}
	return turn
}

// Reason is why an artifact comes back.
type Reason string

// The reasons, in the order in which they are looked for; see package recall.
const (
	SameTurn Reason = "turn"
	Mention  Reason = "mention"
	Argument Reason = "argument"
	Schema   Reason = "schema"
	Question Reason = "question"
)

// Request is an artifact that a turn needs.
type Request struct {
	ArtifactID string
	Reason     Reason
}

// Needed decides which artifacts of the plan the turn needs, and why: each once, by reason
// and then in the order of the plan, without those in their cooldown, and at most as many
// as recall.Rehydration and turn allow. It reads no artifact and changes nothing.
func (r *Rehydrator) Needed(turn Turn, p *plan.Plan) []Request {
	if r.options.Disabled || p == nil {
		return nil
	}
	known := artifactIDs(p)
	if len(known) == 0 {
		return nil
	}
	shown := r.cooldowns.shown(turn.ThreadID)
	var needed []Request
	// What the arguments of read_artifact name comes back by itself as its result.
	var asksItself, arguments []string
	for _, c := range turn.Calls {
		into := &arguments
		if c.Name == recall.ReadArtifactTool {
			into = &asksItself
		}
		eachString(c.Arguments, func(s string) { *into = append(*into, s) })
	}
	want := func(id string, why Reason) {
		if slices.ContainsFunc(needed, func(q Request) bool { return q.ArtifactID == id }) ||
			slices.ContainsFunc(asksItself, func(arg string) bool { return mentions(arg, id) }) ||
			r.cooldowns.mustWait(shown, id, turn.Number) {
			return
		}
		needed = append(needed, Request{id, why})
	}
	for _, s := range shown {
		if s.turn == turn.Number && slices.Contains(known, s.id) {
			want(s.id, SameTurn)
		}
	}
	for _, id := range known {
		if mentions(turn.Agent, id) {
			want(id, Mention)
		}
	}
	for _, s := range arguments {
		for _, id := range known {
			if mentions(s, id) {
				want(id, Argument)
			}
		}
	}
	for _, id := range requiredBySchema(turn.Calls, turn.Tools, known) {
		want(id, Schema)
	}
	for _, id := range questionedArtifacts(turn, p, known) {
		want(id, Question)
	}
	most := r.options.MaxArtifacts
	if turn.MaxArtifacts != 0 {
		most = min(most, max(turn.MaxArtifacts, 0))
	}
	return needed[:min(len(needed), most)]
}

// artifactIDs are the ids of the plan's artifacts, each once, also of those that its summaries and
// drops kept.
func artifactIDs(p *plan.Plan) []string {
	var ids []string
	seen := map[string]bool{"": true}
	for _, e := range p.Externalized() {
		if !seen[e.ArtifactID] {
			seen[e.ArtifactID] = true
			ids = append(ids, e.ArtifactID)
		}
	}
	return ids
}

func questionedArtifacts(turn Turn, p *plan.Plan, known []string) []string {
	var ids []string
	agent, user := questions(turn.Agent), questions(turn.User)
	for _, id := range known {
		if slices.ContainsFunc(user, func(q string) bool { return mentions(q, id) }) {
			ids = append(ids, id)
		}
	}
	if len(agent)+len(user) == 0 { // this spares the look at all summaries
		return ids
	}
	at := make(map[string]int, len(known))
	descriptions := make([]description, len(known))
	for i, id := range known {
		at[id] = i
		descriptions[i] = description{hint: map[string]bool{}, all: map[string]bool{}}
	}
	for _, e := range p.Externalizations {
		i, ok := at[e.ArtifactID]
		if !ok {
			continue
		}
		d := &descriptions[i]
		for term, name := range termsOf(e.RehydrateHint) {
			d.hint[term], d.all[term] = name, name
		}
		for term, name := range termsOf(e.Summary.Render()) {
			d.all[term] = name || d.all[term]
		}
	}
	for _, i := range matchQuestions(append(agent, user...), descriptions) {
		ids = append(ids, known[i])
	}
	return ids
}

// minPrefix is how much of an id a call must give, in bytes, for the artifact to be found.
const minPrefix = 8

// requiredBySchema finds the artifacts for Reason Schema.
func requiredBySchema(calls []thread.ToolCall, tools []prompt.Tool, known []string) []string {
	var ids []string
	for _, c := range calls {
		i := slices.IndexFunc(tools, func(t prompt.Tool) bool { return t.Name == c.Name })
		if i < 0 || c.Name == recall.ReadArtifactTool {
			continue
		}
		var given map[string]any
		if json.Unmarshal([]byte(c.Arguments), &given) != nil && strings.TrimSpace(c.Arguments) != "" {
			continue
		}
		for _, p := range artifactParameters(tools[i].Schema) {
			value, isText := given[p.name].(string)
			_, present := given[p.name]
			meant := known
			switch value = strings.TrimPrefix(strings.TrimSpace(value), "artifact:"); {
			case isText && len(value) >= minPrefix:
				meant = slices.DeleteFunc(slices.Clone(known), func(id string) bool { return !strings.HasPrefix(id, value) })
			case isText && value == "", !present && p.required, present && given[p.name] == nil:
			default:
				continue
			}
			if len(meant) == 1 {
				ids = append(ids, meant[0])
			}
		}
	}
	return ids
}

type parameter struct {
	name     string
	required bool
}

// artifactParameters are the top-level parameters of a schema that take the id of an
// artifact, by name or by description, sorted by name.
func artifactParameters(schema string) []parameter {
	if !strings.Contains(strings.ToLower(schema), "artifact") {
		return nil
	}
	var s struct {
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal([]byte(schema), &s) != nil {
		return nil
	}
	var found []parameter
	for name, p := range s.Properties {
		plain := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
		described := strings.ToLower(p.Description)
		if strings.HasSuffix(plain, "artifactid") || strings.Contains(described, "artifact id") ||
			strings.Contains(described, "id of an artifact") || strings.Contains(described, "id of the artifact") {
			found = append(found, parameter{name, slices.Contains(s.Required, name)})
		}
	}
	slices.SortFunc(found, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return found
}

// mentions reports whether text contains the id as a token of its own: where the id begins
// or ends with a letter, a digit or an underscore, its neighbour is none of them. This is
// the seed's \b, for letters of all scripts.
func mentions(text, id string) bool {
	if id == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(id)
	last, _ := utf8.DecodeLastRuneInString(id)
	for from := 0; ; {
		i := strings.Index(text[from:], id)
		if i < 0 {
			return false
		}
		start := from + i
		end := start + len(id)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !(inWord(first) && inWord(before)) && !(inWord(last) && inWord(after)) {
			return true
		}
		from = start + 1
	}
}

// inWord reports whether a rune is part of a word. Broken UTF-8 is not.
func inWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}

// eachString calls visit for every string value of a JSON document, at any depth, without
// field names. What is not JSON, as custom tools take it, is one string.
func eachString(document string, visit func(string)) {
	if !rawjson.Valid(document) {
		visit(document)
		return
	}
	var walk func(gjson.Result)
	walk = func(v gjson.Result) {
		switch {
		case v.Type == gjson.String:
			visit(v.Str)
		case v.IsObject() || v.IsArray():
			v.ForEach(func(_, e gjson.Result) bool {
				walk(e)
				return true
			})
		}
	}
	walk(gjson.Parse(document))
}
