package eval

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// ValidityReport counts prompts and what the providers' published rules would
// refuse of them.
type ValidityReport struct {
	Sessions int `json:"sessions"`
	// Left counts the conversations that were not replayed because the run was canceled.
	Left int           `json:"left,omitempty"`
	Rows []ValidityRow `json:"rows"`
	// Problems are the first of what was refused.
	Problems []string `json:"problems,omitempty"`
}

// ValidityRow is one policy for one API.
type ValidityRow struct {
	Policy      string `json:"policy"`
	API         string `json:"api"`
	Prompts     int    `json:"prompts"`
	Compactions int    `json:"compactions"`
	// Invalid prompts break a rule of the API, Over are larger than the budget that
	// the thread was given, a third of the conversation, or a sixth.
	Invalid int `json:"invalid"`
	Over    int `json:"over_budget"`
}

// maxProblems bounds the problems of a report.
const maxProblems = 20

// ValidityOptions tune Validity; nil and the zero value replay everything.
type ValidityOptions struct {
	// Split is the half to replay; empty for all.
	Split references.Split
	// Tight gives a sixth of the conversation instead of a third, so that short ones
	// are compacted too, and often.
	Tight bool
	// Progress is told how many sessions are done.
	Progress references.Progress
}

// messageBudget is the budget of a replay for messages, in tokens.
func (o *ValidityOptions) messageBudget(s *references.Session) int {
	if o.Tight {
		return max(500, s.Total/6)
	}
	return max(4_000, s.Total/3)
}

// Validity replays every conversation through our policies for every API, with a budget
// of a third of it so that all long ones compact, and checks each prompt by the rules of
// the API. When the context ends first, the report is about the conversations done so
// far, and the error wraps that of the context.
func Validity(ctx context.Context, set *references.Set, o *ValidityOptions) (*ValidityReport, error) {
	o = cmp.Or(o, &ValidityOptions{})
	codecs := []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}
	sessions := references.LargestFirst(set.OfSplit(o.Split, 0))
	parts, err := references.Map(ctx, sessions, o.Progress, func(s *references.Session) (*ValidityReport, error) {
		part := &ValidityReport{}
		for _, p := range references.Policies() {
			for _, codec := range codecs {
				if err := part.replay(ctx, s, p, codec, set.Counter, o.messageBudget(s)); err != nil {
					return nil, err
				}
			}
		}
		return part, nil
	})
	if err != nil {
		err = fmt.Errorf("eval.Validity: %w", err)
		if !references.IsCanceled(ctx, err) {
			return nil, err
		}
	}
	whole := &ValidityReport{Sessions: len(parts), Left: len(sessions) - len(parts)}
	for _, part := range parts {
		for n, row := range part.Rows {
			if n == len(whole.Rows) {
				whole.Rows = append(whole.Rows, ValidityRow{Policy: row.Policy, API: row.API})
			}
			whole.Rows[n].add(row)
		}
		whole.Problems = append(whole.Problems, part.Problems...)
	}
	whole.Problems = whole.Problems[:min(len(whole.Problems), maxProblems)]
	return whole, err
}

// add adds up what was counted.
func (r *ValidityRow) add(x ValidityRow) {
	r.Prompts += x.Prompts
	r.Compactions += x.Compactions
	r.Invalid += x.Invalid
	r.Over += x.Over
}

// replay adds the row of one policy and API.
func (v *ValidityReport) replay(ctx context.Context, s *references.Session, p policy.Policy, codec wire.Codec, counter *token.Counter, room int) error {
	row := ValidityRow{Policy: p.Name(), API: codec.API()}
	r := newReplay(s, token.Model{}, "", counter)
	h, err := r.agentLoop(ctx, p, counter)
	if err != nil {
		return err
	}
	h.base.Model = "a-model"
	budget := room + s.Fixed
	messages := s.Thread.Messages()
	for k, a := range r.requests {
		sent, err := h.thread.PrepareStep(ctx, palimpsest.Step{Base: &h.base, Messages: messages[h.seen:a.at], Profile: render.For(codec.API()), Budget: budget})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		row.Prompts++
		if h.counter.Prompt(sent.Prompt) > budget {
			row.Over++
		}
		if why := references.RefusalReason(codec, sent.Prompt); why != "" {
			row.Invalid++
			if len(v.Problems) < maxProblems {
				v.Problems = append(v.Problems, fmt.Sprintf("%s, %s for %s, request %d: %s", s.Name, row.Policy, row.API, k, why))
			}
		}
		h.seen = a.end
		if err := h.thread.FinishStep(ctx, nil, wire.Usage{}, messages[a.at:a.end]...); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if _, row.Compactions, err = h.plans.Current(ctx, s.Thread.ID()); err != nil {
		return err
	}
	v.Rows = append(v.Rows, row)
	return nil
}

// WriteTable writes the report for people.
func (v *ValidityReport) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nValidity: %d conversations, every prompt by the published rules of its API\n\n", v.Sessions)
	fmt.Fprintf(&b, "%-12s %-20s %9s %12s %9s %6s\n", "policy", "API", "prompts", "compactions", "invalid", "over")
	all := ValidityRow{Policy: "all"}
	for _, r := range v.Rows {
		all.add(r)
	}
	for _, r := range append(slices.Clone(v.Rows), all) {
		fmt.Fprintf(&b, "%-12s %-20s %9d %12d %9d %6d\n", r.Policy, r.API, r.Prompts, r.Compactions, r.Invalid, r.Over)
	}
	switch {
	case all.Prompts == 0:
		b.WriteString("\nNo prompt was made: no conversation has an answer to ask for.\n")
	case all.Invalid == 0:
		fmt.Fprintf(&b, "\nNone refused of %d: with 95 %% confidence fewer than %.0f of a million (rule of three).\n", all.Prompts, math.Ceil(3e6/float64(all.Prompts)))
	default:
		fmt.Fprintf(&b, "\nRefused: %d of %d. The first of them:\n", all.Invalid, all.Prompts)
	}
	for _, p := range v.Problems {
		b.WriteString(p + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
