// Package toolpolicy declares what may happen to the results of each tool
// (seed A, requirement A9): how durable they are, which fields survive, from
// what size they are externalized and what it costs to get them again. It knows
// the tools of the common agents by name, so that an agent that declares
// nothing is treated well; a caller overrides what it knows better.
//
// Values are safe for concurrent reading.
package toolpolicy

import (
	"cmp"
	"maps"
	"time"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// ReplayCost says what running a tool again costs.
type ReplayCost string

// The costs of seed A.
const (
	Free      ReplayCost = "free"
	Cheap     ReplayCost = "cheap"
	Expensive ReplayCost = "expensive"
)

// DefaultThreshold is the seed's default of Policy.ExternalizeThreshold, in tokens.
const DefaultThreshold = 1000

// Policy is what a tool declares about its results (seed A,
// ToolDurabilityPolicy). In an override, a field at its zero value leaves what
// the registry says.
type Policy struct {
	// Durability defaults to thread.Anchoring.
	Durability thread.Durability `json:"durability,omitempty" file:"durability" about:"what may happen to results"`
	// PreserveFields are names of fields that must be kept when a result is
	// cleared, looked up in the structured content and the arguments.
	PreserveFields []string `json:"preserve_fields,omitempty" file:"preserve_fields" about:"fields that stay when a result is cleared"`
	// ExternalizeThreshold is the size in tokens from which a result is externalized
	// rather than summarised. Default DefaultThreshold.
	ExternalizeThreshold int `json:"externalize_threshold_tokens,omitempty" file:"externalize_threshold_tokens" bases:"auto ladder" unit:"tokens" range:"1.." about:"from what size a result is externalized"`
	// ReplayCost defaults to Cheap.
	ReplayCost ReplayCost `json:"replay_cost,omitempty" file:"replay_cost" bases:"auto ladder" about:"what it costs to run the tool again; what is expensive is externalized, never cleared"`
	// Sensitivity is that of results that are externalized: public, internal,
	// confidential or restricted (package artifact). Empty leaves it to the
	// Compactor's configuration.
	Sensitivity string `json:"sensitivity,omitempty" file:"sensitivity" bases:"auto ladder" enum:"public internal confidential restricted" about:"how sensitive externalized results are"`
	// TTL is for how long results that are externalized may be read. 0, and in an
	// override a negative one, is for ever.
	TTL time.Duration `json:"ttl,omitempty" file:"ttl" bases:"auto ladder" unit:"duration" range:"1s..8760h" words:"forever=-1" about:"for how long externalized results may be read"`
	// Capture reads what the source of a call looks like now, so that a
	// replayable result can be checked for drift. It may be nil: then the newest
	// result that was read from the same source tells, where it says what that
	// looked like, and otherwise a replayable result counts as drifted (A7, A8).
	Capture func(thread.ToolCall) (thread.Determinism, error) `json:"-"`
}

// byClass are the declarations for the common agent tools. Reads are replayable
// because the file can be read again; with no proof that it has not changed the
// planner treats them as drifted, so nothing is lost by saying so. Web content
// and another agent's report cannot be had again as they were.
var byClass = map[Class]Policy{
	Read:     {Durability: thread.Replayable, ReplayCost: Free},
	Search:   {Durability: thread.Ephemeral, ReplayCost: Free},
	List:     {Durability: thread.Ephemeral, ReplayCost: Free},
	Shell:    {Durability: thread.Anchoring, ReplayCost: Cheap},
	Edit:     {Durability: thread.Anchoring, ReplayCost: Expensive},
	Write:    {Durability: thread.Anchoring, ReplayCost: Expensive},
	Fetch:    {Durability: thread.NonReplayable, ReplayCost: Cheap},
	Web:      {Durability: thread.NonReplayable, ReplayCost: Expensive},
	Agent:    {Durability: thread.NonReplayable, ReplayCost: Expensive},
	Todo:     {Durability: thread.Ephemeral, ReplayCost: Free},
	Poll:     {Durability: thread.Ephemeral, ReplayCost: Free},
	Question: {Durability: thread.NonReplayable, ReplayCost: Expensive},
	Recall:   {Durability: thread.Ephemeral, ReplayCost: Free},
	Other:    {Durability: thread.Anchoring, ReplayCost: Cheap},
}

// Registry finds the policy of a tool. The zero value holds the built-in
// declarations.
type Registry struct {
	overrides map[string]Policy
}

// Unknown is the name of an override for the tools that neither the table nor
// another override knows (seed A, default_tool_durability; A19).
const Unknown = "*"

// New returns a registry with the built-in declarations, and overrides by tool
// name on top. Names match without regard to case, punctuation and the prefix
// of an MCP server (see Normal). A nil map is fine; the map is copied.
func New(overrides map[string]Policy) *Registry {
	r := &Registry{overrides: make(map[string]Policy, len(overrides))}
	for name, p := range overrides {
		r.overrides[Normal(name)] = p
	}
	return r
}

// Policy returns what holds for a tool, with every default filled in.
func (r *Registry) Policy(tool string) Policy {
	p := byClass[ClassOf(tool)]
	p.ExternalizeThreshold = DefaultThreshold
	if r == nil {
		return p
	}
	o, ok := r.overrides[Normal(tool)]
	if !ok && ClassOf(tool) == Other {
		o, ok = r.overrides[Normal(Unknown)]
	}
	if !ok {
		return p
	}
	p.Durability = cmp.Or(o.Durability, p.Durability)
	if len(o.PreserveFields) > 0 {
		p.PreserveFields = o.PreserveFields
	}
	if o.ExternalizeThreshold > 0 {
		p.ExternalizeThreshold = o.ExternalizeThreshold
	}
	p.ReplayCost, p.Sensitivity = cmp.Or(o.ReplayCost, p.ReplayCost), cmp.Or(o.Sensitivity, p.Sensitivity)
	if o.TTL != 0 {
		p.TTL = max(o.TTL, 0)
	}
	if o.Capture != nil {
		p.Capture = o.Capture
	}
	return p
}

// Threshold returns the size in tokens from which a result of the tool is
// externalized: what an override of the tool says, else usual, else what Policy says.
func (r *Registry) Threshold(tool string, usual int) int {
	if usual > 0 && (r == nil || r.overrides[Normal(tool)].ExternalizeThreshold == 0) {
		return usual
	}
	return r.Policy(tool).ExternalizeThreshold
}

// Durability returns how durable one result is: what the result itself
// declares, else the policy of its tool.
func (r *Registry) Durability(result thread.ToolResult) thread.Durability {
	if result.Durability != "" {
		return result.Durability
	}
	return r.Policy(result.Tool).Durability
}

// KeyFields returns the fields worth keeping when the result is cleared: those
// that KeyFields derives, the preserved fields of the tool's policy, and what
// the result declares itself, the later winning.
func (r *Registry) KeyFields(call thread.ToolCall, result thread.ToolResult) thread.Fields {
	tool := cmp.Or(result.Tool, call.Name)
	fields := KeyFields(call, result)
	declared := preserved(r.Policy(tool).PreserveFields, call, result)
	if len(declared)+len(result.KeyFields) > 0 {
		delete(fields, "result") // a guess beside what somebody knows
	}
	maps.Copy(fields, declared)
	maps.Copy(fields, result.KeyFields)
	return fields
}
