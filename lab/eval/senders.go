package eval

import (
	"fmt"
	"math"
	"slices"

	"github.com/palimpsest-ai/palimpsest/lab/eval/ledger"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
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

// The further sizes of a curve (CostOptions.Curve): tokens that are left, tokens at which
// results are cleared, and results that are kept.
var (
	curveLeft  = []int{8_000, 12_000, 16_000, 32_000, 48_000}
	curveMore  = []int{64_000, 96_000, 128_000} // for auto, besides
	curveClear = []int{32_000, 50_000, 150_000}
	curveMasks = []int{3, 30}
)

// costContender is a contender of Cost that needs no compactor. Those of one line differ
// in their size.
type costContender struct {
	name, line, size string
	make             func(r *replay) sender
}

// The lines of the contenders that come in several sizes.
const (
	maskLine    = "mask old results at every step"
	slidingLine = "sliding window"
	clearLine   = "clear old results at a mark"
	markLine    = "newest 20k left at a mark"
	lawLine     = "newest left by the law, and when cold"
)

// The names of the rows.
const (
	noneName          = "no compaction"
	noCacheName       = "no compaction, no cache"
	maskName          = "mask all but 10 at every step"
	slidingName       = "sliding window of 20k"
	clearName         = "clear all but 3 at 100k"
	at150Name         = "20k left at 150k"
	at100Name         = "20k left at 100k"
	asRanName         = "the agent as it ran"
	lawName           = "20k left by the law"
	lawColdName       = "20k left by the law, and when cold"
	bestName          = "20k left, best schedule"
	autoBestName      = "auto, best schedule"
	balancedName      = "auto, balanced"
	notesBalancedName = "notes, balanced"
	qualityName       = "auto, quality"
	boundName         = "lower bound"
)

func (r *replay) head() ledger.Block { return ledger.Block{Hash: headBlock, Tokens: r.Fixed} }

func (r *replay) plain(k int) request {
	return request{head: r.head(), body: r.blocks[:r.requests[k].at:r.requests[k].at]}
}

// costContenders are the contenders that need no compactor, with curve at several sizes.
func costContenders(counter *token.Counter, curve bool) []costContender {
	placeholder := counter.Text(references.Cleared)
	above := func(mark int) func(r *replay) sender {
		return func(r *replay) sender {
			return r.batchSender(batchLeft, func(_, size int) bool { return size > mark })
		}
	}
	all := []costContender{
		{noneName, noneName, "", func(r *replay) sender {
			return func(k int) (request, error) { return r.plain(k), nil }
		}},
		{maskName, maskLine, "10", maskingSender(maskKeeps, placeholder)},
		{slidingName, slidingLine, "20k", slidingSender(slidingRoom)},
		{clearName, clearLine, "100k", clearingSender(clearAt, placeholder)},
		{at150Name, markLine, "150k", above(150_000)},
		{at100Name, markLine, "100k", above(100_000)},
		{asRanName, asRanName, "", (*replay).recordedSender},
		{lawName, lawName, "", func(r *replay) sender { return r.batchSender(batchLeft, r.squareRootLaw(false, batchLeft)) }},
		{lawColdName, lawLine, "20k", func(r *replay) sender { return r.batchSender(batchLeft, r.squareRootLaw(true, batchLeft)) }},
	}
	if !curve {
		return all
	}
	for _, n := range curveMasks {
		all = append(all, costContender{fmt.Sprintf("mask all but %d at every step", n), maskLine, fmt.Sprint(n), maskingSender(n, placeholder)})
	}
	for _, n := range curveClear {
		all = append(all, costContender{fmt.Sprintf("clear all but 3 at %dk", n/1000), clearLine, thousand(n), clearingSender(n, placeholder)})
	}
	for _, n := range curveLeft {
		all = append(all,
			costContender{fmt.Sprintf("sliding window of %dk", n/1000), slidingLine, thousand(n), slidingSender(n)},
			costContender{fmt.Sprintf("%dk left by the law, and when cold", n/1000), lawLine, thousand(n), func(r *replay) sender { return r.batchSender(n, r.squareRootLaw(true, n)) }})
	}
	return append(all, costContender{"20k left at 50k", markLine, "50k", above(50_000)})
}

func thousand(n int) string { return fmt.Sprintf("%dk", n/1000) }

// autoOf is the name of auto with another size than its own.
func autoOf(left int) string { return "auto, " + thousand(left) + " left" }

// maskingSender replaces all but the newest results by placeholders, at every step.
func maskingSender(keep, placeholder int) func(r *replay) sender {
	return func(r *replay) sender {
		return func(k int) (request, error) {
			q := r.plain(k)
			q.body, q.compacted = r.clearResults(q.body, keep, placeholder)
			q.shown = unchangedMessages(q.body)
			return q, nil
		}
	}
}

// slidingSender sends the newest messages, at every step.
func slidingSender(room int) func(r *replay) sender {
	return func(r *replay) sender {
		return func(k int) (request, error) {
			q := r.plain(k)
			from := r.newestStart(r.requests[k].at, room)
			q.body, q.compacted = r.newestBlocks(r.requests[k].at, from), from > 0
			q.shown = unchangedMessages(q.body)
			return q, nil
		}
	}
}

// clearingSender replaces all but the newest results by placeholders when a request is
// larger than the mark.
func clearingSender(mark, placeholder int) func(r *replay) sender {
	return func(r *replay) sender {
		upTo := 0
		return func(k int) (request, error) {
			q := r.plain(k)
			body, _ := r.clearResults(q.body[:upTo], 0, placeholder)
			q.body = append(body, q.body[upTo:]...)
			if r.Fixed+tokens(q.body) > mark {
				if body, changed := r.clearResults(q.body, clearKeeps, placeholder); changed {
					for upTo = len(body); upTo > 0 && body[upTo-1].Hash&0xff != clearedBlock; upTo-- {
					}
					q.body, q.compacted, q.shown = body, true, unchangedMessages(body)
				}
			}
			q.frozen = upTo
			return q, nil
		}
	}
}

// unchangedMessages are the messages of a request that are as they were in the log.
func unchangedMessages(body []ledger.Block) *references.Shown {
	s := &references.Shown{}
	for _, b := range body {
		if b.Hash&0xff == plainBlock {
			s.Kept = append(s.Kept, int(b.Hash>>8))
		}
	}
	return s
}

// clearResults replaces all but the newest results by placeholders.
func (r *replay) clearResults(body []ledger.Block, keep, placeholder int) (out []ledger.Block, changed bool) {
	out = slices.Clone(body)
	for i := len(out) - 1; i >= 0; i-- {
		if _, ok := r.Thread.At(i).Result(); !ok || out[i].Tokens <= placeholder {
			continue
		}
		if keep--; keep < 0 && out[i].Hash&0xff == plainBlock {
			out[i] = ledger.Block{Hash: uint64(i)<<8 | clearedBlock, Tokens: r.sizes[i] - r.resultTokens(i) + placeholder}
			changed = true
		}
	}
	return out, changed
}

// resultTokens is the size of the content of a result, without its frame.
func (r *replay) resultTokens(i int) int { return max(0, r.sizes[i]-resultFrameTokens) }

// resultFrameTokens is about what a result takes beside its content.
const resultFrameTokens = 8

// newestBlocks are the user's first message, and the messages from a position on.
func (r *replay) newestBlocks(at, from int) []ledger.Block {
	first := r.firstUserMessage()
	if first < 0 || first >= from {
		return r.blocks[from:at:at]
	}
	return append([]ledger.Block{r.blocks[first]}, r.blocks[from:at]...)
}

// batchSender cuts the history down to so many tokens whenever due says so, of the step
// and the size of its request.
func (r *replay) batchSender(room int, due func(k, size int) bool) sender {
	var left []ledger.Block
	cut := 0
	return func(k int) (request, error) {
		q := request{head: r.head(), frozen: len(left)}
		at := r.requests[k].at
		q.body = append(left[:len(left):len(left)], r.blocks[cut:at]...)
		if due(k, r.Fixed+tokens(q.body)) {
			if fits := r.fittingBlocks(at, room); tokens(fits) < tokens(q.body) {
				left, cut = fits, at
				q.body, q.compacted, q.frozen = fits, true, len(fits)
				q.shown = unchangedMessages(fits)
			}
		}
		return q, nil
	}
}

// fittingBlocks are the user's first message and the newest others that fit.
func (r *replay) fittingBlocks(at, room int) []ledger.Block {
	first := r.firstUserMessage()
	if first >= 0 && first < at {
		room -= r.sizes[first]
	}
	var out []ledger.Block
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

// squareRootLaw compacts by the square-root law, as policy auto does, with the growth of the session
// so far.
func (r *replay) squareRootLaw(cold bool, room int) func(k, size int) bool {
	return func(k, size int) bool {
		g := r.growth(k)
		after := float64(r.Fixed + room)
		if cold && r.requests[k].cold && float64(size) > after*leastShrink {
			return true
		}
		rates, _ := r.price(size)
		steps := math.Sqrt(2 * (rates.Write - rates.Read) * float64(room) / (rates.Read * g))
		return float64(size) > after+g+(max(1, steps)-1)*g // false without rates
	}
}

// leastShrink is how much larger than after a compaction a prompt must be, as a ratio,
// to be compacted when its cache has expired.
const leastShrink = 1.1

// recordedSender compacts where the recorded agent did, to its own summary.
func (r *replay) recordedSender() sender {
	done := 0
	return func(k int) (request, error) {
		q := r.plain(k)
		at := r.requests[k].at
		for done < len(r.Recaps) && r.Recaps[done].At <= at {
			q.compacted = true
			done++
		}
		if done == 0 {
			return q, nil
		}
		own := r.Recaps[done-1]
		if q.compacted {
			before := 0
			if done > 1 {
				before = r.before[r.Recaps[done-2].At] - r.Recaps[done-2].Size
			}
			q.read, q.wrote = r.Fixed+r.before[own.At]-before, own.Size
		}
		made := ledger.Block{Hash: uint64(done)<<8 | madeBlock, Tokens: own.Size}
		q.body = append([]ledger.Block{made}, r.blocks[own.At:at]...)
		q.frozen = 1
		if q.compacted {
			q.shown = unchangedMessages(q.body)
			q.shown.Other = []thread.Message{own.Text}
		}
		return q, nil
	}
}
