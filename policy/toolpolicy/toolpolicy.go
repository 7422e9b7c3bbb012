// Package toolpolicy declares what a compaction may do to the results of each tool: how durable they
// are, which fields survive, from what size they are externalized, and what it costs to get them
// again. It knows the tools of common agents by name; callers may override it.
//
// Values are safe for concurrent reading.
package toolpolicy

import (
	"cmp"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ReplayCost is the cost of running a tool again.
type ReplayCost string

// The costs.
const (
	Free      ReplayCost = "free"
	Cheap     ReplayCost = "cheap"
	Expensive ReplayCost = "expensive"
)

// defaultThreshold is the default of Policy.ExternalizeThreshold, in tokens.
const defaultThreshold = 1000

// Policy declares what may happen to the results of a tool. In an override, zero fields keep the
// registry's values.
type Policy struct {
	// Durability defaults to thread.Anchoring.
	Durability thread.Durability `json:"durability,omitempty" file:"durability" about:"what may happen to results"`
	// PreserveFields are the names of fields that survive when a result is cleared. They are looked
	// up in its content and the arguments.
	PreserveFields []string `json:"preserve_fields,omitempty" file:"preserve_fields" about:"fields that stay when a result is cleared"`
	// ExternalizeThreshold is the size in tokens from which a result is externalized rather than
	// summarized. 0 is 1,000.
	ExternalizeThreshold int `json:"externalize_threshold_tokens,omitempty" file:"externalize_threshold_tokens" bases:"auto notes ladder" unit:"tokens" range:"1.." about:"from what size a result is externalized"`
	// ReplayCost defaults to Cheap.
	ReplayCost ReplayCost `json:"replay_cost,omitempty" file:"replay_cost" bases:"auto notes ladder" about:"what it costs to run the tool again; what is expensive is externalized, never cleared"`
	// Sensitivity is the class of externalized results: public, internal, confidential or
	// restricted (package artifact). Empty is that of the Compactor's configuration.
	Sensitivity string `json:"sensitivity,omitempty" file:"sensitivity" bases:"auto notes ladder" enum:"public internal confidential restricted" about:"how sensitive externalized results are"`
	// TTL is how long externalized results may be read. 0 is forever; in an override, a negative
	// number is.
	TTL time.Duration `json:"ttl,omitempty" file:"ttl" bases:"auto notes ladder" unit:"duration" range:"1s..8760h" words:"forever=-1" about:"for how long externalized results may be read"`
	// Capture describes the source of a call as it is now, to check whether a replayable result is
	// still current. If it is nil, a later result from the same source is used, if it has
	// determinism metadata and no write, command or other agent came after it; otherwise a
	// replayable result counts as changed.
	Capture func(thread.ToolCall) (thread.Determinism, error) `json:"-"`
}

// byClass are the policies of common tools. Reads are replayable because a file can be read again;
// without proof that it has not changed the planner treats them as changed, so that is safe. Web
// content and another agent's report may be different the next time.
var byClass = map[toolclass.Class]Policy{
	toolclass.Read:     {Durability: thread.Replayable, ReplayCost: Free},
	toolclass.Search:   {Durability: thread.Ephemeral, ReplayCost: Free},
	toolclass.List:     {Durability: thread.Ephemeral, ReplayCost: Free},
	toolclass.Shell:    {Durability: thread.Anchoring, ReplayCost: Cheap},
	toolclass.Edit:     {Durability: thread.Anchoring, ReplayCost: Cheap}, // its result is the file, which can be read
	toolclass.Write:    {Durability: thread.Anchoring, ReplayCost: Cheap},
	toolclass.Fetch:    {Durability: thread.NonReplayable, ReplayCost: Cheap},
	toolclass.Web:      {Durability: thread.NonReplayable, ReplayCost: Expensive},
	toolclass.Agent:    {Durability: thread.NonReplayable, ReplayCost: Expensive},
	toolclass.Todo:     {Durability: thread.Ephemeral, ReplayCost: Free},
	toolclass.Poll:     {Durability: thread.Ephemeral, ReplayCost: Free},
	toolclass.Question: {Durability: thread.NonReplayable, ReplayCost: Expensive},
	toolclass.Recall:   {Durability: thread.Ephemeral, ReplayCost: Free},
	toolclass.Notes:    {Durability: thread.Ephemeral, ReplayCost: Free},
	toolclass.Other:    {Durability: thread.Anchoring, ReplayCost: Cheap},
}

// Registry finds the policy of a tool. The zero value has the built-in policies.
type Registry struct {
	overrides map[string]Policy
}

// Unknown is the name of an override for all tools without a built-in policy and another override.
const Unknown = "*"

// New returns a registry with overrides by tool name. Names match in lower-case letters
// and digits, without the prefix of an MCP server. The map is copied and may be nil.
func New(overrides map[string]Policy) *Registry {
	r := &Registry{overrides: make(map[string]Policy, len(overrides))}
	for name, p := range overrides {
		r.overrides[toolclass.Normal(name)] = p
	}
	return r
}

// Policy returns the policy of a tool, with all defaults filled in.
func (r *Registry) Policy(tool string) Policy {
	p := byClass[toolclass.ClassOf(tool)]
	p.ExternalizeThreshold = defaultThreshold
	if r == nil {
		return p
	}
	o, ok := r.overrides[toolclass.Normal(tool)]
	if !ok && toolclass.ClassOf(tool) == toolclass.Other {
		o, ok = r.overrides[toolclass.Normal(Unknown)]
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

// Threshold returns the size in tokens from which a result of the tool is externalized: that of an
// override, else usual if it is above 0, else that of Policy.
func (r *Registry) Threshold(tool string, usual int) int {
	if usual > 0 && (r == nil || r.overrides[toolclass.Normal(tool)].ExternalizeThreshold == 0) {
		return usual
	}
	return r.Policy(tool).ExternalizeThreshold
}

// Durability returns the durability of a result: its own, else that of its tool.
func (r *Registry) Durability(result thread.ToolResult) thread.Durability {
	if result.Durability != "" {
		return result.Durability
	}
	return r.Policy(result.Tool).Durability
}

// KeyFields returns the fields that are worth keeping when the result is cleared: what was asked for
// and its outcome, the preserved fields of the tool's policy, and the result's own. Later ones win.
func (r *Registry) KeyFields(call thread.ToolCall, result thread.ToolResult) thread.Fields {
	return toolclass.KeyFields(call, result, r.Policy(cmp.Or(result.Tool, call.Name)).PreserveFields)
}
