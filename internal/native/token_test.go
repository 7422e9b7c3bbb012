package native_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/wire"
)

var key = []byte("a key of a test, of enough bytes")

// TestToken: what was sealed opens with the same key, for the same API, and as it
// was written; anything else is told from a provider's own value.
func TestToken(t *testing.T) {
	want := native.Token{API: wire.Responses, Kind: "compaction", Thread: "px-1", Summary: "The pump is off: \"<b>\" ✓", Structured: &summary.Summary{CurrentTask: "Keep it off."}}
	sealed := native.Seal(key, want)
	if sealed != native.Seal(key, want) {
		t.Error("the same token gives different texts")
	}
	if got, err := native.Open(key, wire.Responses, sealed); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("opened %+v, %v", got, err)
	}
	body, sum, _ := strings.Cut(strings.TrimPrefix(sealed, native.Prefix), ".")
	other := want
	other.Summary = "The pump is on!"
	body2, _, _ := strings.Cut(strings.TrimPrefix(native.Seal(key, other), native.Prefix), ".")
	for name, c := range map[string]struct {
		key   []byte
		api   string
		value string
		err   error
		text  string // of the summary that is handed back all the same
	}{
		"another key":        {[]byte("another"), wire.Responses, sealed, native.ErrForged, want.Summary},
		"another API":        {key, wire.Anthropic, sealed, native.ErrForged, want.Summary},
		"changed":            {key, wire.Responses, native.Prefix + body2 + "." + sum, native.ErrForged, other.Summary},
		"without signature":  {key, wire.Responses, native.Prefix + body, native.ErrForged, want.Summary},
		"cut off":            {key, wire.Responses, sealed[:len(sealed)-3], native.ErrForged, want.Summary},
		"no base64":          {key, wire.Responses, native.Prefix + "%." + sum, native.ErrForged, ""},
		"no JSON":            {key, wire.Responses, native.Prefix + "AAAA." + sum, native.ErrForged, ""},
		"a provider's value": {key, wire.Responses, "gAAAAABo", native.ErrForeign, ""},
		"empty":              {key, wire.Responses, "", native.ErrForeign, ""},
	} {
		got, err := native.Open(c.key, c.api, c.value)
		if !errors.Is(err, c.err) || got.Summary != c.text {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if native.IsToken(c.value) != (c.err == native.ErrForged) {
			t.Errorf("%s: ours is %v", name, native.IsToken(c.value))
		}
	}
}

// TestTokenLastBits: each character of a signature counts, also the bits that
// base64 leaves over.
func TestTokenLastBits(t *testing.T) {
	sealed := native.Seal(key, native.Token{API: wire.Anthropic})
	for i := len(native.Prefix); i < len(sealed); i++ {
		for _, c := range []byte("ABw-") {
			if sealed[i] == c {
				continue
			}
			if _, err := native.Open(key, wire.Anthropic, sealed[:i]+string(c)+sealed[i+1:]); err == nil {
				t.Fatalf("opens with %c at byte %d", c, i)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(native.Seal(key, native.Token{API: wire.Anthropic, Digest: native.Digest("x")}))
	f.Add(native.Prefix)
	f.Add(native.Prefix + "e30.e30")
	f.Fuzz(func(t *testing.T, value string) {
		token, err := native.Open(key, wire.Anthropic, value)
		switch {
		case err == nil:
			if !native.IsToken(value) || token.API != wire.Anthropic {
				t.Errorf("%q opens as %+v", value, token)
			}
		case !errors.Is(err, native.ErrForeign) && !errors.Is(err, native.ErrForged):
			t.Errorf("%q: %v", value, err)
		}
	})
}

// TestAPIs: names as people write them, and help for those that are wrong.
func TestAPIs(t *testing.T) {
	for given, want := range map[string]string{
		"anthropic,openai": "anthropic,responses", " OpenAI , responses": "responses", "": "", ",anthropic,": "anthropic",
	} {
		got, err := native.APIs(strings.Split(given, ","))
		if err != nil || !slices.Equal(got, split(want)) {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	for given, meant := range map[string]string{"antropic": "anthropic", "response": "responses", "open-ai": "openai"} {
		if _, err := native.APIs([]string{given}); err == nil || !strings.Contains(err.Error(), "did you mean "+meant+"?") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
