package truth_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/lab/truth"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// planted is a kind of false statement: each summary that it makes holds one.
type planted struct {
	kind string
	make func(s summary.Summary, log []thread.Message) []summary.Summary
}

// each makes a summary for each entry of a list that change makes false.
func each[T any](list func(*summary.Summary) *[]T, change func(*T) bool) func(summary.Summary, []thread.Message) []summary.Summary {
	return func(s summary.Summary, _ []thread.Message) (out []summary.Summary) {
		for i := range *list(&s) {
			c, entries := s, slices.Clone(*list(&s))
			if change(&entries[i]) {
				*list(&c) = entries
				out = append(out, c)
			}
		}
		return out
	}
}

// added makes a summary with one more entry.
func added[T any](list func(*summary.Summary) *[]T, entry T) func(summary.Summary, []thread.Message) []summary.Summary {
	return func(s summary.Summary, _ []thread.Message) []summary.Summary {
		*list(&s) = append(slices.Clone(*list(&s)), entry)
		return []summary.Summary{s}
	}
}

// moved puts the entries of one list into another.
func moved[T any](from, to func(*summary.Summary) *[]T) func(summary.Summary, []thread.Message) []summary.Summary {
	return func(s summary.Summary, _ []thread.Message) (out []summary.Summary) {
		for _, e := range *from(&s) {
			c := s
			*to(&c) = append(slices.Clone(*to(&s)), e)
			out = append(out, c)
		}
		return out
	}
}

func whole(change func(*summary.Summary) bool) func(summary.Summary, []thread.Message) []summary.Summary {
	return func(s summary.Summary, _ []thread.Message) []summary.Summary {
		if !change(&s) {
			return nil
		}
		return []summary.Summary{s}
	}
}

var longWord = regexp.MustCompile(`[A-Za-z]{6,}`)

// otherWord puts another word in place of the middle one of some length.
func otherWord(text *string) bool {
	at := longWord.FindAllStringIndex(*text, -1)
	if len(at) < 2 {
		return false
	}
	m := at[len(at)/2]
	*text = (*text)[:m[0]] + "quuxified" + (*text)[m[1]:]
	return true
}

// otherTurn puts a turn that nothing of the item has to do with.
func otherTurn(turn *int) bool {
	if *turn == 0 {
		return false
	}
	*turn += 1000
	return true
}

func nextTurn(turn *int) bool {
	if *turn < 2 {
		return false
	}
	*turn--
	return true
}

func flip(o *thread.Outcome) bool {
	switch *o {
	case thread.Success:
		*o = thread.Failure
	case thread.Failure:
		*o = thread.Success
	default:
		return false
	}
	return true
}

func otherPath(p *string) bool { *p = filepath.Dir(*p) + "/never_" + filepath.Base(*p); return true }

type listOf = func(*summary.Summary) *[]summary.Item

func requests(s *summary.Summary) *[]summary.Item        { return &s.Requests }
func constraints(s *summary.Summary) *[]summary.Item     { return &s.Constraints }
func stated(s *summary.Summary) *[]summary.Item          { return &s.Stated }
func conclusions(s *summary.Summary) *[]summary.Item     { return &s.Conclusions }
func identifiers(s *summary.Summary) *[]summary.Item     { return &s.Identifiers }
func attempts(s *summary.Summary) *[]summary.Item        { return &s.FailedAttempts }
func reports(s *summary.Summary) *[]summary.Item         { return &s.Reports }
func ledger(s *summary.Summary) *[]summary.File          { return &s.Files }
func outcomes(s *summary.Summary) *[]summary.ToolOutcome { return &s.ToolOutcomes }
func plan(s *summary.Summary) *[]summary.Step            { return &s.CurrentPlan }
func commits(s *summary.Summary) *[]state.Commit         { return &s.Work.Commits }
func editedFiles(s *summary.Summary) *[]state.Edit       { return &s.Work.Edited }
func checks(s *summary.Summary) *[]state.Check           { return &s.Work.Checks }
func notAllowed(s *summary.Summary) *[]state.Seen        { return &s.Work.Refused }
func running(s *summary.Summary) *[]state.Seen           { return &s.Work.Running }
func operations(s *summary.Summary) *[]state.Operation   { return &s.Work.Operations }
func words(l listOf) func(summary.Summary, []thread.Message) []summary.Summary {
	return each(l, func(it *summary.Item) bool { return otherWord(&it.Text) })
}
func turns(l listOf) func(summary.Summary, []thread.Message) []summary.Summary {
	return each(l, func(it *summary.Item) bool { return otherTurn(&it.Turn) })
}

var plants = []planted{
	{"request, other words", words(requests)},
	{"request, another turn", turns(requests)},
	{"request, the turn before", each(requests, func(it *summary.Item) bool { return len(it.Text) > 40 && nextTurn(&it.Turn) })},
	{"request of the assistant", moved(conclusions, requests)},
	{"rule, other words", words(constraints)},
	{"rule, another turn", turns(constraints)},
	{"rule of the assistant", moved(conclusions, constraints)},
	{"stated, other words", words(stated)},
	{"stated, invented", added(stated, summary.Item{Text: "Always deploy on Fridays, whatever the tests say.", Turn: 1})},
	{"stated, another question", each(stated, func(it *summary.Item) bool { return it.Asked != "" && otherWord(&it.Asked) })},
	{"conclusion, other words", words(conclusions)},
	{"conclusion, another turn", turns(conclusions)},
	{"conclusion, the turn before", each(conclusions, func(it *summary.Item) bool { return len(it.Text) > 40 && nextTurn(&it.Turn) })},
	{"conclusion, a line taken out", each(conclusions, func(it *summary.Item) bool {
		l := strings.Split(it.Text, "\n")
		for i := 1; i+1 < len(l); i++ {
			if len(l[i]) > 30 && !strings.Contains(l[i-1]+l[i]+l[i+1], "…") && len(l[i-1]) > 20 && len(l[i+1]) > 20 {
				it.Text = strings.Join(slices.Delete(l, i, i+1), "\n")
				return true
			}
		}
		return false
	})},
	{"conclusion of the user", moved(requests, conclusions)},
	{"commit, another hash", each(commits, func(c *state.Commit) bool {
		if c.Hash == "" {
			return false
		}
		c.Hash = "0f0f0f0"
		return true
	})},
	{"commit, other words", each(commits, func(c *state.Commit) bool { return otherWord(&c.Subject) })},
	{"commit, another turn", each(commits, func(c *state.Commit) bool { return otherTurn(&c.Turn) })},
	{"commit, pushed", each(commits, func(c *state.Commit) bool { was := c.Pushed; c.Pushed = true; return !was })},
	{"commit, invented", added(commits, state.Commit{Hash: "abcdef1", Subject: "Make it so"})},
	{"branch, another", whole(func(s *summary.Summary) bool { was := s.Work.Branch.Text; s.Work.Branch.Text += "-2"; return was != "" })},
	{"branch, an earlier one", earlierBranch},
	{"directory, another", whole(func(s *summary.Summary) bool {
		was := s.Work.Directory.Text
		s.Work.Directory.Text += "/elsewhere"
		return was != ""
	})},
	{"pull request, another", whole(func(s *summary.Summary) bool {
		was := s.Work.PullRequest.Text
		s.Work.PullRequest.Text += "9"
		return was != ""
	})},
	{"edited, never", func(s summary.Summary, _ []thread.Message) (out []summary.Summary) {
		for _, f := range s.Files {
			if c := s; !f.Changed() {
				c.Work.Edited = append(slices.Clone(s.Work.Edited), state.Edit{Path: f.Path, Operation: "edited", Turn: f.Turn})
				out = append(out, c)
			}
		}
		return out
	}},
	{"edited, another file", each(editedFiles, func(e *state.Edit) bool { return otherPath(&e.Path) })},
	{"edited, another turn", each(editedFiles, func(e *state.Edit) bool { return otherTurn(&e.Turn) })},
	{"edited before the last commit", func(s summary.Summary, _ []thread.Message) (out []summary.Summary) {
		if len(s.Work.Commits) == 0 {
			return nil
		}
		last := s.Work.Commits[len(s.Work.Commits)-1].Turn
		for _, f := range s.Files {
			if c := s; f.Changed() && f.Turn > 0 && f.Turn < last && !slices.Contains(f.Operations, "deleted") {
				c.Work.Edited = append(slices.Clone(s.Work.Edited), state.Edit{Path: f.Path, Operation: "edited", Turn: f.Turn})
				out = append(out, c)
			}
		}
		return out
	}},
	{"check, the opposite outcome", each(checks, func(c *state.Check) bool { return flip(&c.Outcome) })},
	{"check, another command", each(checks, func(c *state.Check) bool { return otherWord(&c.Command) })},
	{"check, another turn", each(checks, func(c *state.Check) bool { return otherTurn(&c.Turn) })},
	{"check, the turn before", each(checks, func(c *state.Check) bool { return nextTurn(&c.Turn) })},
	{"check, another line", each(checks, func(c *state.Check) bool { return otherWord(&c.Line) })},
	{"check, a file not changed since", each(checks, func(c *state.Check) bool { c.Since = append(slices.Clone(c.Since), "/w/never.go"); return true })},
	{"not allowed, another turn", each(notAllowed, func(x *state.Seen) bool { return otherTurn(&x.Turn) })},
	{"not allowed, invented", added(notAllowed, state.Seen{Text: "Bash make deploy", Turn: 1})},
	{"running, invented", added(running, state.Seen{Text: "Bash sleep 7200 (id zz99)", Turn: 1})},
	{"next, other words", whole(func(s *summary.Summary) bool { return otherWord(&s.Work.Next.Text) })},
	{"operation, the opposite outcome", each(operations, func(o *state.Operation) bool { return flip(&o.Outcome) })},
	{"operation, another input", each(operations, func(o *state.Operation) bool { return otherWord(&o.Input) })},
	{"operation, another reason", each(operations, func(o *state.Operation) bool { return otherWord(&o.Reason) })},
	{"operation, another turn", each(operations, func(o *state.Operation) bool { return otherTurn(&o.Turn) })},
	{"plan, another status", each(plan, func(x *summary.Step) bool {
		if x.Status == "completed" {
			x.Status = "pending"
		} else {
			x.Status = "completed"
		}
		return true
	})},
	{"plan, other words", each(plan, func(x *summary.Step) bool { return otherWord(&x.Text) })},
	{"file, edited and only read", each(ledger, func(f *summary.File) bool {
		was := f.Changed()
		f.Operations = append(slices.Clone(f.Operations), "edited")
		return !was
	})},
	{"file, deleted and not", each(ledger, func(f *summary.File) bool {
		was := slices.Contains(f.Operations, "deleted")
		f.Operations = append(slices.Clone(f.Operations), "deleted")
		return !was
	})},
	{"file, created and it was there", each(ledger, func(f *summary.File) bool {
		was := slices.Contains(f.Operations, "created")
		f.Operations = []string{"read", "created"}
		return !was
	})},
	{"file, another path", each(ledger, func(f *summary.File) bool { return otherPath(&f.Path) })},
	{"file, another turn", each(ledger, func(f *summary.File) bool { return otherTurn(&f.Turn) })},
	{"file, the turn before", each(ledger, func(f *summary.File) bool { return nextTurn(&f.Turn) })},
	{"call, the opposite outcome", each(outcomes, func(o *summary.ToolOutcome) bool { return flip(&o.Outcome) })},
	{"call, another input", each(outcomes, func(o *summary.ToolOutcome) bool { return otherWord(&o.Input) })},
	{"call, another turn", each(outcomes, func(o *summary.ToolOutcome) bool { return otherTurn(&o.Turn) })},
	{"call, more runs", each(outcomes, func(o *summary.ToolOutcome) bool {
		o.KeyFields = thread.Fields{"runs": 77}
		return true
	})},
	{"call, another output", each(outcomes, func(o *summary.ToolOutcome) bool {
		o.KeyFields = thread.Fields{"output": "quuxified output"}
		return true
	})},
	{"call, another error", each(outcomes, func(o *summary.ToolOutcome) bool { return otherWord(&o.Error) })},
	{"attempt, another turn", turns(attempts)},
	{"attempt, another call", each(attempts, func(it *summary.Item) bool {
		head, rest, ok := strings.Cut(it.Text, " => ")
		ok = ok && otherWord(&head)
		it.Text = head + " => " + rest
		return ok
	})},
	{"attempt, another reason", each(attempts, func(it *summary.Item) bool {
		i := strings.LastIndex(it.Text, " => ")
		it.Text = it.Text[:max(i, 0)] + " => quuxified at line 77"
		return i > 0
	})},
	{"attempt, succeeded later", each(attempts, func(it *summary.Item) bool { it.Text += " | it succeeded later, in turn 999"; return true })},
	{"attempt that succeeded", func(s summary.Summary, _ []thread.Message) (out []summary.Summary) {
		for _, o := range s.ToolOutcomes {
			if text, _ := o.KeyFields["output"].(string); o.Outcome == thread.Success && text != "" {
				c := s
				c.FailedAttempts = append(slices.Clone(s.FailedAttempts), summary.Item{Text: o.Tool + " " + o.Input + " => " + text, Turn: o.Turn, Sources: o.Sources})
				out = append(out, c)
			}
		}
		return out
	}},
	{"identifiers, other words", words(identifiers)},
	{"identifiers, another turn", turns(identifiers)},
	{"identifiers, another label", each(identifiers, func(it *summary.Item) bool {
		_, rest, ok := strings.Cut(it.Text, ":\n")
		it.Text = "never/never.go:\n" + rest
		return ok
	})},
	{"identifiers, a line of another message", func(s summary.Summary, _ []thread.Message) (out []summary.Summary) {
		for i := range s.Identifiers {
			for k := range s.Identifiers {
				_, line, ok := strings.Cut(s.Identifiers[k].Text, "\n")
				if c := s; ok && s.Identifiers[k].Turn != s.Identifiers[i].Turn && len(line) > 60 && !slices.Equal(s.Identifiers[i].Sources, s.Identifiers[k].Sources) {
					c.Identifiers = slices.Clone(s.Identifiers)
					c.Identifiers[i].Text += "\n" + line
					out = append(out, c)
					break
				}
			}
		}
		return out
	}},
	{"report, other words", words(reports)},
	{"report, another turn", turns(reports)},
	{"task, other words", whole(func(s *summary.Summary) bool { return otherWord(&s.CurrentTask) })},
	{"source of nowhere", each(identifiers, func(it *summary.Item) bool { it.Sources = []thread.ID{"none"}; return true })},
}

// earlierBranch tells a branch that was left.
func earlierBranch(s summary.Summary, log []thread.Message) (out []summary.Summary) {
	told := s.Work.Branch.Text
	if told == "" {
		return nil
	}
	branch := regexp.MustCompile(`(?m)^\s*\[([\w./-]+) [0-9a-f]{7,}\] |^(?:On branch |Switched to (?:a new )?branch ')([\w./-]+)`)
	last, other := "", ""
	for i := range log {
		if r, ok := log[i].Result(); ok {
			for _, m := range branch.FindAllStringSubmatch(r.Text(), -1) {
				if last = m[1] + m[2]; last != told {
					other = last
				}
			}
		}
	}
	if other == "" || last != told {
		return nil
	}
	s.Work.Branch.Text = other
	return []summary.Summary{s}
}

// seldom are kinds that the log seldom refutes: a commit may have left a file out.
var seldom = map[string]bool{"edited before the last commit": true}

// TestPlanted: false statements that are planted into true summaries are found.
func TestPlanted(t *testing.T) {
	perKind, budgets := 2, []int{8000}
	var paths []string
	for i, p := range files(t) {
		if corpus.Long() && i%4 == 0 || slices.ContainsFunc(sample, func(s string) bool { return strings.Contains(p, s) }) {
			paths = append(paths, p)
		}
	}
	if corpus.Long() {
		budgets = []int{4000, 16000}
	}
	type count struct{ planted, found int }
	counts := map[string]*count{}
	all := count{}
	for _, path := range paths {
		for n, tr := range open(t, path) {
			if n >= 6 {
				break
			}
			log := tr.Thread.Messages()
			end := spanEnd(log)
			read := truth.Read(log, end)
			for budget, s := range summaries(t, log, end, budgets...) {
				for _, p := range plants {
					list := p.make(s, log[:end])
					for i := 0; i < len(list); i += max(1, len(list)/perKind) {
						c := counts[p.kind]
						if c == nil {
							c = &count{}
							counts[p.kind] = c
						}
						c.planted++
						all.planted++
						if len(read.Check(list[i]).Findings) > 0 {
							c.found++
							all.found++
						} else if testing.Verbose() {
							t.Logf("not found: %s, in %s %s at %d (%d)", p.kind, filepath.Base(path), tr.Name, budget, i)
						}
					}
				}
			}
		}
	}
	for _, p := range plants {
		c := counts[p.kind]
		if c == nil {
			continue
		}
		t.Logf("%-40s %4d of %4d found", p.kind, c.found, c.planted)
		if c.found*2 < c.planted && c.planted > 2 && !seldom[p.kind] {
			t.Errorf("%s: %d of %d are found", p.kind, c.found, c.planted)
		}
	}
	t.Logf("all: %d of %d found, %.1f %%", all.found, all.planted, 100*float64(all.found)/float64(max(1, all.planted)))
	if all.found*100 < all.planted*98 {
		t.Errorf("%d of %d false statements are found; 98 %% are asked for", all.found, all.planted)
	}
}
