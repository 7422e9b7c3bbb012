package token

import "sync"

// pieceMemo remembers how many tokens pieces make that are no token themselves: a text names the same
// things again and again, and to merge a name takes twenty times as long as to find it. Of pieces that
// share a slot the newest stays.
type pieceMemo [1 << 14]struct {
	size, tokens uint8 // size 0 is an empty slot
	text         [memoPiece]byte
}

// memoPiece is the longest piece that is remembered, in bytes.
const memoPiece = 22

// pieceMemos are those not in use: 400 KB each, one for each goroutine that counts.
type pieceMemos struct{ sync.Pool }

func (m *pieceMemos) take() *pieceMemo {
	if memo, ok := m.Get().(*pieceMemo); ok {
		return memo
	}
	return new(pieceMemo)
}

// mergeKnown is mergeShort with a memo.
func (e *encoding) mergeKnown(memo *pieceMemo, piece string) int {
	at := &memo[hashBytes(piece)%uint32(len(memo))]
	if int(at.size) == len(piece) && string(at.text[:at.size]) == piece {
		return int(at.tokens)
	}
	n := e.mergeShort(piece)
	at.size, at.tokens = uint8(len(piece)), uint8(n)
	copy(at.text[:], piece)
	return n
}
