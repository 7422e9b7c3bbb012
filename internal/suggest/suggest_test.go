package suggest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/suggest"
)

func TestNames(t *testing.T) {
	known := []string{"listen", "store", "policy", "window", "max-body"}
	tests := []struct {
		name string
		n    int
		want []string
	}{
		{"lisen", 1, []string{"listen"}},
		{"MAX_BODY", 1, []string{"max-body"}},
		{"dow", 1, []string{"window"}},
		{"stor", 2, []string{"store", "listen"}},
		{"", 9, []string{"store", "listen", "policy", "window", "max-body"}},
		{strings.Repeat("x", 1<<20), 1, []string{"max-body"}},
	}
	for _, tt := range tests {
		if got := suggest.Names(tt.name, known, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("Names(%.20q, %d) = %q, want %q", tt.name, tt.n, got, tt.want)
		}
	}
	if got := suggest.Names("x", nil, 3); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

// TestByID: a whole id goes before ids that begin so, and a beginning must be long enough.
func TestByID(t *testing.T) {
	all := []string{"abcdef-1", "abcdef-2", "abcdef", "short"}
	for id, want := range map[string][]string{
		"abcdef": {"abcdef"}, "abcdef-": {"abcdef-1", "abcdef-2"}, "abcdef-2": {"abcdef-2"}, "abcde": nil, "short": {"short"}, "": nil, "abcdef-3": nil,
	} {
		if got := suggest.ByID(all, id, func(s string) string { return s }); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}
