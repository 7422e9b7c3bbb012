// The files in the order of a step: session.go (what an agent loop calls), step.go (the
// step from top to bottom), load.go, situate.go, decide.go, valid.go, commit.go, deliver.go,
// cutoff.go. Then what is done beside steps: plans.go, recall.go, removed.go, background.go,
// steering.go; and what is kept: documents.go, memory.go, sizes.go. A single request needs
// only compactor.go.

// Package palimpsest keeps LLM agents inside their context window without losing the
// conversation.
//
// A thread (package thread) is an immutable log. A plan (package plan) is pure data that
// says what to hide and what to show in its place. A prompt is a pure function of the two
// (package render). A policy (package policy) decides when to make a plan, and how; no
// policy needs a model for it.
//
// An agent loop uses a Session; Overflowed and CutOff help after a refusal.
//
//	c, err := palimpsest.New(palimpsest.Config{Model: "claude-haiku-4-5"})
//	s := c.Session("ticket-4711")
//	p, err := s.PrepareStep(ctx, palimpsest.Step{Messages: news, Profile: render.For(wire.Anthropic)})
//	err = s.FinishStep(ctx, p, usage, answer) // after the model was sent p.Prompt
//
// To fit one conversation into a budget once:
//
//	res, err := c.Compact(ctx, palimpsest.Request{Thread: t, Budget: 32_000, Profile: render.For(wire.Anthropic)})
package palimpsest
