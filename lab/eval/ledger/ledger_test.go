package ledger_test

import (
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/lab/eval/ledger"
	"github.com/palimpsest-ai/palimpsest/token"
)

func blocks(hashes ...uint64) []ledger.Block {
	var out []ledger.Block
	for _, h := range hashes {
		out = append(out, ledger.Block{Hash: h, Tokens: 100})
	}
	return out
}

// TestLedger follows the rules of the caches one by one.
func TestLedger(t *testing.T) {
	breakpoint := token.Cache{Match: "breakpoint", Marks: 2, Lookback: 3, Minimum: 150}
	prefix := token.Cache{Match: "prefix", Minimum: 150}
	type step struct {
		at     time.Duration
		blocks []ledger.Block
		marks  []int
		want   ledger.Bill
	}
	for _, test := range []struct {
		name  string
		cache token.Cache
		ttl   time.Duration
		steps []step
	}{
		{"no cache", token.Cache{}, 0, []step{
			{0, blocks(1, 2), []int{1}, ledger.Bill{Plain: 200}},
			{0, blocks(1, 2), []int{1}, ledger.Bill{Plain: 200}},
		}},
		{"marks", breakpoint, 0, []step{
			{0, blocks(1, 2, 3), []int{1}, ledger.Bill{Write: 200, Plain: 100}},
			{0, blocks(1, 2, 3, 4), []int{1, 3}, ledger.Bill{Read: 200, Write: 200}},
			{0, blocks(1, 2, 3, 4), []int{2}, ledger.Bill{Read: 200, Write: 100, Plain: 100}}, // 3 alone was never marked
			{0, blocks(1, 2, 9), []int{2}, ledger.Bill{Read: 200, Write: 100}},
			{0, blocks(9, 2, 3), []int{1, 2}, ledger.Bill{Write: 300}},
		}},
		{"a mark looks back so far", breakpoint, 0, []step{
			{0, blocks(1, 2), []int{1}, ledger.Bill{Write: 200}},
			{0, blocks(1, 2, 3, 4), []int{3}, ledger.Bill{Read: 200, Write: 200}},
			{0, blocks(1, 2, 5, 6, 7), []int{4}, ledger.Bill{Write: 500}},
		}},
		{"marks beyond the limit do not count", breakpoint, 0, []step{
			{0, blocks(1, 2, 3, 4), []int{1, 2, 3}, ledger.Bill{Write: 400}},
			{0, blocks(1, 2, 9), []int{1}, ledger.Bill{Write: 200, Plain: 100}},
		}},
		{"too short to be kept", breakpoint, 0, []step{
			{0, blocks(1), []int{0}, ledger.Bill{Plain: 100}},
			{0, blocks(1, 2), []int{0, 1}, ledger.Bill{Write: 200}},
		}},
		{"forgotten, and every read begins anew", breakpoint, time.Minute, []step{
			{0, blocks(1, 2), []int{1}, ledger.Bill{Write: 200}},
			{time.Minute, blocks(1, 2), []int{1}, ledger.Bill{Read: 200}},
			{2 * time.Minute, blocks(1, 2), []int{1}, ledger.Bill{Read: 200}},
			{3*time.Minute + 1, blocks(1, 2), []int{1}, ledger.Bill{Write: 200}},
		}},
		{"prefix", prefix, 0, []step{
			{0, blocks(1, 2, 3), nil, ledger.Bill{Write: 300}},
			{0, blocks(1, 2, 4), nil, ledger.Bill{Read: 200, Write: 100}},
			{0, blocks(1, 2, 3, 5), nil, ledger.Bill{Read: 300, Write: 100}},
			{0, blocks(1, 7, 3), nil, ledger.Bill{Write: 300}},
		}},
	} {
		l := ledger.New(test.cache, test.ttl)
		for n, s := range test.steps {
			got := l.Bill(ledger.Request{Blocks: s.blocks, Marks: s.marks, At: s.at})
			if got != s.want {
				t.Errorf("%s: request %d is billed %+v, want %+v", test.name, n, got, s.want)
			}
			if total := 100 * len(s.blocks); got.Input() != total {
				t.Errorf("%s: request %d: %d tokens of %d are billed", test.name, n, got.Input(), total)
			}
		}
	}
}
