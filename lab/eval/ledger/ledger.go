// Package ledger bills requests as a provider with a prompt cache would.
package ledger

import (
	"time"

	"github.com/palimpsest-ai/palimpsest/token"
)

// Block is a piece of a prompt that a cache keeps or loses as a whole.
type Block struct {
	// Hash identifies the content.
	Hash   uint64
	Tokens int
}

// Request is one prompt as a provider bills it.
type Request struct {
	// Blocks are system, tools and messages in the provider's order.
	Blocks []Block
	// Marks are the positions of the blocks that carry a cache mark, in order. Providers
	// that match prefixes need none.
	Marks []int
	// Output is the length of the answer in tokens.
	Output int
	// At is when it is sent, counted from any beginning.
	At time.Duration
}

// Bill is what a request is billed as, in tokens.
type Bill struct {
	// Read was found in the cache, Write is put into it, Plain is the rest of the input.
	Read, Write, Plain int
	Output             int
}

// Input is the whole input of the request.
func (b Bill) Input() int { return b.Read + b.Write + b.Plain }

// Cost is the bill in units of uncached input.
func (b Bill) Cost(r token.Rates) (input, output float64) {
	return float64(b.Read)*r.Read + float64(b.Write)*r.Write + float64(b.Plain), float64(b.Output) * r.Output
}

// Ledger bills the requests of one conversation after another by the rules of a
// provider's prompt cache:
//
//   - "breakpoint": what is kept are the prefixes that ended at a mark; each mark
//     of a request finds the longest of them among the blocks before it, as far
//     back as the provider looks;
//   - "prefix": every prefix of an earlier request is found;
//   - a prefix shorter than the provider's minimum is not kept;
//   - what is not read again within its time to live is forgotten, and each read
//     begins that time anew.
//
// It is not safe for concurrent use.
type Ledger struct {
	cache  token.Cache
	ttl    time.Duration
	expiry map[uint64]time.Duration // by prefix: when it is forgotten
}

// New returns a ledger with an empty cache. A ttl of 0 never forgets.
func New(c token.Cache, ttl time.Duration) *Ledger {
	return &Ledger{cache: c, ttl: ttl, expiry: map[uint64]time.Duration{}}
}

// Bill bills a request and remembers what the provider would.
func (l *Ledger) Bill(q Request) Bill {
	b := Bill{Output: q.Output}
	prefixes := make([]uint64, len(q.Blocks))
	sizes := make([]int, len(q.Blocks)) // up to and with each block
	hash, total := uint64(offset), 0
	for i, block := range q.Blocks {
		hash = chain(hash, block.Hash)
		total += block.Tokens
		prefixes[i], sizes[i] = hash, total
	}
	marks := q.Marks
	switch l.cache.Match {
	case "breakpoint":
		if n := l.cache.Marks; n > 0 && len(marks) > n {
			marks = marks[len(marks)-n:]
		}
	case "prefix":
		marks = nil
		for i := range q.Blocks {
			marks = append(marks, i)
		}
	default:
		b.Plain = total
		return b
	}
	found := -1
	for _, mark := range marks {
		found = max(found, l.findCached(prefixes, mark, q.At))
	}
	if found >= 0 {
		b.Read = sizes[found]
	}
	last := -1
	for _, mark := range marks {
		if sizes[mark] >= l.cache.Minimum {
			last = mark
			l.remember(prefixes[mark], q.At)
		}
	}
	if last > found {
		b.Write = sizes[last] - b.Read
	}
	b.Plain = total - b.Read - b.Write
	return b
}

// findCached returns the last block of the longest cached prefix that a mark finds, or -1.
func (l *Ledger) findCached(prefixes []uint64, mark int, now time.Duration) int {
	first := 0
	if l.cache.Lookback > 0 {
		first = max(0, mark-l.cache.Lookback+1)
	}
	for i := mark; i >= first; i-- {
		if until, kept := l.expiry[prefixes[i]]; kept && (l.ttl == 0 || now <= until) {
			l.remember(prefixes[i], now)
			return i
		}
	}
	return -1
}

func (l *Ledger) remember(prefix uint64, now time.Duration) { l.expiry[prefix] = now + l.ttl }

// offset and prime are those of FNV-1a with 64 bits.
const (
	offset = 14695981039346656037
	prime  = 1099511628211
)

// chain adds a block to the hash of what precedes it.
func chain(prefix, block uint64) uint64 {
	for range 8 {
		prefix = (prefix ^ block&0xff) * prime
		block >>= 8
	}
	return prefix
}
