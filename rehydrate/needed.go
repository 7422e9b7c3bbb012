package rehydrate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Reason is why an artifact should come back.
type Reason string

// The reasons, in the order in which they are looked for; see the package
// comment.
const (
	// SameTurn: it was shown earlier in this very turn.
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

// Needed decides which artifacts of the plan the turn needs, and why: each once,
// in the order of reasons and then of the plan, without those that must wait,
// and at most Options.MaxArtifacts and turn.Most. It reads no artifact and changes nothing.
func (r *Rehydrator) Needed(turn Turn, p *plan.Plan) []Request {
	if r.options.Disabled || p == nil || len(p.Externalizations) == 0 {
		return nil
	}
	shown := r.cooldowns.shown(turn.ThreadID)
	known := artifactIDs(p)
	var needed []Request
	// What the arguments of read_artifact name comes back by itself as its result.
	var asksItself, arguments []string
	for _, c := range turn.Calls {
		into := &arguments
		if c.Name == ReadArtifact {
			into = &asksItself
		}
		eachString(c.Arguments, func(s string) { *into = append(*into, s) })
	}
	want := func(id string, why Reason) {
		if slices.ContainsFunc(needed, func(q Request) bool { return q.ArtifactID == id }) ||
			slices.ContainsFunc(asksItself, func(arg string) bool { return Mentions(arg, id) }) ||
			r.cooldowns.mustWait(shown, id, turn.Number) {
			return
		}
		needed = append(needed, Request{id, why})
	}
	for _, s := range shown {
		if s.Turn == turn.Number && slices.Contains(known, s.ArtifactID) {
			want(s.ArtifactID, SameTurn)
		}
	}
	for _, id := range known {
		if Mentions(turn.Agent, id) {
			want(id, Mention)
		}
	}
	for _, s := range arguments {
		for _, id := range known {
			if Mentions(s, id) {
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

// artifactIDs are the ids of the plan's artifacts, each once.
func artifactIDs(p *plan.Plan) []string {
	var ids []string
	seen := map[string]bool{"": true}
	for _, e := range p.Externalizations {
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
		if slices.ContainsFunc(user, func(q string) bool { return Mentions(q, id) }) {
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

// minPrefix is how much of an id a call must give, in bytes, for its whole to
// be found.
const minPrefix = 8

// requiredBySchema holds the schema trigger.
func requiredBySchema(calls []thread.ToolCall, tools []prompt.Tool, known []string) []string {
	var ids []string
	for _, c := range calls {
		i := slices.IndexFunc(tools, func(t prompt.Tool) bool { return t.Name == c.Name })
		if i < 0 || c.Name == ReadArtifact {
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

// artifactParameters are the parameters at the top of a schema that take the id
// of an artifact, by name or by description, sorted by name.
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
