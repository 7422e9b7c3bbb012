package policy

import (
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Defaults returns the policy with those defaults written out that do not depend
// on the step, for those who show it. It decides as before.
func (a Auto) Defaults() Auto { return a.resolved() }

// Defaults returns the policy with its defaults written out, for those who show
// it. It decides as before.
func (l Ladder) Defaults() Ladder {
	budget := token.Budget{MaxInput: l.MaxInputTokens, Soft: l.SoftThreshold}.Resolved()
	l.MaxInputTokens, l.SoftThreshold = budget.MaxInput, budget.Soft
	l.SafetyBuffer, l.RehydrationReserve, l.MaxRehydrated = or0(l.SafetyBuffer, budget.Safety), or0(l.RehydrationReserve, budget.RehydrationReserve), or0(l.MaxRehydrated, budget.MaxRehydrated)
	l.ExternalizeThreshold = or0(l.ExternalizeThreshold, 1000)
	l.SummarizeTargetRatio = or(l.SummarizeTargetRatio, 0.25)
	l.PreserveRecentTurns = or0(l.PreserveRecentTurns, 3)
	l.Target = or(l.Target, ladderTarget)
	return l
}

// Defaults returns the policy with those defaults written out that do not depend
// on the step, for those who show it. It decides as before.
func (p Session) Defaults() Session {
	p.SystemReserve, p.OutputReserve = or0(p.SystemReserve, systemReserve), or0(p.OutputReserve, outputReserve)
	p.SafetyBuffer, p.ThresholdPercent = or0(p.SafetyBuffer, safetyBuffer), or(p.ThresholdPercent, sessionShare)
	p.Keep = or0(p.Keep, sessionKeep)
	return p
}

// Defaults returns the policy with those defaults written out that do not depend
// on the step, for those who show it. It decides as before.
func (l Timeline) Defaults() Timeline {
	l.Share = or(l.Share, timelineShare)
	l.SummaryTokens, l.PrefixTokens = or0(l.SummaryTokens, timelineLimit), or0(l.PrefixTokens, timelinePrefix)
	l.CacheOffset = or0(l.CacheOffset, timelineRounds)
	return l
}

// Defaults returns the policy with those defaults written out that do not depend
// on the step, for those who show it. It decides as before.
func (w Workstream) Defaults() Workstream {
	w.Share = or(w.Share, workstreamShare)
	w.OutputReserve, w.SafetyMargin = or0(w.OutputReserve, workstreamOutput), or0(w.SafetyMargin, workstreamSafety)
	w.Tail, w.ChunkChars, w.RollupTokens = or0(w.Tail, workstreamTail), or0(w.ChunkChars, workstreamChunk), or0(w.RollupTokens, workstreamRollup)
	if w.ToolNames == nil {
		w.ToolNames = []string{"userQuestions", "proceedInOnboarding"}
	}
	if w.ToolPrefixes == nil {
		w.ToolPrefixes = []string{"linear"}
	}
	if w.Role == "" {
		w.Role = thread.System
	}
	l := &w.Limits
	*l = state.Limits{
		KeyDecisions: or0(l.KeyDecisions, 8), ActiveConstraints: or0(l.ActiveConstraints, 6), Tasks: or0(l.Tasks, 10), OpenQuestions: or0(l.OpenQuestions, 5),
		Risks: or0(l.Risks, 5), Artifacts: or0(l.Artifacts, 10), AgentContributions: or0(l.AgentContributions, 6),
	}
	return w
}

// Defaults returns the policy with those defaults written out that do not depend
// on the step, for those who show it. It decides as before.
func (l Loop) Defaults() Loop {
	l.Utilization, l.Preserve = or(l.Utilization, loopShare), or(l.Preserve, loopPreserve)
	return l
}
