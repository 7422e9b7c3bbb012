package identify

import (
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// Body is the bytes of a request. What an earlier one began with too is held once, for both. It does not change, and
// is safe for concurrent use.
type Body struct {
	parts []string
	size  int

	once  sync.Once
	whole string
}

// maxParts bounds the parts of a body. One that has more is joined behind the first, which is mostly the longest.
const maxParts = 32

// NewBody returns a body of these parts.
func NewBody(parts ...string) *Body {
	if len(parts) > maxParts {
		parts = []string{parts[0], strings.Join(parts[1:], "")}
	}
	b := &Body{}
	for _, part := range parts {
		if part != "" {
			b.parts, b.size = append(b.parts, part), b.size+len(part)
		}
	}
	return b
}

// Len is the length in bytes.
func (b *Body) Len() int { return b.size }

// String is the whole body. It is joined once, if it has several parts.
func (b *Body) String() string {
	b.once.Do(func() { b.whole = strings.Join(b.parts, "") })
	return b.whole
}

// Reader reads the body.
func (b *Body) Reader() io.Reader {
	readers := make([]io.Reader, len(b.parts))
	for i, part := range b.parts {
		readers[i] = strings.NewReader(part)
	}
	return struct{ io.Reader }{io.MultiReader(readers...)} // its WriteTo would make a buffer to find its end
}

// cut are the parts between two offsets.
func (b *Body) cut(from, to int) (parts []string) {
	for _, part := range b.parts {
		if from < len(part) && to > 0 {
			parts = append(parts, part[max(from, 0):min(to, len(part))])
		}
		from, to = from-len(part), to-len(part)
	}
	return parts
}

// slice is what stands between two offsets. It is copied only where that is in several parts.
func (b *Body) slice(from, to int) string { return strings.Join(b.cut(from, to), "") }

// common is how many bytes of a text the body has from an offset on.
func (b *Body) common(at int, text string) (n int) {
	for _, part := range b.cut(at, at+len(text)) {
		same := commonPrefix(part, text[n:])
		if n += same; same < len(part) {
			break
		}
	}
	return n
}

func (b *Body) has(at int, text string) bool { return b.common(at, text) == len(text) }

func commonPrefix(a, b string) int {
	const chunk = 4 << 10
	n, limit := 0, min(len(a), len(b))
	for n+chunk <= limit && a[n:n+chunk] == b[n:n+chunk] {
		n += chunk
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

// PieceSize is the size, in bytes, of the pieces in which bodies are compared while they are read.
const PieceSize = 32 << 10

// hashPieces are the hashes of the whole pieces of a body, of which the first are known.
func (b *Body) hashPieces(seed maphash.Seed, known []uint64) []uint64 {
	hashes := slices.Clip(known)
	for at := len(known) * PieceSize; at+PieceSize <= b.size; at += PieceSize {
		hashes = append(hashes, maphash.String(seed, b.slice(at, at+PieceSize)))
	}
	return hashes
}

// Comparison compares a body with the requests of a tenant while it is read, so that what one of them has too need
// not be kept.
type Comparison struct {
	seed   maphash.Seed
	live   []*entry // those that begin as the body does so far, by their hashes; the most recently used first
	exact  *Body    // of one of them, which was compared byte by byte
	pieces int      // that are known
}

// Compare begins the comparison of a request for an API.
func (t *Tenant) Compare(api string) *Comparison {
	t.index.mu.Lock()
	defer t.index.mu.Unlock()
	c := &Comparison{seed: t.index.seed}
	for _, e := range slices.Backward(t.entries) {
		if r := e.request; len(r.frameEnds) > 0 && r.Prompt.Source.API == api {
			c.live = append(c.live, e)
		}
	}
	return c
}

// IsKnown is given the pieces of the body from the first on, each of PieceSize, until it is false: from there on
// the body is new.
func (c *Comparison) IsKnown(piece []byte) bool {
	live := c.live
	if len(live) > 1 {
		hash := maphash.Bytes(c.seed, piece)
		live = nil
		for _, e := range c.live {
			if known := e.request.hashes; c.pieces < len(known) && known[c.pieces] == hash {
				live = append(live, e)
			}
		}
	}
	for ; len(live) > 0; live = live[1:] {
		if b := live[0].request.Body; b.hasPiece(c.pieces*PieceSize, piece) && c.isExact(b) {
			c.live, c.exact = live, b
			c.pieces++
			return true
		}
	}
	return false
}

func (b *Body) hasPiece(at int, piece []byte) bool {
	for _, part := range b.cut(at, at+len(piece)) {
		if part != string(piece[:len(part)]) {
			return false
		}
		piece = piece[len(part):]
	}
	return len(piece) == 0
}

// isExact reports whether a body has the pieces that are known.
func (c *Comparison) isExact(b *Body) bool {
	if c.pieces == 0 || b == c.exact {
		return true
	}
	at := 0
	for _, part := range c.exact.cut(0, c.pieces*PieceSize) {
		if !b.has(at, part) {
			return false
		}
		at += len(part)
	}
	return true
}

// Similar is a body compared with the request that it has most in common with, if there is one. It does
// not keep that request.
type Similar struct {
	*Body
	// Unmarked says that the caller has searched the body for its marks, and found none.
	Unmarked bool
	// Objects is how many JSON objects the body has at most.
	Objects int

	entry    uint64 // its number; 0 for none
	same     int    // bytes that both begin with, up to the end of its messages
	searched int    // how many of them are known to hold no mark
	model    string // of that request, if all but its messages is the same; else empty
}

// NewSimilar is a body that was not compared.
func NewSimilar(body string) Similar {
	return Similar{Body: NewBody(body), Objects: strings.Count(body, "{")}
}

// Similar finds the request that a body has most in common with.
func (t *Tenant) Similar(api, body string) Similar { return t.Compare(api).End(body) }

// End is the body with what follows its known pieces.
func (c *Comparison) End(rest string) Similar {
	best, most, at := (*entry)(nil), 0, c.pieces*PieceSize
	for _, e := range c.live {
		r := e.request
		if !r.sharesFirstElement(at, rest) || most > at && !r.Body.has(most-1, rest[most-1-at:most-at]) {
			continue
		}
		if n := at + r.Body.common(at, rest); n > most && c.isExact(r.Body) {
			best, most = e, n
		}
	}
	switch {
	case best == nil && at == 0:
		return NewSimilar(rest)
	case best == nil: // another conversation with the same instructions
		return NewSimilar(c.exact.slice(0, at) + rest)
	}
	r := best.request
	same := min(most, r.messagesEnd)
	if same < at {
		rest = r.Body.slice(same, at) + rest
	} else {
		rest = rest[same-at:]
	}
	body := NewBody(append(r.Body.cut(0, same), rest)...)
	if r.holdsTooMuchFor(body, len(rest)) {
		body = NewBody(body.String())
	}
	s := Similar{Body: body, Objects: r.objects + strings.Count(rest, "{"), entry: best.number, same: same}
	if r.unmarked {
		s.searched = same
	}
	if same >= r.messagesStart && strings.HasSuffix(rest, r.Body.slice(r.messagesEnd, r.Body.size)) {
		s.model = r.Prompt.Model
	}
	return s
}

// holdsTooMuchFor reports whether a body that shares what it can with this request, and adds so many bytes, would hold
// more than twice its own: the other bytes of bodies that were longer. Then it is better copied.
func (r *Request) holdsTooMuchFor(body *Body, added int) bool {
	return r.heldBytes+added > 2*body.Len()
}

// Model is the model that the body names; empty if it names none.
func (s Similar) Model() string {
	if s.model != "" {
		return s.model
	}
	return gjson.Get(s.String(), "model").Str
}

// Unsearched is the part of the body in which there can be marks of at most so many bytes: that which
// the request before did not have, or had with marks.
func (s Similar) Unsearched(longest int) string {
	return s.slice(max(0, s.searched-longest+1), s.size)
}

// sharesFirstElement reports whether a body, of which the rest from an offset on is given, has the same first message
// in the same place. Conversations mostly share system and tools, and differ from their first message on.
func (r *Request) sharesFirstElement(at int, rest string) bool {
	from, to := max(r.messagesStart-at, 0), r.frameEnds[0]-at
	return to <= 0 || to <= len(rest) && r.Body.has(at+from, rest[from:to])
}
