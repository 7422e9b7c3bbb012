package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Summarize replaces the old part of the thread by summaries, one for each run of messages
// between pinned ones.
type Summarize struct {
	// Keep says how much of the newest part stays. Nil keeps as much as fits beside
	// summaries of seven tenths of the room, but of at most three tenths of what they
	// replace, so that a prompt that must shrink only a little keeps more of its newest
	// part whole. What the kept part leaves free goes to the summaries too.
	Keep cut.Policy
	// Ratio bounds a summary to this share of what it replaces; 0 is no bound.
	Ratio float64
	// Pointers has a summary name everything that was externalized of its span, and not
	// only what no tool can give again: the newest first, as much as there is room for.
	Pointers bool

	// exact: everything before the cut is summarized, also where there would be room for
	// more. Only calls that wait for their results stay.
	exact bool
	// state: of the old part only what the user said and laid down and where the work stands; the
	// newest part takes the rest.
	state bool
	// full: the room is filled with what is hardly worth it too, since nothing better is left for it.
	full bool
}

const (
	// fullRatio was tuned on the dev split (lab/README.md).
	fullRatio = 0.3
	// minSummary is the least room that a summary is worth having in, in tokens.
	minSummary = 120
	// What the user said adds to the room of a summary: at most a share of the room; and tokens around each message.
	saidShare, saidFrame = 0.4, 12
	// leastRun is the least room that is worth a summary of its own beside others, in
	// tokens: each has a frame and headings.
	leastRun = 1000
	// fillShare: summaries are filled up when more than this part of the room (one
	// fiftieth) is left.
	fillShare = 50
	// stateRoom is what a summary of the state alone takes beside the user's words, in tokens, up to
	// stateShare of the room; half of it stays free for it.
	stateRoom, stateShare = 1500, 0.2
)

// Name returns "summarize".
func (Summarize) Name() string { return "summarize" }

// Aggressiveness puts it between clear and drop.
func (Summarize) Aggressiveness() int { return summarizeRung }

// Analyze chooses the cut and proposes the runs before it. The room of the proposals
// together fills what the rest of the prompt leaves.
func (s Summarize) Analyze(v *View) []Proposal {
	points := cut.Legal(v.Thread, v.Pairs)
	runs, room := v.divide(v.runs(s.cut(v, points)))
	v.leaving = make([]bool, len(v.messages))
	for _, run := range runs {
		for _, i := range run {
			v.leaving[i] = true
		}
	}
	var proposals []Proposal
	for n, run := range runs {
		room[n] = s.bound(room[n], sum(v.Sizes, run))
		if room[n] < minSummary {
			continue
		}
		why := "older than what stays whole"
		if run[0] == request(v.messages) {
			why = "larger than the room for it"
		}
		proposals = append(proposals, Proposal{
			Strategy: s.Name(), Span: v.span(run), EstimatedTokensFreed: sum(v.now, run) - room[n], Room: room[n], Reason: why,
		})
	}
	return proposals
}

// bound is the room, in tokens, of a summary that replaces so many tokens.
func (s Summarize) bound(room, replaced int) int {
	if s.Ratio > 0 {
		room = min(room, int(float64(replaced)*s.Ratio))
	}
	return room
}

// hold releases what the level of protection would keep before an exact cut, and protects
// what the cut keeps, as long as the level protects more than the last step. A kept part
// that does not fit becomes shorter at the later levels.
func (s Summarize) hold(v *View) {
	at := s.Keep.Cut(cut.Legal(v.Thread, v.Pairs), func(i int) int { return v.now[i] })
	if v.level < LastStep {
		v.Tail = at
	} else {
		v.Tail = max(v.Tail, at)
	}
	clear(v.Anchored)
	for i := range v.messages {
		if i < at && !v.Pairs.Open(i) && !v.messages[i].IsInstruction() && !slices.Contains(v.Pins, i) {
			v.Pinned[i] = false
		}
		if v.Pinned[i] {
			v.anchor(i)
		}
	}
}

// divide gives each run its part of the room that is left when all of them go: by size,
// but at least a quarter of an even part. The last run gets the room for the state of the
// work in addition, which it tells for all. A run that is no larger than its summary would
// be stays. Where the parts would be too small for summaries, the runs become one.
func (v *View) divide(runs [][]int) ([][]int, []int) {
	asked := request(v.messages)
	for {
		left, all := v.Room-v.total, 0
		for _, run := range runs {
			left += sum(v.now, run)
			all += sum(v.Sizes, run)
		}
		left = min(left, v.newSummaryRoom())
		work, last := 0, len(runs)-1
		if last > 0 && runs[last][0] == asked {
			last--
		}
		if len(runs) > 1 && !v.summarizedFrom(runs[last][len(runs[last])-1]+1) {
			work = summarize.WorkRoom(left + v.Summarized())
			left -= work
		}
		room := make([]int, len(runs))
		stays, small := -1, false
		for n, run := range runs {
			floor := left / (4 * len(runs))
			room[n] = floor + int(float64(left-floor*len(runs))*float64(sum(v.Sizes, run))/float64(max(all, 1)))
			if n == last {
				room[n] += work
			}
			small = small || room[n] < leastRun
			if sum(v.now, run) <= max(room[n], minSummary) {
				stays = n
			}
		}
		switch {
		case len(runs) > 1 && stays >= 0:
			runs = slices.Delete(runs, stays, stays+1)
		case small && len(joined(runs, asked)) < len(runs):
			runs = joined(runs, asked)
		default:
			return runs, room
		}
	}
}

// joined makes one run of all, but for the user's newest request, which stays one of the user's.
func joined(runs [][]int, request int) (all [][]int) {
	for n, run := range runs {
		if last := len(all) - 1; n > 0 && run[0] != request && all[last][0] != request {
			all[last] = slices.Concat(all[last], run)
		} else {
			all = append(all, run)
		}
	}
	return all
}

// request is the position of the user's newest request, as long as no model has answered; -1 for none.
func request(messages []thread.Message) int {
	for i := len(messages) - 1; i >= 0 && messages[i].Role != thread.Assistant; i-- {
		if messages[i].StartsTurn() {
			return i
		}
	}
	return -1
}

func sum(sizes []int, at []int) int {
	total := 0
	for _, i := range at {
		total += sizes[i]
	}
	return total
}

// cut returns the position before which everything free is summarized. A kept part that
// leaves no room for a summary becomes shorter: what goes is summarized, never just left
// out.
func (s Summarize) cut(v *View, points *cut.Points) int {
	if s.Keep != nil {
		return min(max(s.Keep.Cut(points, func(i int) int { return v.now[i] }), v.fit(points, 2*minSummary, 1, saidShare)), v.Tail)
	}
	if s.state {
		return v.fit(points, min(stateRoom, v.part(stateShare)), 1, saidShare)
	}
	return v.fit(points, min(v.part(summaryShare), v.newSummaryRoom()), fullRatio, 0)
}

// fit returns the first legal cut that leaves summaries that many tokens, and in addition what the user said before
// it, up to a share of the room, or this ratio of what they replace; the last cut before the tail where none does.
func (v *View) fit(points *cut.Points, want int, ratio, share float64) int {
	last, kept, older, said := 0, v.total, 0, 0
	for i := 0; i <= v.Tail; i++ {
		if points.Legal(i) || i == len(v.messages) { // all of it may go, too
			last = i
			if i > 0 && kept+min(want+said, int(ratio*float64(older))) <= v.Room {
				break
			}
		}
		if i < v.Tail && v.Free(i) {
			if m := &v.messages[i]; said < v.part(share) && m.Said()+injected.UserWords(m) != "" {
				said = min(v.part(share), said+2*v.CountText(m.Said()+injected.UserWords(m))+saidFrame)
			}
			kept -= v.now[i]
			older += v.now[i]
		}
	}
	return last
}

// runs are the free messages before a cut, in runs without a pinned message in between. A
// run extends over pinned messages to the results of its calls: each run must be valid on
// its own, should the others stay. The user's newest request is a run of its own.
func (v *View) runs(end int) [][]int {
	var runs [][]int
	var run []int
	reach, asked := -1, request(v.messages) // the furthest result of any call so far
	for i := range end {
		if v.Free(i) {
			if len(run) > 0 && reach < i && (i == asked || run[0] == asked) {
				runs, run = append(runs, run), nil
			}
			for _, r := range v.Pairs.Results(i) {
				reach = max(reach, r)
			}
			_, last := v.Pairs.Unit(i)
			reach = max(reach, last)
			run = append(run, i)
			continue
		}
		if len(run) > 0 && v.Anchored[i] && reach < i {
			runs, run = append(runs, run), nil
		}
	}
	if len(run) > 0 {
		runs = append(runs, run)
	}
	return runs
}

// Execute asks the summarizer, with what follows the span in the prompt as context.
func (s Summarize) Execute(ctx context.Context, v *View, p Proposal) (done Executed, err error) {
	at := v.positions(p.Span)
	end := at[len(at)-1] + 1
	in := summarize.Input{Messages: v.messages[at[0]:end], Log: v.messages, Context: v.messages[end:], Shown: v.shown(at), Answers: v.Answers, Instructions: v.Instructions, InstructionsBy: v.InstructionsBy, Sent: v.Sent, State: s.state, Full: s.full}
	if len(in.Messages) > len(at) { // others stand between them
		in.Messages = make([]thread.Message, len(at))
		for n, i := range at {
			in.Messages[n] = v.messages[i]
		}
	}
	record := plan.Summarization{Span: p.Span, Origin: v.origin(s.Name(), p.Reason, at)}
	refs, keep := v.references(at, s.Pointers)
	record.Kept = keep
	share := v.parts().pointers
	if s.Pointers {
		share = largeParts.pointers
	}
	most := int(share * float64(p.Room))
	for len(refs) > 0 && v.referenceTokens(refs) > most {
		refs = refs[:len(refs)*3/4] // the rest can be found by a search
	}
	refs = slices.Clone(refs) // the others may be very many
	frame, _ := v.cost(record, at[:1])
	in.Budget = p.Room - frame - v.referenceTokens(refs)
	in.Continued = v.summarizedFrom(end) || at[0] == request(v.messages)
	in.Restated = v.workSummarizedBefore(at[0])
	in.Together = p.Room + v.Summarized()
	for _, i := range at {
		in.Together -= v.summaryAt(i)
	}
	if s.state {
		in.Together = v.Room
	}
	if err = fitRoom(ctx, v, in, p.Room, at, refs, &record, &done); err != nil {
		return done, fmt.Errorf("strategy.Summarize: turns %d to %d: %w", p.Span.FirstTurn, p.Span.LastTurn, err)
	}
	return done, nil
}

// fitRoom asks for a summary until the record with it takes no more than room, a few times. A summary
// is counted as text of its own; inside the message it can come out a few tokens larger.
func fitRoom(ctx context.Context, v *View, in summarize.Input, room int, at []int, refs []summary.ArtifactReference, record *plan.Summarization, done *Executed) error {
	for n := range 5 {
		if in.Budget <= 0 { // it would be no limit
			break
		}
		asked := in
		asked.Budget = Uncorrected(in.Budget, v.Correction)
		made, err := askOnce(ctx, v, asked)
		if err != nil {
			return err
		}
		made.Artifacts = append(slices.Clip(made.Artifacts), refs...)
		record.Summary = made.Summary
		if at[0] == request(v.messages) { // which says nothing of the work
			record.Summary.Work = state.Work{}
		}
		text := record.Summary.Render()
		done.Summaries = append(done.Summaries, made.Report)
		if made.Judged.By != "" {
			done.Summaries = append(done.Summaries, made.Judged)
		}
		rendered := *record // so that it is not rendered again
		rendered.Stand = []plan.Replacement{{Text: render.SummaryText(record.Span, text)}}
		record.TokensAfter, _ = v.cost(rendered, at)
		if over := record.TokensAfter - room; over > 0 {
			in.Budget -= over * max(1, n)
			continue
		}
		if record.TokensAfter < record.TokensBefore {
			record.SummaryTokens = v.CountText(text)
			done.Record = *record
			return nil
		}
		break
	}
	return ErrNoGain
}

// askOnce asks the summarizer; one that asks no model is not asked the same twice in a row.
func askOnce(ctx context.Context, v *View, in summarize.Input) (summarize.Result, error) {
	if _, byRule := v.Summarizer.(*summarize.Extractive); !byRule {
		return v.Summarizer.Summarize(ctx, in)
	}
	if v.asked == nil || !v.asked.Same(&in) {
		out, err := v.Summarizer.Summarize(ctx, in)
		if err != nil {
			return out, err
		}
		v.asked, v.answer = &in, out
	}
	return v.answer, nil
}

// summarizedFrom reports whether a message from this position on is summarized, other than the user's newest request.
func (v *View) summarizedFrom(i int) bool {
	asked := request(v.messages)
	for k, c := range v.cover[i:] {
		if i+k != asked && c >= 0 && v.records[c].Action() == plan.Summarize {
			return true
		}
	}
	return false
}

// workSummarizedBefore reports whether a summary of the plan in force, which cannot change, says
// before position i where the work stood.
func (v *View) workSummarizedBefore(i int) bool {
	return slices.ContainsFunc(v.cover[:i], func(c int) bool {
		if c < 0 || c >= v.inForce {
			return false
		}
		r, ok := v.records[c].(plan.Summarization)
		return ok && !r.Summary.Work.IsZero()
	})
}

// keepNewestWork leaves it to the last new summary to say where the work stands: earlier ones
// would contradict it.
func (v *View) keepNewestWork() {
	for _, record := range v.records[v.inForce:] {
		r, ok := record.(plan.Summarization)
		if !ok || r.Summary.Work.IsZero() {
			continue
		}
		at := v.positions(r.Span)
		if v.summarizedFrom(at[len(at)-1] + 1) {
			r.Summary.Work = state.Work{}
			r.TokensAfter, _ = v.cost(r, at)
			r.SummaryTokens = v.CountText(r.Summary.Render())
			v.apply(r)
		}
	}
}

func (v *View) referenceTokens(refs []summary.ArtifactReference) int {
	if len(refs) == 0 {
		return 0
	}
	return v.CountText((&summary.Summary{Artifacts: refs}).Render())
}

// shown is what the prompt shows beside a summary of the messages at these positions,
// without what other proposals of the rung are about to take away.
func (v *View) shown(at []int) []thread.Message {
	inside := make([]bool, len(v.messages))
	for _, i := range at {
		inside[i] = true
	}
	shown := make([]thread.Message, 0, len(v.messages)-len(at))
	for i := range v.messages {
		switch c := v.cover[i]; {
		case inside[i]:
		case c < 0:
			if v.leaving == nil || !v.leaving[i] {
				shown = append(shown, v.messages[i])
			}
		case v.now[i] > 0:
			shown = append(shown, v.Profile.Replacement(v.messages[i], v.records[c], v.inPlace(i))...)
		}
	}
	return shown
}

// Fill gives room that is left to the largest summary and, unless the cut is exact, what
// it cannot use to messages that the summary covers.
func (s Summarize) Fill(ctx context.Context, v *View) {
	largest := s.fuller(ctx, v)
	slack := -v.Over()
	if s.state && largest != nil {
		slack -= max(0, min(stateRoom, v.part(stateShare))/2-largest.TokensAfter)
	}
	if largest != nil && !s.exact && slack > v.Room/emptyShare {
		s.giveRoom(ctx, v, largest.Span, slack)
	}
	if s.full = -v.Over() > v.Room/emptyShare; s.full && !s.state {
		s.fuller(ctx, v)
	}
}

// fuller makes the largest summary again with the room that is left. It returns the
// summary as it was, nil where there is none or no room.
func (s Summarize) fuller(ctx context.Context, v *View) *plan.Summarization {
	slack := -v.Over()
	if slack <= v.Room/fillShare {
		return nil
	}
	var largest *plan.Summarization
	for _, record := range v.records[v.inForce:] {
		if r, ok := record.(plan.Summarization); ok && (largest == nil || r.TokensBefore > largest.TokensBefore) {
			largest = &r
		}
	}
	if largest == nil {
		return nil
	}
	room := s.bound(largest.TokensAfter+min(slack, v.newSummaryRoom()), largest.TokensBefore)
	left := func(p Proposal) bool { return p.Span.First() == largest.Span.First() && p.Room >= room } // a part of as much
	if room > largest.TokensAfter && (s.full || !slices.ContainsFunc(v.proposed, left)) {
		_ = v.execute(ctx, s, Proposal{Span: largest.Span, Reason: largest.Reason, Room: room})
	}
	return largest // an error leaves it as it was
}

// emptyShare: when more than this part of the room (one tenth) is left, the summary has
// nothing more to say, and covers less.
const emptyShare = 10

// giveRoom takes messages that fit as they are out of a summary: the newest first, and
// where one is too large and much room is left, earlier ones. Calls and their results stay
// together. Where that still leaves much room, the newest output that was skipped shows as
// many of its lines as there is room for.
func (s Summarize) giveRoom(ctx context.Context, v *View, span thread.Span, slack int) {
	at := v.positions(span)
	whole := v.records[v.cover[at[0]]]
	inside := make(map[int]bool, len(at))
	for _, i := range at {
		inside[i] = true
	}
	left, stays := slack, map[*group]bool{} // what does not fit now will not later
	for _, i := range slices.Backward(at) {
		if !inside[i] || v.messages[i].IsInstruction() { // what is inside stands again later
			continue
		}
		group := v.linked(i)
		if stays[group] = stays[group] || group.size > left || !group.isIn(inside); stays[group] {
			if left > v.Room/emptyShare {
				continue
			}
			break
		}
		left -= group.size
		for _, i := range group.at {
			delete(inside, i)
		}
	}
	for _, i := range at { // a reminder below an output means nothing without it
		if !inside[i] && v.messages[i].IsAdded() && i > 0 && inside[i-1] {
			inside[i] = true
			left += v.Sizes[i]
		}
	}
	part, room := v.partly(at, inside, left, whole.Made().TokensAfter)
	older := slices.DeleteFunc(slices.Clone(at), func(i int) bool { return !inside[i] })
	if len(older) == len(at) {
		return
	}
	v.undo(v.cover[at[0]])
	for _, i := range at {
		v.leaving[i] = inside[i]
	}
	var err error
	if len(older) > 0 {
		room := s.bound(whole.Made().TokensAfter, sum(v.Sizes, older))
		if s.state { // its parts get shares of a room that they did not fill
			room = max(room, sum(v.now, older)-v.Over())
		}
		err = v.execute(ctx, s, Proposal{Span: v.span(older), Reason: whole.Made().Reason, Room: room})
	}
	if part >= 0 && err == nil {
		large := Externalize{Large: true, full: true}
		p := Proposal{
			Strategy: large.Name(), Span: v.span([]int{part}), EstimatedTokensFreed: v.Sizes[part] - room, Room: room,
			Reason: "there is room for a part of it",
		}
		v.proposed = append(v.proposed, p)
		err = v.execute(ctx, large, p)
	}
	if err != nil || v.Over() > 0 {
		v.apply(whole)
	}
	if slack -= slack / 4; errors.Is(err, ErrNoGain) && slack > v.Room/emptyShare {
		s.giveRoom(ctx, v, span, slack) // the ratio allows a longer summary of more
	}
}

// partly takes the newest output of which a good part fits, with its call, out of the
// messages inside a summary of that many tokens. It returns its position, -1 for none, and
// the room for it.
func (v *View) partly(at []int, inside map[int]bool, slack, summary int) (part, room int) {
	parted := map[*group]bool{} // some of it is not inside
	for _, i := range slices.Backward(at) {
		if !inside[i] || !v.output(i) || !v.storable(i) || v.Pinned[i] {
			continue
		}
		group := v.linked(i)
		room = slack
		if len(group.at) == len(inside) {
			room += summary // there is none then
		}
		room = min(room-group.size+v.Sizes[i], v.Sizes[i]*mostShown/100)
		if room < v.Room/emptyShare || parted[group] {
			continue
		}
		if parted[group] = !group.isIn(inside); parted[group] {
			continue
		}
		for _, i := range group.at {
			delete(inside, i)
		}
		return i, room
	}
	return -1, 0
}

// Uncorrected is a budget as a summarizer counts it: by figures that were not multiplied
// with the factor. 0 stands for no factor, and a budget of 0 for none.
func Uncorrected(budget int, factor float64) int {
	if budget <= 0 || factor == 0 || factor == 1 {
		return budget
	}
	return max(1, int(float64(budget)/factor))
}
