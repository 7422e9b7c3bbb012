package palimpsest

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Notes are what the model of a session has written down with Recall.ContextTools, the oldest first.
// They are the model's words. earlier are as for Session.
func (c *Compactor) Notes(ctx context.Context, id string, earlier ...string) (_ []plan.Note, err error) {
	defer nameCall(&err, "Notes", id)
	book, _, err := readBook(ctx, c.Session(id, earlier...))
	return book.Notes, err
}

// steering is how the model of a session sees and steers its context.
type steering struct {
	session  *Session
	prepared *Prepared // what it answers to; nil if that is not known
}

// Count implements rehydrate.Steering.
func (st steering) Count(text string) int { return st.session.c.config.Counter.Text(text) }

// ChangeNotes implements rehydrate.Steering.
func (st steering) ChangeNotes(ctx context.Context, change func(*notes.Book) error) error {
	return changeBook(ctx, st.session, change)
}

// Status implements rehydrate.Steering.
func (st steering) Status(ctx context.Context) (rehydrate.Status, error) {
	s := st.session
	out := rehydrate.Status{Session: s.id}
	book, _, err := readBook(ctx, s)
	if err == nil {
		out.Plan, _, err = s.c.config.Store.Plans.Current(ctx, s.id)
	}
	out.Notes = len(book.Notes)
	out.Unmade = book.AskedAt > 0 && book.Asked == nil && (out.Plan == nil || out.Plan.ThreadVersion < book.AskedAt)
	if p := st.prepared; p != nil {
		out.Window, out.Limit, out.Used, out.Mark = p.Step.Window, p.limit, p.Tokens, p.mark
	}
	return out, err
}

// requestsBetween is how many requests must lie between two compactions, for one that the model asks
// for: else it could spend its requests on them.
const requestsBetween = 4

// Compact implements rehydrate.Steering.
func (st steering) Compact(ctx context.Context, keep string) (answer, refused string, err error) {
	s := st.session
	log, current, _, err := readLogAndPlan(ctx, s)
	if err != nil {
		return "", "", err
	}
	err = changeBook(ctx, s, func(b *notes.Book) error {
		last := b.AskedAt
		if !current.Empty() {
			last = max(last, current.ThreadVersion)
		}
		if n := requestsSince(log, last); last > 0 && n < requestsBetween {
			return soonError{clip.Count(n, "request")}
		}
		b.Ask(keep, log.Len())
		return nil
	})
	if soon, ok := errors.AsType[soonError](err); ok {
		return "", fmt.Sprintf("the last compaction was made or asked for %s ago; one more would find little to remove. It can be asked for again after %d", soon.requests, requestsBetween), nil
	}
	return "The earlier part of the conversation is compacted before your next request, if there is anything to remove. Go on with the task.", "", err
}

// soonError says that the last compaction is only so many requests ago.
type soonError struct{ requests string }

// Error says so.
func (e soonError) Error() string { return e.requests + " since the last compaction" }

// requestsSince counts what the model has answered since the log had so many messages.
func requestsSince(log *thread.Thread, messages int) (n int) {
	for i := min(messages, log.Len()); i < log.Len(); i++ {
		if log.At(i).Role == thread.Assistant {
			n++
		}
	}
	return n
}

// asked is the policy for a compaction that the model asked for: where the request is smaller than the
// policy would leave it, or hardly larger, half of it.
type asked struct{ policy.Policy }

// askedGain is the share of the request that the policy has to free, else half of it goes.
const askedGain = 0.25

// minAsked is the request, in tokens, from which half of it is worth a compaction.
const minAsked = 8_000

// Plan implements policy.Policy.
func (a asked) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	target := 0
	if p, ok := policy.As[marker](a.Policy); ok {
		target = p.Marks(s).Target
	}
	if s.PromptTokens < minAsked || float64(target) < (1-askedGain)*float64(s.PromptTokens) {
		f, err := a.Policy.Plan(ctx, s)
		if !errors.Is(err, policy.ErrNothing) || s.PromptTokens < minAsked {
			return f, err
		}
	}
	half := *s
	half.Fill, half.Budget = true, s.PromptTokens/2
	f, err := a.Policy.Plan(ctx, &half)
	switch {
	case errors.Is(err, policy.ErrOverBudget) && s.PromptTokens > target && target > 0:
		return a.Policy.Plan(ctx, s)
	case errors.Is(err, policy.ErrOverBudget):
		err = fmt.Errorf("%w: %w", policy.ErrNothing, err)
	}
	return f, err
}
