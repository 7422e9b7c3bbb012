package identify

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestComparison: of several conversations with the same instructions, and of forks of one, a body is compared with
// the one that it goes on with, what it shares with that is not kept again, and the whole is what was sent.
func TestComparison(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	message := func(n int) string {
		role := []string{"user", "assistant"}[n%2]
		return fmt.Sprintf(`{"role":%q,"content":%s}`, role, rawjson.Quote(fmt.Sprintf("%d %d ", n, random.Uint64())+strings.Repeat(fmt.Sprint(n, "{ "), random.IntN(4_000))))
	}
	body := func(system string, messages []string) string {
		return `{"model":"m","system":"` + system + `","messages":[` + strings.Join(messages, ",") + `],"tools":[{"name":"read","input_schema":{"type":"object"}}]}`
	}
	for _, system := range []string{"short", strings.Repeat("long ", 3*PieceSize/5)} {
		tenant := NewIndex(256<<20, 256<<20).Tenant(nil)
		var all [][]string
		longest := func(text string) (best int) {
			for _, e := range tenant.entries {
				if e.request.sharesFirstElement(0, text) {
					best = max(best, min(commonPrefix(e.request.Body.String(), text), e.request.messagesEnd))
				}
			}
			return best
		}
		shared := 0
		for n := range 60 {
			var list []string
			if n%6 > 0 { // goes on with one, or with the beginning of one
				from := all[random.IntN(len(all))]
				list = append(list, from[:1+random.IntN(len(from))]...)
			}
			for range 2 + random.IntN(6) {
				list = append(list, message(len(list)))
			}
			all = append(all, list)
			text := body(system, list)
			want := longest(text)
			c := tenant.Compare(wire.Anthropic)
			at := 0
			for at+PieceSize <= len(text) && c.IsKnown([]byte(text[at:at+PieceSize])) {
				at += PieceSize
			}
			s := c.End(text[at:])
			if s.String() != text || s.Len() != len(text) || s.same != want || s.Objects < strings.Count(text, `{"`) {
				t.Fatalf("body %d: %d bytes in place of %d, %d are known in place of %d, %d objects", n, s.Len(), len(text), s.same, want, s.Objects)
			}
			if s.entry > 0 && s.Model() != "m" {
				t.Fatalf("the model is %q", s.Model())
			}
			shared += at
			whole := tenant.Similar(wire.Anthropic, text)
			if whole.entry != s.entry || whole.same != s.same || whole.String() != text {
				t.Fatalf("body %d at once: %d are known in place of %d", n, whole.same, s.same)
			}
			r, err := tenant.Read(anthropic.Codec{}, s, waiting)
			if err != nil || r.Body.String() != text || len(r.Prompt.Messages) != len(list) {
				t.Fatalf("body %d is read as %d bytes, %v", n, r.Body.Len(), err)
			}
			if got := r.Body.hashPieces(tenant.index.seed, nil); fmt.Sprint(got) != fmt.Sprint(r.hashes) {
				t.Fatalf("body %d: hashes %v, want %v", n, r.hashes, got)
			}
		}
		if shared < 5*PieceSize {
			t.Errorf("only %d bytes were known while they were read", shared)
		}
	}
}

// TestComparisonIsExact: bodies of which the hashes are the same are told apart.
func TestComparisonIsExact(t *testing.T) {
	tenant := NewIndex(1<<30, 1<<30).Tenant(nil)
	body := func(first, last string) string {
		return `{"system":"` + strings.Repeat(first, 3*PieceSize-20) + `","messages":[{"role":"user","content":"` + strings.Repeat(last, 2*PieceSize) + `"},{"role":"user","content":"b"}]}`
	}
	for _, text := range []string{body("b", "y"), body("a", "x")} {
		if _, err := tenant.Read(anthropic.Codec{}, NewSimilar(text), waiting); err != nil {
			t.Fatal(err)
		}
	}
	copy(tenant.entries[0].request.hashes, tenant.entries[1].request.hashes[:3])
	text := body("a", "y") // begins as the one, and then has what the other has
	c := tenant.Compare(wire.Anthropic)
	at := 0
	for at+PieceSize <= len(text) && c.IsKnown([]byte(text[at:at+PieceSize])) {
		at += PieceSize
	}
	if s := c.End(text[at:]); at != 3*PieceSize || s.String() != text {
		t.Errorf("%d bytes are known of a body that begins otherwise", at)
	}
}

// TestBody: a body of parts is that of its text, wherever it is cut.
func TestBody(t *testing.T) {
	text := strings.Repeat("0123456789", 20)
	for parts := 1; parts <= 2*maxParts; parts += 7 {
		var list []string
		for i := range parts {
			list = append(list, text[i*len(text)/parts:(i+1)*len(text)/parts])
		}
		b := NewBody(list...)
		if len(b.parts) > maxParts || b.Len() != len(text) || b.String() != text {
			t.Errorf("%d parts: %q", parts, b)
		}
		for from := 0; from <= len(text); from += 3 {
			for to := from; to <= len(text); to += 5 {
				if got := b.slice(from, to); got != text[from:to] {
					t.Fatalf("%d parts, %d to %d: %q", parts, from, to, got)
				}
			}
			if n := b.common(from, text[from:]+"more"); n != len(text)-from || b.has(from, text[from:]+"0") {
				t.Errorf("%d parts from %d: %d bytes in common", parts, from, n)
			}
		}
	}
}
