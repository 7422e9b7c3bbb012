package drift

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// Report says what is left of facts after many compactions in a row.
type Report struct {
	Split    references.Split `json:"split"`
	Sessions int              `json:"sessions"`
	// Corpus is a hash over the conversations, as in eval.Report.
	Corpus string `json:"corpus"`
	// Left counts the conversations that were not measured because the run was canceled.
	Left int `json:"left,omitempty"`
	// Rounds counts the compactions, Budget is what each leaves of messages, in tokens.
	Rounds int `json:"rounds"`
	Budget int `json:"budget"`
	// Trace counts the facts that the sessions themselves need again, Unseen those of them
	// that do not come up in between, Canaries those that were planted.
	Trace    int   `json:"trace_facts"`
	Unseen   int   `json:"trace_facts_unseen"`
	Canaries int   `json:"canaries"`
	Asked    []int `json:"lookup_rounds"`
	Rows     []Row `json:"rows"`
}

// Row is a policy; shares are of all facts of all sessions.
type Row struct {
	Contender string `json:"contender"`
	// Trace and Canaries are the shares that stand bound in the prompt after each
	// round; the totals add what one lookup brings, at the rounds of Asked.
	Trace         []float64 `json:"trace"`
	Canaries      []float64 `json:"canaries"`
	TraceTotal    []float64 `json:"trace_total"`
	CanariesTotal []float64 `json:"canaries_total"`
	// HalfLife is after how many rounds half of what the first left is left, by
	// the mean loss of a round over both kinds; 0 where nothing is lost.
	HalfLife float64 `json:"half_life"`
	// Kinds are the canaries in the prompt after the last round, by kind.
	Kinds map[string]float64 `json:"canary_kinds"`
	// Told counts the values of canaries in text that the policy wrote, over all rounds,
	// Mutated those that differ from the planted one, MutationRate the latter over the
	// former. Failed counts the rounds that made no plan.
	Mutated      int     `json:"mutated"`
	Told         int     `json:"told"`
	MutationRate float64 `json:"mutation_rate"`
	Failed       int     `json:"failed"`
	// Prompt and State are the tokens of the messages, and of those of them that the
	// policy wrote, after each round, as means over sessions.
	Prompt []float64 `json:"prompt"`
	State  []float64 `json:"state"`
	// Growth is the mean growth of State per round in the second half; it must not keep
	// growing.
	Growth float64 `json:"state_growth"`
	// Alike is the share of facts that one compaction and five both keep, among those that
	// either keeps.
	Alike float64 `json:"order_jaccard"`
}

func newReport(policies []policy.Policy, parts [][]*drifted) *Report {
	r := &Report{Sessions: len(parts), Rounds: driftRounds, Budget: driftBudget, Asked: askedRounds}
	for _, part := range parts {
		r.Trace += part[0].trace
		r.Unseen += part[0].unseen
		r.Canaries += part[0].canaries
	}
	share := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	for k, p := range policies {
		row := Row{Contender: p.Name(), Kinds: map[string]float64{}}
		var alike, either int
		var kinds [canaryKinds]survival
		for n := range driftRounds {
			var sum survival
			for _, part := range parts {
				x := part[k].rounds[n]
				sum.trace += x.trace
				sum.canaries += x.canaries
				sum.traceTotal += x.traceTotal
				sum.canariesTotal += x.canariesTotal
				sum.prompt += x.prompt
				sum.state += x.state
				sum.asked = x.asked
			}
			row.Trace = append(row.Trace, share(sum.trace, r.Trace))
			row.Canaries = append(row.Canaries, share(sum.canaries, r.Canaries))
			if sum.asked {
				row.TraceTotal = append(row.TraceTotal, share(sum.traceTotal, r.Trace))
				row.CanariesTotal = append(row.CanariesTotal, share(sum.canariesTotal, r.Canaries))
			}
			row.Prompt = append(row.Prompt, share(sum.prompt, len(parts)))
			row.State = append(row.State, share(sum.state, len(parts)))
		}
		for _, part := range parts {
			row.Mutated += part[k].mutated
			row.Told += part[k].told
			row.Failed += part[k].failed
			alike += part[k].alike
			either += part[k].either
			for i, x := range part[k].kinds {
				kinds[i].canaries += x.canaries
				kinds[i].all += x.all
			}
		}
		for i, x := range kinds {
			row.Kinds[canaryNames[i]] = share(x.canaries, x.all)
		}
		row.Alike = share(alike, either)
		row.MutationRate = share(row.Mutated, row.Told)
		row.Growth = (row.State[driftRounds-1] - row.State[driftRounds/2-1]) / (driftRounds - driftRounds/2)
		row.HalfLife = halfLife(row.both(r, 0), row.both(r, driftRounds-1), driftRounds-1)
		r.Rows = append(r.Rows, row)
	}
	return r
}

// both is the share of all facts that are left after a round.
func (row *Row) both(r *Report, n int) float64 {
	all := float64(max(1, r.Trace+r.Canaries))
	return (row.Trace[n]*float64(r.Trace) + row.Canaries[n]*float64(r.Canaries)) / all
}

// halfLife is the half-life of a share that fell exponentially from first to last in so
// many rounds.
func halfLife(first, last float64, rounds int) float64 {
	if first <= 0 || last >= first {
		return 0
	}
	if last <= 0 {
		last = first / 1e6
	}
	return float64(rounds) * math.Ln2 / math.Log(first/last)
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nDrift: %d conversations (%s), corpus %s\n%d compactions into %d tokens, %d facts of the sessions\n(%d do not come up between), %d canaries\n\n",
		r.Sessions, r.Split, r.Corpus, r.Rounds, r.Budget, r.Trace, r.Unseen, r.Canaries)
	line := func(name, what string, at []int, values []float64, format string) {
		fmt.Fprintf(&b, "%-12s %-28s", name, what)
		for i, n := range at {
			v := values[min(i, len(values)-1)]
			if len(values) == r.Rounds {
				v = values[n-1]
			}
			fmt.Fprintf(&b, format, v)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%-12s %-28s", "", "after round")
	for _, n := range r.Asked {
		fmt.Fprintf(&b, "%8d", n)
	}
	b.WriteString("\n")
	for _, row := range r.Rows {
		line(row.Contender, "facts in the prompt", r.Asked, row.Trace, "%8.3f")
		line("", "or by one lookup", r.Asked, row.TraceTotal, "%8.3f")
		line("", "canaries in the prompt", r.Asked, row.Canaries, "%8.3f")
		line("", "or by one lookup", r.Asked, row.CanariesTotal, "%8.3f")
		line("", "prompt, tokens", r.Asked, row.Prompt, "%8.0f")
		line("", "not as it was said, tokens", r.Asked, row.State, "%8.0f")
		life := "none lost"
		if row.HalfLife > 0 {
			life = fmt.Sprintf("%.0f rounds", row.HalfLife)
		}
		fmt.Fprintf(&b, "%-12s half-life %s · values changed %d of %d\n%-12s rounds without a plan %d · state grows by %.0f tokens a round\n%-12s one and five compactions alike %.3f\n%-12s",
			"", life, row.Mutated, row.Told, "", row.Failed, row.Growth, "", row.Alike, "")
		for i, name := range canaryNames {
			switch {
			case i == canaryKinds/2:
				fmt.Fprintf(&b, "\n%-12s", "")
			case i > 0:
				b.WriteString(" ·")
			}
			fmt.Fprintf(&b, " %s %.3f", name, row.Kinds[name])
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
