package eval

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/lab/eval/ledger"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// request is what a contender sends for one step.
type request struct {
	// head is system and tools, body the messages.
	head ledger.Block
	body []ledger.Block
	// frozen is how many blocks of the body a compaction left, to be sent unchanged
	// until the next one.
	frozen int
	// compacted: the history was compacted for this request, and shown is what was left.
	compacted bool
	shown     *references.Shown
	// read and wrote are the tokens that a model used to make the compaction: cached input,
	// and output.
	read, wrote int
}

// sender makes the requests of a session one after the other, from k = 0 on.
type sender func(k int) (request, error)

// sessionCost is the cost of a session under one contender.
type sessionCost struct {
	bill ledger.Bill
	// input and output are in units of one token of uncached input of a short prompt.
	input, output float64
	// refs counts the references to content before a compaction, direct those in the
	// prompt, found those that a lookup brings. lookups and rereads count the calls for
	// the rest, extra is what these cost.
	refs, direct, found, lookups, rereads, extra float64

	requests    int
	compactions int
	peak, sum   int // of the prompts, in tokens
	// same is the size of the prefixes that prompts share with the next one, next that of
	// all prompts with a next one; rewrites counts the requests that change the prefix.
	same, next, rewrites int
	// freed is how many tokens rewrites save, again how many old ones they write once more.
	freed, again int

	sizes []int     // of each prompt
	sums  []float64 // input up to and with each
	cuts  []compactionResult
}

// compactionResult is what a compaction left for the requests k ≤ i < until.
type compactionResult struct {
	k, until int
	shown    *references.Shown
}

// spend sends a session through a contender and bills it. The cache marks stand where a
// careful client puts them: after system and tools, after what a compaction froze, at
// the last mark of the request before, and at the end.
func (r *replay) spend(send sender) (sessionCost, error) {
	var s sessionCost
	book := ledger.New(r.model.Cache, r.ttl)
	var last []ledger.Block
	for k, a := range r.requests {
		q, err := send(k)
		if err != nil {
			return s, err
		}
		blocks := append([]ledger.Block{q.head}, q.body...)
		same := commonPrefix(last, blocks)
		marks := []int{0}
		if q.frozen > 0 {
			marks = append(marks, q.frozen)
		}
		if n := len(last); n > 0 && same == n {
			marks = append(marks, n-1)
		}
		marks = append(marks, len(blocks)-1)
		slices.Sort(marks)
		bill := book.Bill(ledger.Request{Blocks: blocks, Marks: slices.Compact(marks), Output: a.output, At: a.when})
		rates, token := r.price(bill.Input())
		in, out := bill.Cost(rates)
		of, ofToken := r.price(q.read) // the compaction's own request
		s.input += token*in + ofToken*of.Read*float64(q.read)
		s.output += token*out + ofToken*of.Output*float64(q.wrote)
		s.bill.Read += bill.Read + q.read
		s.bill.Write += bill.Write
		s.bill.Plain += bill.Plain
		s.bill.Output += bill.Output + q.wrote
		s.requests++
		if q.compacted {
			s.compactions++
			if n := len(s.cuts); n > 0 {
				s.cuts[n-1].until = k
			}
			s.cuts = append(s.cuts, compactionResult{k, len(r.requests), q.shown})
		}
		s.sizes = append(s.sizes, bill.Input())
		s.sums = append(s.sums, s.input)
		s.peak = max(s.peak, bill.Input())
		s.sum += bill.Input()
		if k > 0 {
			s.next += tokens(last)
			s.same += tokens(last[:same])
			if same < len(last) {
				s.rewrites++
				fresh := r.historyTokens(k) - r.historyTokens(k-1)
				s.freed += tokens(last) + fresh - tokens(blocks)
				s.again += max(0, tokens(blocks[same:])-fresh)
			}
		}
		last = blocks
	}
	return s, nil
}

// commonPrefix is how many blocks two requests begin with alike.
func commonPrefix(a, b []ledger.Block) int {
	n := 0
	for n < len(a) && n < len(b) && a[n].Hash == b[n].Hash {
		n++
	}
	return n
}

func tokens(blocks []ledger.Block) int {
	sum := 0
	for _, b := range blocks {
		sum += b.Tokens
	}
	return sum
}
