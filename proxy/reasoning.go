package proxy

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// This file is about providers that demand the model's reasoning on every message in the
// assistant's role, also on those that are made here. Where the conversation does not show it
// (render.Profile.Suited), a refusal does: what was refused is sent once more without such
// messages, and if the provider takes that, later requests for the model are sent so at once.

// reasoningRule says what became of a request for a model that was refused, and sent again
// without messages in the assistant's role that were made here.
type reasoningRule struct {
	Upstream string    `json:"upstream"`
	Model    string    `json:"model"`
	Holds    bool      `json:"holds"` // it was taken
	Seen     time.Time `json:"seen"`
}

// reasoningRuleLifetime is how long that is believed: models change behind their names.
const reasoningRuleLifetime = windowLifetime

// reasoningRulesIn are the known rules, by upstream and model.
func reasoningRulesIn(documents store.Documents) records[reasoningRule] {
	return records[reasoningRule]{documents: documents, kind: "proxy-reasoning", cache: lru.New[string, record[reasoningRule]](maxWindows)}
}

// reasoningRule is what is known of a model; nil for nothing.
func (ms *models) reasoningRule(ctx context.Context, x *received, m token.Model) *reasoningRule {
	known, err := ms.reasoningRules.get(ctx, x.windowID(m.Name))
	if err != nil || known.value == nil || time.Since(known.value.Seen) > reasoningRuleLifetime {
		return nil
	}
	return known.value
}

// saveReasoningRule keeps whether the provider demands reasoning everywhere.
func (ms *models) saveReasoningRule(x *received, m token.Model, holds bool) {
	ms.bestEffort(x, "reasoning_rule", nil, func(ctx context.Context) error {
		id := x.windowID(m.Name)
		was, _ := ms.reasoningRules.get(ctx, id) // one that cannot be read is written again
		_, _, err := ms.reasoningRules.put(ctx, id, was, &reasoningRule{x.request.URL.Host, m.Name, holds, time.Now().UTC().Truncate(time.Second)})
		if errors.Is(err, store.ErrConflict) {
			return nil // another process has written it
		}
		return err
	})
}

// mayWantReasoning reports whether a refusal may be about reasoning that ours lacks. Servers of
// the Chat Completions API say it in any words; of other APIs only models come into question
// that are not known to bind their reasoning.
func (st *stepper) mayWantReasoning(ctx context.Context, x *received, d decision, why refusal) bool {
	if d.step == nil || d.step.prepared == nil || d.step.input.Profile.ReasoningEverywhere || st.models.reasoningRule(ctx, x, d.step.parsed.model) != nil {
		return false
	}
	return x.endpoint.dialect.API() == wire.Chat || !d.step.parsed.model.BindsThinking && reasoningRefusal().MatchString(why.text)
}

// withReasoningEverywhere renders the refused request for a provider that demands reasoning
// everywhere. It is the decision to pass if that changes nothing.
func (st *stepper) withReasoningEverywhere(ctx context.Context, x *received, refused decision) (decision, error) {
	s := *refused.step
	s.input.Messages = nil // they are in the log
	s.input.Profile.ReasoningEverywhere, s.input.Profile.BoundReasoning = true, false
	made, err := s.session.PrepareStep(ctx, s.input)
	if err != nil {
		return decision{step: refused.step}, err
	}
	d, err := st.encodePrepared(ctx, x, &s, made, refused.action != Passed)
	if err != nil || bytes.Equal(d.body, refused.body) {
		return forward(reasonRefused), err
	}
	if d.action == Planned {
		d.action = refused.action
	}
	d.tokensBefore = max(d.tokensBefore, refused.tokensBefore)
	return d, nil
}
