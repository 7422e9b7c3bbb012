package token

import (
	_ "embed" // the vocabularies
	"math"
	"math/bits"
	"sync"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
)

// encoding counts the tokens of one byte-pair encoding exactly. It is read-only
// once built.
//
// The vocabulary is OpenAI's, in files that a test compares with
// github.com/tiktoken-go/tokenizer: building the maps of that library takes six times as long
// in each process. Splitting and merging are our own, because the library spends most of its
// time in a regular expression (docs/tokens.md has the numbers).
type encoding struct {
	split   splitter
	classes *classTable

	// Token id i is bytes[start[i]:start[i+1]]; its id is its merge rank.
	bytes   string
	start   []uint32
	longest int

	// slots is an open-addressing table from a token's bytes to its id + 1;
	// pairs holds the id + 1 of every token of two bytes directly.
	slots []slot
	pairs [1 << 16]uint32

	memos pieceMemos
}

type slot struct{ hash, id uint32 }

// A vocabulary file has no text: every token of more than one byte is two earlier tokens
// joined. The first 256 bytes are the tokens of one byte, by id. Then there are two bits for
// each further id, four ids a byte, and then the ids of its two parts, bit by bit, lowest
// first: shortBits bits of a part whose bit is 0, else as many as the id itself needs. An id
// without a token (a few special ones) has itself as a part. Eight bytes of padding follow,
// which may be read with the last id. The file is smaller than the compressed texts, and is
// read in about a third of the time of decompressing them.
var (
	//go:embed o200k.vocab
	o200kVocabulary string
	//go:embed cl100k.vocab
	cl100kVocabulary string
)

// The numbers of ids.
const (
	o200kTokens  = 200_000
	cl100kTokens = 100_256
)

// An encoding takes about 10 ms to build and 7 MB of memory, so each is built on first use and
// shared by all counters.
var (
	o200k  = sync.OnceValue(func() *encoding { return newEncoding(o200kVocabulary, o200kTokens, splitO200k) })
	cl100k = sync.OnceValue(func() *encoding { return newEncoding(cl100kVocabulary, cl100kTokens, splitCl100k) })
)

const (
	singles   = 256 // tokens of one byte
	shortBits = 10  // of the ids of the most frequent parts
	meanToken = 8   // bytes; more than the mean length of tokens
)

func newEncoding(vocabulary string, tokens int, split splitter) *encoding {
	e := &encoding{split: split, classes: classes(), start: make([]uint32, tokens+1)}
	text := make([]byte, meanToken*tokens)
	at := uint32(copy(text, vocabulary[:singles]))
	start := e.start
	for id := range at {
		start[id+1] = id + 1
	}
	long := vocabulary[singles:]
	ids := long[(tokens-singles+3)/4:]
	read := uint(0) // bits of ids
	for id := singles; id < tokens; id++ {
		p := ids[read/8:][:8]
		next := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
			uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
		next >>= read % 8
		isLong := int(long[(id-singles)/4] >> ((id - singles) % 4 * 2))
		further := bits.Len(uint(id)) - shortBits
		first := uint(shortBits + isLong&1*further) // a branch would be guessed wrong too often
		second := uint(shortBits + isLong>>1&1*further)
		read += first + second
		for _, part := range [2]uint64{next & (1<<first - 1), next >> first & (1<<second - 1)} {
			if part == uint64(id) {
				continue
			}
			from, to := start[part], start[part+1]
			if to-from <= 8 { // most tokens: bytes that are copied beyond the end are overwritten next
				*(*[8]byte)(text[at:]) = [8]byte(text[from:])
			} else {
				copy(text[at:], text[from:to])
			}
			at += to - from
		}
		start[id+1] = at
		e.longest = max(e.longest, int(at-start[id]))
	}
	e.bytes = string(text[:at])
	size := 1
	for size < 2*tokens {
		size *= 2
	}
	e.slots = make([]slot, size)
	for id := range tokens {
		s := e.bytes[e.start[id]:e.start[id+1]]
		switch len(s) {
		case 0:
			continue
		case 2:
			e.pairs[uint(s[0])<<8|uint(s[1])] = uint32(id) + 1
		}
		h := hashBytes(s)
		at := h & uint32(size-1)
		for e.slots[at].id != 0 {
			at = (at + 1) & uint32(size-1)
		}
		e.slots[at] = slot{h, uint32(id) + 1}
	}
	return e
}

// noRank is the rank of bytes that are no token.
const noRank = math.MaxUint32

// rank returns the merge rank of the bytes, or none.
func (e *encoding) rank(s string) uint32 {
	if len(s) == 2 {
		return e.pairs[uint(s[0])<<8|uint(s[1])] - 1 // 0 wraps around to none
	}
	if len(s) > e.longest {
		return noRank
	}
	h, mask := hashBytes(s), uint32(len(e.slots)-1)
	for at := h & mask; ; at = (at + 1) & mask {
		sl := e.slots[at]
		if sl.id == 0 {
			return noRank
		}
		if sl.hash == h && e.bytes[e.start[sl.id-1]:e.start[sl.id]] == s {
			return sl.id - 1
		}
	}
}

func hashBytes(s string) uint32 {
	const k = 0x9E3779B97F4A7C15
	h := uint64(len(s)) * k
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = (h ^ w) * k
		h ^= h >> 29
		s = s[8:]
	}
	var w uint64
	if len(s) >= 4 {
		w = uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
		s = s[4:]
	}
	for i := range len(s) {
		w = w<<8 | uint64(s[i])
	}
	h = (h ^ w) * k
	return uint32(h>>32) ^ uint32(h>>7)
}

// countEffort is about what counting a byte takes, in units of effort.
const countEffort = 8

// count returns the number of tokens of s. Each invalid byte counts as U+FFFD, which a JSON
// encoder sends in its place. Once its context is done the number means nothing.
func (e *encoding) count(live *effort.Budget, s string) int {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	n := 0
	var memo *pieceMemo
	for i := 0; i < len(s); {
		end := e.split(e.classes, s, i)
		if !live.Live(countEffort * (end - i)) {
			return 0
		}
		piece := s[i:end]
		i = end
		switch {
		case len(piece) == 1 || e.rank(piece) != noRank:
			n++
		case len(piece) > shortPiece:
			n += e.mergeLong(live, piece)
		case len(piece) > memoPiece:
			n += e.mergeShort(piece)
		default:
			if memo == nil {
				memo = e.memos.take()
				defer e.memos.Put(memo)
			}
			n += e.mergeKnown(memo, piece)
		}
	}
	return n
}

// shortPiece is the longest piece, in bytes, whose merges are found by a linear search. Longer
// ones use a heap.
const shortPiece = 64

// mergeShort merges the leftmost pair of lowest rank again and again.
func (e *encoding) mergeShort(piece string) int {
	// at[i] is where part i starts; ranks[i] is the rank of parts i and i+1 joined.
	var at [shortPiece + 1]uint8
	var ranks [shortPiece]uint32
	n := len(piece)
	for i := range n {
		at[i] = uint8(i)
		ranks[i] = noRank
		if i+1 < n {
			ranks[i] = e.pairs[uint(piece[i])<<8|uint(piece[i+1])] - 1
		}
	}
	at[n] = uint8(n)
	for n > 1 {
		best, lowest := 0, uint32(noRank)
		for i, r := range ranks[:n-1] {
			if r < lowest {
				best, lowest = i, r
			}
		}
		if lowest == noRank {
			break
		}
		copy(at[best+1:n], at[best+2:n+1])
		copy(ranks[best:n-1], ranks[best+1:n])
		n--
		ranks[best] = noRank
		if best+1 < n {
			ranks[best] = e.rank(piece[at[best]:at[best+2]])
		}
		if best > 0 {
			ranks[best-1] = e.rank(piece[at[best-1]:at[best+1]])
		}
	}
	return n
}
