package wrapdir

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/keyring"
)

// TestFirstForm opens what the first version sealed, with the keys that it kept.
// Neither may change: a new form gets a number of its own, and this stays.
func TestFirstForm(t *testing.T) {
	masters, err := keyring.ParseMasters(strings.Repeat("07", 32))
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(masters, open(t, "testdata/v1"), nil)
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
