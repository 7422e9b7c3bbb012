package httpbody

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestRead: a body is read whole whatever length it claims, and room is taken for what is held of it.
func TestRead(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 20*PieceSize/16) + "end"
	for _, tt := range []struct {
		name           string
		size           int
		limit, claimed int64
		pieces         int // for which room is taken
		whole          bool
	}{
		{"empty", 0, 1 << 20, 0, 0, true},
		{"one piece", PieceSize - 1, 1 << 20, PieceSize - 1, 0, true},
		{"no claim", len(text), 1 << 20, -1, 20, true},
		{"as claimed", len(text), 1 << 20, int64(len(text)), 20, true},
		{"of whole pieces", 8 * PieceSize, 1 << 20, 8 * PieceSize, 8, true},
		{"longer than claimed", len(text), 1 << 20, 9 * PieceSize, 20, true},
		{"shorter than claimed", 9 * PieceSize, 1 << 20, 30 * PieceSize, 29, true},
		{"too short for its claim", PieceSize + 1, 1 << 30, 1 << 30, 1, true},
		{"more than the limit", len(text), 5 * PieceSize, 1 << 30, 5, false},
		{"just the limit", 5 * PieceSize, 5 * PieceSize, 5 * PieceSize, 5, true},
	} {
		for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader} {
			taken := 0
			take := func(n int) bool { taken += n; return true }
			got, whole, err := Read[string](wrap(strings.NewReader(text[:tt.size])), tt.limit, tt.claimed, take)
			if want := text[:min(tt.size, int(tt.limit)+1)]; got != want || whole != tt.whole || err != nil {
				t.Errorf("%s: %d bytes, whole %t, %v", tt.name, len(got), whole, err)
			}
			if most := tt.pieces * PieceSize; taken > most || taken < most-PieceSize { // one less if the end came with the last byte
				t.Errorf("%s: room for %d bytes, want %d", tt.name, taken, most)
			}
		}
	}
}

// TestReadRest: the pieces that are known are left out, those behind them are not, and they count for the limit.
func TestReadRest(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 5*PieceSize/16) + "end"
	for known := range 7 {
		for _, claimed := range []int64{0, int64(len(text))} {
			asked := 0
			isKnown := func(piece []byte) bool { asked++; return len(piece) == PieceSize && asked <= known }
			rest, whole, err := ReadRest[string](strings.NewReader(text), int64(len(text)), claimed, nil, isKnown)
			if want := text[min(known, 5)*PieceSize:]; rest != want || !whole || err != nil || asked != min(known+1, 5) {
				t.Errorf("%d known: %d bytes in place of %d, whole %t, asked %d times, %v", known, len(rest), len(want), whole, asked, err)
			}
			if _, whole, _ = ReadRest[string](strings.NewReader(text), int64(len(text))-1, claimed, nil, isKnown); whole {
				t.Errorf("%d known: more than the limit is whole", known)
			}
		}
	}
}

// TestReadFails: without room nothing is read on, and what came before an error is returned.
func TestReadFails(t *testing.T) {
	broken := errors.New("broken")
	for _, claimed := range []int64{0, 6 * PieceSize} {
		r := io.MultiReader(strings.NewReader(strings.Repeat("a", 5*PieceSize)), iotest.ErrReader(broken))
		got, whole, err := Read[[]byte](r, 1<<20, claimed, nil)
		if len(got) != 5*PieceSize || whole || !errors.Is(err, broken) {
			t.Errorf("claimed %d: %d bytes, whole %t, %v", claimed, len(got), whole, err)
		}
		room := 3 * PieceSize
		_, _, err = Read[string](strings.NewReader(strings.Repeat("a", 6*PieceSize)), 1<<20, claimed, func(n int) bool {
			if n > room {
				return false
			}
			room -= n
			return true
		})
		if !errors.Is(err, ErrBusy) || room != 0 {
			t.Errorf("claimed %d: %v with room for %d", claimed, err, room)
		}
	}
}
