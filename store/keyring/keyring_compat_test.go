package keyring_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// TestFirstForm opens what the first version sealed, with the keys that it kept.
// Neither may change: a new form gets a number of its own, and this stays.
func TestFirstForm(t *testing.T) {
	keys := &keyringtest.Memory{}
	for n, text := range []string{
		"h6msN8ar3bS7bTaJtD/Xw7ixfVbFYHcWrU1wQQiGftYD8xjlpVuZOqdu+kGfafXn3+R91Vw024FBc8g+",
		"ISM0xg657lL4kSHVaOzxF6NOtIQEBEs2YcW1PFTUA5A0nIynghZQaqHCJKb3l+HHXfVA0/nD76DUT2Ex",
	} {
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		w := keyring.Wrapped{
			Tenant: "acme", Version: n + 1, Revision: 1, Master: "mk-bfde789bdca249b1", Sealed: sealed,
			Used: 1024, Created: time.Date(2025, 5, 12, 9, 30, 0, 0, time.UTC),
		}
		if err := keys.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	ring := keyring.New(masters(t, strings.Repeat("07", 32)), keys, nil)
	for text, sealed := range map[string]string{
		"the first":  "010000000112ab9e185c6582bf7fd370501812aa81fbb20cbae7c6ecdc5dd71e0a0ca28ff8298651ad9b",
		"the second": "0100000002a1c62153aae9c305404de497e6399fbe0a52361a0288f5659ebe3f911383d861fce3302f411e",
	} {
		data, err := hex.DecodeString(sealed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ring.Open(t.Context(), "acme", []byte("note/1"), data); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	secret, err := ring.Secret(t.Context(), "acme", "ids")
	if got := hex.EncodeToString(secret); err != nil || got != "e6d45e0cd613424f0afc87af11e981ef96e17555b711087722ccba96e71dc183" {
		t.Errorf("secret %s, %v", got, err)
	}
}
