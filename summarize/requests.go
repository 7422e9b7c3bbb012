package summarize

import (
	"cmp"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

func (s *selection) taskText() string {
	if s.pool.task >= 0 {
		return s.pool.Requests[s.pool.task].Text
	}
	return s.pool.oldTask
}

// rankRequests orders the user messages: the newest, the task and the first stay longest,
// "ok" and "thanks" go first.
func (s *selection) rankRequests() {
	p := s.pool
	n := len(p.Requests)
	worth := make([]float32, n)
	for i := range n {
		text := p.Requests[i].Text
		worth[i] = 0.6*float32(i)/float32(n) + min(1, float32(len(text))/160)
		switch i {
		case n - 1, p.task:
			worth[i] = 100
		case 0:
			worth[i] = 50
		}
		s.rank = append(s.rank, i)
	}
	slices.SortStableFunc(s.rank, func(a, b int) int { return cmp.Compare(worth[b], worth[a]) })
}

// bytesFor is how many bytes the i-th user message gets if a usual one gets each: the newest,
// the task and the first get more, the text of a slash command only a little, since the user
// did not write it.
func (s *selection) bytesFor(i, each int) int {
	newest := len(s.pool.Requests) - 1
	if s.pool.requests[i].command && s.budget > 0 {
		if i == newest { // the assistant works on it
			return min(3*each, 3*commandBytes)
		}
		return min(each, commandBytes)
	}
	switch {
	case s.pool.requests[i].answers: // one of them says little without the others
		return 4 * each
	case i == newest, i == s.pool.task:
		return 3 * each
	case i == 0:
		return 2 * each
	}
	return each
}

func (s *selection) requestsTrimmed() bool {
	return !slices.EqualFunc(s.requests, s.pool.Requests, func(a, b summary.Item) bool { return len(a.Text) >= len(b.Text) })
}

// trimRequests starts a choice with the user messages in about so many tokens: in full if
// they fit, else the long ones trimmed to a common length. Only if that does not suffice are
// the lowest-ranked left out.
func (s *selection) trimRequests(tokens int) {
	all := s.pool.Requests
	limit := int(float32(tokens) * bytesPerToken)
	size := func(each int) int {
		n := 0
		for i := range all {
			limit := s.bytesFor(i, each)
			if have := len(all[i].Text); have <= limit+littleMore {
				limit = have
			}
			n += limit + 12
		}
		return n
	}
	each, kept := 1<<30, len(all)
	if size(each) > limit {
		each = largest(leastRequest, 1<<20, func(n int) bool { return size(n) <= limit })
		share := s.shares.mostRequests
		if most := int((share*float32(s.budget) - float32(s.laid.tokens)) * bytesPerToken); each < keptRequest && most > limit {
			each = largest(each, keptRequest, func(n int) bool { return size(n) <= most })
			limit, tokens = most, int(share*float32(s.budget))
		}
		if size(each) > limit {
			kept = max(1, limit/(leastRequest+12))
		}
	}
	cut := func() bool { // without, a smaller each changes nothing
		return slices.ContainsFunc(s.rank, func(i int) bool { return len(all[i].Text) > s.bytesFor(i, each)+littleMore })
	}
	for {
		s.reset(kept, each)
		s.spent = s.countWhole(summary.Summary{CurrentTask: s.task, Requests: s.requests}.Render())
		beside := s.laid.beside(s.requests)
		unlisted := max(0, s.laid.tokens-beside) // what the messages themselves show
		enough := s.spent-unlisted <= max(tokens*6/5, tokens+64) || kept <= 1 && each <= leastRequest/2
		s.spent += s.workTokens + beside
		if enough {
			return
		}
		// The bytes made more tokens than usual (traces, other scripts, base64). Shorter
		// messages are better than fewer.
		for before, first := kept, true; first || kept == before && each > leastRequest/2 && !cut(); first = false {
			switch {
			case each > 4*leastRequest:
				each = min(each, 1<<16) / 2
			case each > leastRequest:
				each = max(leastRequest, each*3/4)
			default:
				each, kept = max(leastRequest/2, each*3/4), max(1, min(kept-1, kept*3/4))
			}
		}
	}
}

// largest returns the largest n from low to high for which ok holds, or low.
func largest(low, high int, ok func(int) bool) int {
	for low < high {
		if mid := (low + high + 1) / 2; ok(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
