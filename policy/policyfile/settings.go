// Package policyfile reads policies from YAML and writes them. A file names the policy it
// starts from and overrides any of its fields:
//
//	base: ladder
//	trigger:
//	  max_input_tokens: 60000
//	summarizer:
//	  use: [anthropic:claude-haiku-4-5]
//
// The fields are struct tags (see field.go): reading, writing and the JSON schema all use
// them by reflection.
package policyfile

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Settings are what a policy file says, with all defaults filled in. Only the fields that
// belong to Base count. Default makes them; the zero value names no policy.
type Settings struct {
	// Base is the policy that the file starts from, one of Bases.
	Base string

	// Auto holds the marks of auto, notes and the cuts; DisabledRungs switches rungs of their
	// ladders off.
	Auto          policy.Auto
	DisabledRungs Rungs
	Ladder        policy.Ladder
	Session       policy.Session
	Timeline      policy.Timeline
	Workstream    policy.Workstream
	Loop          policy.Loop
	// Messages, Tokens, Turns and Ratio are how much the cut of that name keeps;
	// SplitTurns lets last-tokens cut inside a turn.
	Messages   int     `file:"cut.messages" bases:"last-messages" unit:"messages" range:"1.." about:"how many of the newest messages stay"`
	Tokens     int     `file:"cut.tokens" bases:"last-tokens" unit:"tokens" range:"1.." about:"how much of the newest part stays"`
	SplitTurns bool    `file:"cut.split_turns" bases:"last-tokens" about:"cut inside a turn where that keeps more"`
	Turns      int     `file:"cut.turns" bases:"last-turns" unit:"turns" range:"1.." about:"how many of the newest turns stay whole"`
	Ratio      float64 `file:"cut.ratio" bases:"ratio" unit:"ratio" range:"0.001..0.999" about:"share of the tokens that stays"`

	// Counter is how tokens are counted; "auto" leaves it to the caller.
	Counter     string `file:"counter" enum:"counter" about:"how tokens are counted: o200k, cl100k, claude, gemini, chars/4, …; auto: as the model counts, or else o200k"`
	Summarizer  Summarizer
	Rehydration recall.Rehydration
	Retrieval   Retrieval
	// Durability is for tools that nobody declares; Tools are overrides by tool name.
	Durability thread.Durability            `file:"tools.default_durability" bases:"auto notes ladder last-messages last-tokens last-turns ratio" about:"holds for tools that nobody declares"`
	Tools      map[string]toolpolicy.Policy `file:"tools.overrides" bases:"auto notes ladder last-messages last-tokens last-turns ratio" about:"by the name of a tool; what is not said of it is as built in"`
}

// Retrieval says which removed messages are shown without being asked for.
type Retrieval struct {
	Enabled bool `file:"retrieval.enabled" about:"show what was removed and matches the user's last message beside it"`
	// Tokens bounds what one request is shown.
	Tokens int `file:"retrieval.tokens" unit:"tokens" range:"1.." about:"bound on what one request is shown so"`
	// Vectors is the embedding model for searches by meaning, as provider:name, or "none".
	Vectors string `file:"retrieval.vector_store" enum:"embedder" about:"search by meaning too, with vectors of a model such as openai:text-embedding-3-small; none: by words alone"`
}

// Rungs says which rungs of a ladder are off.
type Rungs struct {
	Externalize bool `file:"ladder.enable_externalization" bases:"auto notes" not:"true" about:"store large results outside of the prompt and leave a pointer"`
	Clear       bool `file:"ladder.enable_clearing" not:"true" about:"replace results by a placeholder"`
	Summarize   bool `file:"ladder.enable_summarization" not:"true" about:"summarize older spans"`
	Drop        bool `file:"ladder.enable_dropping" not:"true" about:"leave messages out, as the last resort"`
}

// Summarizer says who writes summaries.
type Summarizer struct {
	// Use are models as provider:name, asked in this order. After the last one, or without
	// any, code writes the summary.
	Use []string `file:"summarizer.use" enum:"models" about:"models that write summaries, asked in order: anthropic:MODEL or openai:MODEL; after them, and with extractive alone, code does"`
	// Rules are who says which sentences of the user stand: one of auto, table and model, or models as in
	// Use.
	Rules []string `file:"summarizer.rules" enum:"rules" about:"who says which sentences of the user still stand, as rules or decisions: table: a learned table; model: the models of use, with one question for each summary; or models of its own; after them the table does; auto: model where use names one"`
	// Standing is the share of a summary that what the user laid down may take; 0 leaves it to the summary.
	Standing float64 `file:"summarizer.standing" bases:"auto ladder last-messages last-tokens last-turns ratio" unit:"ratio" range:"0.01..0.9" words:"auto=0" about:"the most of a summary for what the user laid down: rules, decisions and answers, in their own words; half of it beside what a model writes; auto: 0.3"`
	// Timeout bounds each model.
	Timeout time.Duration `file:"summarizer.timeout" unit:"duration" range:"1ms..1h" about:"bound on each model"`
	// Temperature is sent with requests: PromptTemperature leaves it to each prompt,
	// NoTemperature sends none.
	Temperature float64 `file:"summarizer.temperature" range:"0..2" words:"auto=-1 none=-2" about:"sent with each request; auto: each prompt's own; none: for models that take none"`
	// MaxOutput bounds answers in tokens; 0 leaves it to each prompt.
	MaxOutput int `file:"summarizer.max_output" unit:"tokens" range:"1.." words:"auto=0" about:"bound on each answer, thinking included; auto: each prompt's own"`
	// ChunkCharacters is the most of a span that is sent at once.
	ChunkCharacters int `file:"summarizer.chunk_characters" bases:"auto ladder last-messages last-tokens last-turns ratio" unit:"characters" range:"1000.." about:"the most of a span that is sent at once"`
	// Trust says how much of a model's text is used.
	Trust policy.Trust `file:"summarizer.trust" about:"how much of what a model writes is taken: the sentences that stand on the messages (checked), or all of it (model)"`
	// Cache keeps answers, so that the same question is asked once.
	Cache bool `file:"summarizer.cache" about:"ask the same question only once"`
}

// Values of Summarizer.Rules that are no models, besides autoWord.
const rulesByTable, rulesByModel = "table", "model"

// Judges are the models that say which sentences of the user stand; none where the table does. The error is
// a *Problem that names the file.
func (s *Summarizer) Judges(file string) ([]string, error) {
	switch {
	case slices.Equal(s.Rules, []string{rulesByTable}):
		return nil, nil
	case slices.Equal(s.Rules, []string{rulesByModel}) && len(s.Use) == 0:
		return nil, &Problem{File: file, Path: "summarizer.rules", Message: "model asks the models of summarizer.use, which names none: name one there or in summarizer.rules"}
	case len(s.Rules) == 0, slices.Equal(s.Rules, []string{rulesByModel}), slices.Equal(s.Rules, []string{autoWord}):
		return s.Use, nil
	}
	return s.Rules, nil
}

// Values of Summarizer.Temperature that are no temperature.
const (
	PromptTemperature float64 = -1
	NoTemperature     float64 = -2
)

// base is a policy that a file can start from.
type base struct {
	name        string
	description string // what it does: when, where, what, how
	// parts are the tagged structs with the fields of its files; nil are those of auto.
	parts func(*Settings) []any
	// argument is what its name takes, "" for nothing, and amount the field that it sets.
	argument, amount string
	// rungs is the ladder that fills a budget; nil for a policy that has none.
	rungs func(*Settings) strategy.Ladder
	// policy makes the policy; nil for one with the marks of auto around rungs.
	policy func(*Settings, llm.Generator) policy.Policy
}

// notesName is the policy that asks no model for summaries.
const notesName = "notes"

var bases = []base{
	{
		name: "auto", description: "From 64,000 tokens on where prices say so, else at 90 % of the budget, down to half (40 % where steps are large): results are externalized or cleared by rule, what is older than fits is summarized.",
		rungs: func(*Settings) strategy.Ladder { return strategy.Auto() },
	},
	{
		name: notesName, description: "From 64,000 tokens on where prices say so, else at 90 % of the budget, down to half (40 % where steps are large): a fresh window of the user's words and rules, the model's notes, where the work stands, and the newest messages; no model is asked.",
		rungs: func(*Settings) strategy.Ladder { return strategy.Fresh() },
	},
	{
		name: "ladder", description: "Above 85 % of 100,000 tokens: externalize, summarize, clear, drop, in this order; the last 3 turns stay.",
		parts:  func(s *Settings) []any { return []any{&s.Ladder} },
		rungs:  func(s *Settings) strategy.Ladder { return append(strategy.Ladder{}, s.Ladder.Rungs()...) },
		policy: func(s *Settings, _ llm.Generator) policy.Policy { return s.Ladder },
	},
	{
		name: "session", description: "At 80 % of the window by characters: all but the newest 10 messages become one summary with fixed sections.",
		parts: func(s *Settings) []any { return []any{&s.Session} },
		policy: func(s *Settings, model llm.Generator) policy.Policy {
			p := s.Session
			p.Model, p.Timeout, p.Trust = model, s.Summarizer.Timeout, s.Summarizer.Trust
			return p
		},
	},
	{
		name: "timeline", description: "Above 90 % of the window: what lies between the last summary and a cut becomes a new summary block; old results can expire.",
		parts: func(s *Settings) []any { return []any{&s.Timeline} },
		policy: func(s *Settings, model llm.Generator) policy.Policy {
			p := s.Timeline
			p.Model, p.Trust = model, s.Summarizer.Trust
			return p
		},
	},
	{
		name: "workstream", description: "At 70 % of the window, after a turn: all but the newest 6 messages become a summary in a system message, and a typed state.",
		parts: func(s *Settings) []any { return []any{&s.Workstream, &s.Workstream.Limits} },
		policy: func(s *Settings, model llm.Generator) policy.Policy {
			p := s.Workstream
			p.Model, p.Trust = model, s.Summarizer.Trust
			return p
		},
	},
	{
		name: "loop", description: "Above 80 % of what the window leaves: the older 60 % of the messages become a summary, or a note when none can be made.",
		parts: func(s *Settings) []any { return []any{&s.Loop} },
		policy: func(s *Settings, model llm.Generator) policy.Policy {
			p := s.Loop
			p.Model, p.Timeout, p.Trust = model, s.Summarizer.Timeout, s.Summarizer.Trust
			return p
		},
	},
	cutBase("last-messages", "everything before the newest N messages is summarized.", "N", "cut.messages",
		func(s *Settings) cut.Policy { return cut.LastMessages{N: s.Messages} }),
	cutBase("last-tokens", "everything before the newest N tokens is summarized.", "N", "cut.tokens",
		func(s *Settings) cut.Policy { return cut.LastTokens{N: s.Tokens, SplitTurns: s.SplitTurns} }),
	cutBase("last-turns", "everything before the newest N turns is summarized.", "N", "cut.turns",
		func(s *Settings) cut.Policy { return cut.LastTurns{N: s.Turns} }),
	cutBase("ratio", "of the tokens only the newest SHARE stays as it is.", "SHARE", "cut.ratio",
		func(s *Settings) cut.Policy { return cut.Ratio{Keep: s.Ratio} }),
}

// cutBase is a policy with the marks of auto that summarizes what is before a cut.
func cutBase(name, line, argument, amount string, keep func(*Settings) cut.Policy) base {
	return base{
		name: name, description: "At 90 % of the room for messages, down to 50 %: " + line, argument: argument, amount: amount,
		rungs: func(s *Settings) strategy.Ladder { return strategy.Cut(keep(s)) },
	}
}

// baseOf finds a base by name; the zero value is none.
func baseOf(name string) base {
	if i := slices.IndexFunc(bases, func(b base) bool { return b.name == name }); i >= 0 {
		return bases[i]
	}
	return base{}
}

// Bases lists the policies that a file can start from.
func Bases() []string {
	names := make([]string, len(bases))
	for i, b := range bases {
		names[i] = b.name
	}
	return names
}

// Names lists the names for ByName, with the argument of those that take one in capitals.
func Names() []string {
	names := Bases()
	for i, b := range bases {
		if b.argument != "" {
			names[i] += ":" + b.argument
		}
	}
	return names
}

// Description says in one line when the policy compacts, where it cuts, and what happens
// to the old part; empty for unknown names.
func Description(base string) string { return baseOf(base).description }

// Description is that of the base, with the marks and actions of these settings.
func (s *Settings) Description() string {
	text := Description(s.Base)
	if s.HasOwnMarks() || s.GoesByPrices() {
		return text
	}
	_, how, _ := strings.Cut(text, ": ")
	a := s.Auto.Defaults()
	text = fmt.Sprintf("At %s of the room for messages, down to %s: %s", percent(a.Hard), percent(a.Target), how)
	var off []string
	for _, rung := range baseOf(s.Base).rungs(s) {
		if !slices.ContainsFunc(s.Rungs(), func(left strategy.Strategy) bool { return left.Name() == rung.Name() }) {
			off = append(off, rung.Name())
		}
	}
	if len(off) > 0 {
		text += " Switched off: " + strings.Join(off, ", ") + "."
	}
	return text
}

func percent(share float64) string {
	return strconv.FormatFloat(math.Round(1000*share)/10, 'f', -1, 64) + " %"
}

// HasOwnMarks reports whether the policy decides by itself when it compacts; else it has the
// marks of auto.
func (s *Settings) HasOwnMarks() bool { return baseOf(s.Base).policy != nil }

// GoesByPrices reports whether policy.Auto decides when to compact: by prices and a favor, which
// are for its own ladder, with all its actions.
func (s *Settings) GoesByPrices() bool { return s.HasFavors() && s.DisabledRungs == (Rungs{}) }

// Default returns the settings of a base with nothing overridden.
func Default(base string) *Settings {
	return &Settings{
		Base:       base,
		Auto:       policy.Auto{Favor: policy.FavorBalanced},
		Ladder:     policy.Ladder{}.Defaults(),
		Session:    policy.Session{}.Defaults(),
		Timeline:   policy.Timeline{}.Defaults(),
		Workstream: policy.Workstream{}.Defaults(),
		Loop:       policy.Loop{}.Defaults(),
		Messages:   10, Tokens: 20_000, Turns: 3, Ratio: 0.3, SplitTurns: true,
		Counter:     autoWord,
		Summarizer:  Summarizer{Rules: []string{autoWord}, Timeout: 2 * time.Minute, Temperature: PromptTemperature, ChunkCharacters: 120_000, Cache: true, Trust: policy.TrustChecked},
		Rehydration: recall.Rehydration{}.Defaults(),
		Retrieval:   Retrieval{Tokens: 2_000, Vectors: "none"},
		Durability:  thread.Anchoring,
	}
}

// ByName returns the settings of a policy by its name: one of Bases; for a cut with how
// much it keeps ("last-messages:12"). The error says what is wrong with the name.
func ByName(name string) (*Settings, error) {
	base, argument, has := strings.Cut(name, ":")
	known, s := baseOf(base), Default(base)
	if known.name == "" || has != (known.amount != "") {
		hint := ""
		if near := suggest.Name(name, Bases()); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", Names()[slices.Index(Bases(), near)])
		}
		return nil, fmt.Errorf("unknown policy %q; known are %s%s", name, strings.Join(Names(), ", "), hint)
	}
	if has {
		var value any
		if n, err := strconv.ParseInt(argument, 10, 64); err == nil {
			value = n
		} else if share, err := strconv.ParseFloat(argument, 64); err == nil {
			value = share
		}
		if f := s.field(known.amount); !f.set(value) {
			return nil, fmt.Errorf("%s: want %s after the colon, such as %s:%v", name, f.expectation(), base, f.get())
		}
	}
	return s, nil
}

// LooksLikeFile reports whether a name that ByName does not know is meant as a file: it has a
// separator or ends in .yaml, .yml or .json.
func LooksLikeFile(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// field is the one with that path.
func (s *Settings) field(path string) *field {
	fields := s.fields()
	return &fields[slices.IndexFunc(fields, func(f field) bool { return f.path == path })]
}

// Name is the name of the policy in plans and reports: that of the base, and for a cut
// what it keeps.
func (s *Settings) Name() string {
	if amount := baseOf(s.Base).amount; amount != "" {
		return fmt.Sprintf("%s:%v", s.Base, s.field(amount).get())
	}
	return s.Base
}

// HasOwnForm reports whether the policy has its own rules and formats (seeds B to E)
// rather than fill a budget with Rungs.
func (s *Settings) HasOwnForm() bool { return s.Rungs() == nil }

// Rungs is the ladder that fills a budget, nil for a policy that has none. With every rung
// switched off it is empty.
func (s *Settings) Rungs() strategy.Ladder {
	rungs := baseOf(s.Base).rungs
	if rungs == nil {
		return nil
	}
	off := map[string]bool{"externalize": s.DisabledRungs.Externalize, "clear": s.DisabledRungs.Clear, "summarize": s.DisabledRungs.Summarize, "drop": s.DisabledRungs.Drop}
	return slices.DeleteFunc(rungs(s), func(rung strategy.Strategy) bool { return off[rung.Name()] })
}

// Policy returns the policy. A model, which may be nil, writes the summaries of those that
// ask one themselves; the others leave that to the summarizer.
func (s *Settings) Policy(model llm.Generator) policy.Policy {
	if own := baseOf(s.Base).policy; own != nil {
		return own(s, model)
	}
	switch {
	case s.GoesByPrices() && s.Base == notesName:
		return policy.Notes{Auto: s.Auto}
	case s.GoesByPrices():
		return s.Auto
	}
	marks := s.Auto.Defaults()
	return policy.Custom{PolicyName: s.Name(), Hard: marks.Hard, Target: marks.Target, Ladder: s.Rungs()}
}

// Registry is what the file declares about tools.
func (s *Settings) Registry() *toolpolicy.Registry {
	all := map[string]toolpolicy.Policy{toolpolicy.Unknown: {Durability: s.Durability}}
	maps.Copy(all, s.Tools)
	return toolpolicy.New(all)
}
