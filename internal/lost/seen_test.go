package lost

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
)

// TestSeen: names and numbers are found in any spelling.
func TestSeen(t *testing.T) {
	s := see([]string{"The voucher ledger (ledger_book.ts) holds 16,400 rows; see issue #41, merge request 57, shop.example/terms, 1f2e3d4 and total-price."}, nil)
	for _, c := range []struct {
		kind ident.Type
		text string
		want bool
	}{
		{ident.Symbol, "totalPrice", true}, {ident.Symbol, "total_price", true}, {ident.Name, "TOTAL PRICE", true}, {ident.Symbol, "totalTax", false},
		{ident.Number, "16400", true}, {ident.Number, "16500", false},
		{ident.Path, "/src/ledger_book.ts", true}, {ident.Path, `C:\src\ledger_book.ts`, true}, {ident.Path, "ledgerBook.test.ts", true}, {ident.Path, "/src/cart.go", false},
		{ident.URL, "https://git.example/shop/pull/41", true}, {ident.URL, "https://git.example/shop/pull/42", false}, {ident.URL, "https://git.example/shop/merge_requests/57", true},
		{ident.URL, "https://shop.example/terms", true}, {ident.Hex, "1f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c", true}, {ident.Hex, "2f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c", false}, {ident.URL, "https://git.example/shop", false},
	} {
		if s.name(c.kind, c.text) != c.want {
			t.Errorf("%s %q: not %v", c.kind, c.text, c.want)
		}
	}
}
