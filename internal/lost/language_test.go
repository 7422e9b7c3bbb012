package lost

import (
	"strings"
	"testing"
)

// TestLanguageOf: a language is told by its commonest words or its script, and each word stands for one language.
func TestLanguageOf(t *testing.T) {
	for text, want := range map[string]string{
		"Never push to the main branch.": "en", "Nie ohne Tests pushen, bitte.": "de", "Ne pousse jamais sans les tests.": "fr",
		"所有提交信息都用英文写。": "zh", "テストなしでプッシュしないでください。": "ja", "테스트 없이 푸시하지 마세요.": "ko", "Никогда не пушь без тестов.": "ru",
		"kubectl apply": "", "the der": "",
	} {
		if got := languageOf(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	words := 0
	for range languages {
		words++
	}
	if words != 113 {
		t.Errorf("%d different words: one stands in two lists, and which counts is left to chance", words)
	}
}

// TestSeen: names and numbers are found in any spelling.
func TestSeen(t *testing.T) {
	s := see([]string{"The voucher ledger (ledger_book.ts) holds 16k rows; see issue #41 and total-price."})
	for name, want := range map[string]bool{"totalPrice": true, "total_price": true, "TOTAL PRICE": true, "totalTax": false} {
		if s.name(name) != want {
			t.Errorf("name %q: not %v", name, want)
		}
	}
	for file, want := range map[string]bool{"/src/ledger_book.ts": true, `C:\src\ledger_book.ts`: true, "ledgerBook.test.ts": true, "/src/cart.go": false} {
		if s.file(file) != want {
			t.Errorf("file %q: not %v", file, want)
		}
	}
	for url, want := range map[string]bool{"https://git.example/shop/pull/41": true, "https://git.example/shop/pull/42": false} {
		if s.address(url) != want {
			t.Errorf("address %q: not %v", url, want)
		}
	}
	if got := strings.Join(numbersIn("1,250 and 16k, #7"), " "); got != "1250 16 16000 7 #7" {
		t.Errorf("numbers: %s", got)
	}
}
