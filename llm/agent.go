package llm

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/prompt"
)

// Agent stands for the model that the agent itself talks to, in summarizers that are chosen
// before the agent has sent a request. Answers returned by For ask the real model in its
// place; Agent itself has no answer.
type Agent struct{}

// AgentName is the name of the model that Agent stands for, until it is known.
const AgentName = "agent"

// Model returns AgentName.
func (Agent) Model() string { return AgentName }

// Generate always fails with ErrInvalid.
func (Agent) Generate(context.Context, *prompt.Prompt, *Options) (*Reply, error) {
	return nil, &APIError{Kind: ErrInvalid, Provider: AgentName, Message: "there is no request of the agent yet whose model and credentials could be used"}
}

// For returns the agent's model.
func (Agent) For(agent Generator) Generator { return agent }

// replaceable is a Generator that may contain an Agent. For returns it with the agent's model
// in its place.
type replaceable interface {
	For(agent Generator) Generator
}

// For returns the same Answers for one step of an agent, in which Agent stands for this
// generator. It has the credentials of the current request and is not kept. A nil agent
// changes nothing.
func (a *Answers) For(agent Generator) *Answers {
	if a == nil || agent == nil {
		return a
	}
	return &Answers{sharedAnswers: a.sharedAnswers, agent: agent}
}

// GeneratorFor returns the generator that is really asked: g, with the agent's model in place
// of Agent.
func (a *Answers) GeneratorFor(g Generator) Generator {
	if r, ok := g.(replaceable); ok && a != nil && a.agent != nil {
		return r.For(a.agent)
	}
	return g
}
