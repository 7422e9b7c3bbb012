package llm

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/prompt"
)

// Agent stands for the model that the agent itself talks to, in summarizers that are
// chosen before any request of the agent's is there. Answers made by For ask the real
// one in its place; by itself it has no answer.
type Agent struct{}

// AgentName is the name of the model that Agent stands for, until it is known.
const AgentName = "agent"

// Model returns AgentName.
func (Agent) Model() string { return AgentName }

// Generate fails with ErrInvalid: there is no request of an agent's.
func (Agent) Generate(context.Context, *prompt.Prompt, *Options) (*Reply, error) {
	return nil, &APIError{Kind: ErrInvalid, Provider: AgentName, Message: "there is no request of the agent's whose model and credentials could be used"}
}

// For returns the agent's model.
func (Agent) For(agent Generator) Generator { return agent }

// Replaceable is a Generator in which an Agent may stand: For returns it with the
// agent's model in its place.
type Replaceable interface {
	For(agent Generator) Generator
}

// For returns the same Answers for one step of an agent: what stands for the agent's
// model asks that one, which holds the credentials of the request in hand and is not
// kept. A nil agent changes nothing.
func (a *Answers) For(agent Generator) *Answers {
	if a == nil || agent == nil {
		return a
	}
	return &Answers{sharedAnswers: a.sharedAnswers, agent: agent}
}

// GeneratorFor returns the generator that is really asked: the agent's model for Agent.
func (a *Answers) GeneratorFor(g Generator) Generator {
	if r, ok := g.(Replaceable); ok && a != nil && a.agent != nil {
		return r.For(a.agent)
	}
	return g
}
