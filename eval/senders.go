package eval

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// The sizes of the contenders that need no engine, in tokens. batchLeft is what
// those that compact in batches leave of the messages, slidingRoom what a sliding
// window holds of them.
const (
	batchLeft   = 20_000
	slidingRoom = 20_000
	clearAt     = 100_000
	clearKeeps  = 3
	maskKeeps   = 10
)

// spender is a contender in what sessions cost.
type spender struct {
	name string
	make func(r *replay) sender
}

// The names of the rows.
const (
	noneName     = "no compaction"
	maskName     = "mask all but 10 at every step"
	slidingName  = "sliding window of 20k"
	clearName    = "clear all but 3 at 100k"
	at150Name    = "20k left at 150k"
	at100Name    = "20k left at 100k"
	asRanName    = "the agent as it ran"
	lawName      = "20k left by the law"
	lawColdName  = "20k left by the law, and when cold"
	bestName     = "20k left, best schedule"
	autoBestName = "auto, best schedule"
	boundName    = "lower bound"
)

func (r *replay) head() cost.Block { return cost.Block{Hash: headBlock, Tokens: r.fixed} }

func (r *replay) plain(k int) request {
	return request{head: r.head(), body: r.blocks[:r.asks[k].at:r.asks[k].at]}
}

// spenders are the contenders that need no engine.
func spenders(counter *token.Counter) []spender {
	placeholder := counter.Text(cleared)
	above := func(mark int) func(r *replay) sender {
		return func(r *replay) sender {
			return r.batches(func(_, size int) bool { return size > mark })
		}
	}
	return []spender{
		{noneName, func(r *replay) sender {
			return func(k int) (request, error) { return r.plain(k), nil }
		}},
		{maskName, func(r *replay) sender {
			return func(k int) (request, error) {
				q := r.plain(k)
				q.body, q.compacted = r.clear(q.body, maskKeeps, placeholder)
				q.shown = standing(q.body)
				return q, nil
			}
		}},
		{slidingName, func(r *replay) sender {
			return func(k int) (request, error) {
				q := r.plain(k)
				from := r.recency(r.asks[k].at, slidingRoom)
				q.body, q.compacted = r.newest(r.asks[k].at, from), from > 0
				q.shown = standing(q.body)
				return q, nil
			}
		}},
		{clearName, func(r *replay) sender {
			upTo := 0
			return func(k int) (request, error) {
				q := r.plain(k)
				body, _ := r.clear(q.body[:upTo], 0, placeholder)
				q.body = append(body, q.body[upTo:]...)
				if r.fixed+tokens(q.body) > clearAt {
					if body, changed := r.clear(q.body, clearKeeps, placeholder); changed {
						for upTo = len(body); upTo > 0 && body[upTo-1].Hash&0xff != clearedBlock; upTo-- {
						}
						q.body, q.compacted, q.shown = body, true, standing(body)
					}
				}
				q.frozen = upTo
				return q, nil
			}
		}},
		{at150Name, above(150_000)},
		{at100Name, above(100_000)},
		{asRanName, (*replay).asRan},
		{lawName, func(r *replay) sender { return r.batches(r.law(false)) }},
		{lawColdName, func(r *replay) sender { return r.batches(r.law(true)) }},
	}
}

// standing are the messages that stand in a request as they were.
func standing(body []cost.Block) *shown {
	s := &shown{}
	for _, b := range body {
		if b.Hash&0xff == plainBlock {
			s.kept = append(s.kept, int(b.Hash>>8))
		}
	}
	return s
}

// clear puts a placeholder for all but the newest results.
func (r *replay) clear(body []cost.Block, keep, placeholder int) (out []cost.Block, changed bool) {
	out = slices.Clone(body)
	for i := len(out) - 1; i >= 0; i-- {
		if _, ok := r.thread.At(i).Result(); !ok || out[i].Tokens <= placeholder {
			continue
		}
		if keep--; keep < 0 && out[i].Hash&0xff == plainBlock {
			out[i] = cost.Block{Hash: uint64(i)<<8 | clearedBlock, Tokens: r.sizes[i] - r.results(i) + placeholder}
			changed = true
		}
	}
	return out, changed
}

// results is what of a message is the content of its result, in tokens: all but
// a few for its frame.
func (r *replay) results(i int) int { return max(0, r.sizes[i]-frame) }

// frame is about what a result takes beside its content, in tokens.
const frame = 8

// newest is what the user asked first, and the messages from a position on.
func (r *replay) newest(at, from int) []cost.Block {
	first := r.opening()
	if first < 0 || first >= from {
		return r.blocks[from:at:at]
	}
	return append([]cost.Block{r.blocks[first]}, r.blocks[from:at]...)
}

// batches leaves batchLeft tokens whenever due says so of the step and of the
// size that the request would have.
func (r *replay) batches(due func(k, size int) bool) sender {
	var left []cost.Block
	cut := 0
	return func(k int) (request, error) {
		q := request{head: r.head(), frozen: len(left)}
		at := r.asks[k].at
		q.body = append(left[:len(left):len(left)], r.blocks[cut:at]...)
		if due(k, r.fixed+tokens(q.body)) {
			if fits := r.fitting(at, batchLeft); tokens(fits) < tokens(q.body) {
				left, cut = fits, at
				q.body, q.compacted, q.frozen = fits, true, len(fits)
				q.shown = standing(fits)
			}
		}
		return q, nil
	}
}

// fitting is what the user asked first and the newest messages that fit.
func (r *replay) fitting(at, room int) []cost.Block {
	first := r.opening()
	if first >= 0 && first < at {
		room -= r.sizes[first]
	}
	var out []cost.Block
	for i := at - 1; i >= 0; i-- {
		switch {
		case i == first:
		case r.sizes[i] > room:
			continue
		default:
			room -= r.sizes[i]
		}
		out = append(out, r.blocks[i])
	}
	slices.Reverse(out)
	return out
}

// law is the square-root law with what has been seen of the session's growth.
func (r *replay) law(cold bool) func(k, size int) bool {
	return func(k, size int) bool {
		g := r.growth(k)
		after := float64(r.fixed + batchLeft)
		cycle := cost.Cycle{Growth: g, After: after + g, Kept: float64(r.fixed)}
		if cold && r.asks[k].cold && float64(size) > after*leastShrink {
			return true
		}
		return float64(size) > cycle.Mark(r.rates)
	}
}

// leastShrink is how much larger than after a compaction a forgotten prompt must
// be for one, as a ratio.
const leastShrink = 1.1

// asRan compacts where the agent did, to its own summary.
func (r *replay) asRan() sender {
	done := 0
	return func(k int) (request, error) {
		q := r.plain(k)
		at := r.asks[k].at
		for done < len(r.recaps) && r.recaps[done].at <= at {
			q.compacted = true
			done++
		}
		if done == 0 {
			return q, nil
		}
		own := r.recaps[done-1]
		if q.compacted {
			before := 0
			if done > 1 {
				before = r.before[r.recaps[done-2].at] - r.recaps[done-2].size
			}
			q.read, q.wrote = r.fixed+r.before[own.at]-before, own.size
		}
		made := cost.Block{Hash: uint64(done)<<8 | madeBlock, Tokens: own.size}
		q.body = append([]cost.Block{made}, r.blocks[own.at:at]...)
		q.frozen = 1
		if q.compacted {
			q.shown = standing(q.body)
			q.shown.other = []thread.Message{own.text}
		}
		return q, nil
	}
}
