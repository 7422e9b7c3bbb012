package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// asker gets the provider's answer.
type asker struct {
	*core
	models  *models
	stepper *stepper
	sender  *sender
}

// ask sends a request, and sends it again in another way if the provider refuses it for a reason that
// can be mended here. It returns the decision that was answered, and why that was refused.
func (a *asker) ask(ctx context.Context, x *received, d decision) (decision, *http.Response, refusal, error) {
	var invalid *decision // ours, which the provider found invalid
	for {
		res, err := a.sender.send(x, d)
		if err != nil {
			if d.action == Recovered {
				d.action = Compacted
			}
			return d, res, refusal{}, err
		}
		if x.endpoint.task != generate {
			return d, res, refusal{}, nil
		}
		why := x.readRefusal(res, d)
		accepted := why.kind == "" && res.StatusCode == http.StatusOK
		a.learn(x, d, why, accepted, invalid)
		if accepted {
			return d, res, why, nil
		}
		next, again := a.stepper.nextTry(ctx, x, d, res, why)
		if !again {
			next.failed = failureOf(res, why)
			if slices.Contains(uncured, why.kind) {
				a.undoUseless(x, next.step)
			}
			if next.action == Recovered {
				next.action, next.reason = Compacted, reasonRefused
			}
			if llm.IsOverflow(why.kind) {
				res = x.unknownHistoryAnswer(res)
			}
			return next, res, why, nil
		}
		if next.retry == retryOriginal {
			ours := d
			invalid = &ours
		}
		res.Body.Close()
		d = next
	}
}

// learn keeps what an answer says of the model, and of the tries before it.
func (a *asker) learn(x *received, d decision, why refusal, accepted bool, invalid *decision) {
	switch {
	case why.kind == llm.ErrOverflow || why.kind == llm.ErrOutput:
		a.models.saveWindow(x, x.modelName(d.parsed), windowInRefusal(why.text))
	case !accepted:
	case d.retry == retryReasoning:
		a.models.saveReasoning(x, d.step.parsed.model.Name, true)
	case invalid != nil: // ours was wrong, not the client's
		if invalid.retry == retryReasoning {
			a.models.saveReasoning(x, invalid.step.parsed.model.Name, false)
		}
		a.emitFault(x, "invalid", errors.New("the provider found the changed request invalid, and took the client's own"), invalid.step)
		a.undoUseless(x, invalid.step)
	case d.retry == retryPlanned || d.retry == retrySmaller:
		a.recovered.Add(1)
	}
}

// uncured are refusals after which a plan that was made for the request has not helped.
var uncured = []llm.Kind{llm.ErrOutput, llm.ErrPictures, llm.ErrBytes, llm.ErrInvalid}

// undoUseless puts the plan of before the request in force again, if one was made for it.
func (co *core) undoUseless(x *received, s *step) {
	if s == nil || s.prepared == nil || s.prepared.PlanVersion <= s.planBefore {
		return
	}
	co.bestEffort(x, "undo", s, func(ctx context.Context) error {
		return s.session.OnlyIf(palimpsest.Condition{Plans: &s.prepared.PlanVersion}).Undo(ctx, s.planBefore)
	})
}

// failureOf is the error of a request that the provider did not take, for the log of whoever runs the
// proxy: its kind and status, and nothing that was said.
func failureOf(res *http.Response, why refusal) error {
	byStatus := llm.Classify("", res.StatusCode, []byte("unread")) // a body without a word says that it is empty
	return &llm.APIError{Kind: cmp.Or(why.kind, byStatus, llm.ErrResponse), Status: res.StatusCode}
}

// unknownHistoryAnswer takes the place of an overflow of a history that is not known here: it
// has the client send the whole. If no answer does that, it is the provider's.
func (x *received) unknownHistoryAnswer(res *http.Response) *http.Response {
	h := x.held
	if h == nil || h.name == "" || h.known || h.kind == heldConversation {
		return res
	}
	res.Body.Close()
	if h.kind == heldThread {
		return refusalAnswer(x.request, native.ThreadNotFound())
	}
	return refusalAnswer(x.request, native.ResponseNotFound(h.name))
}
