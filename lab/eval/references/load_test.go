package references

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/token"
)

func counterOf(t *testing.T) *token.Counter {
	t.Helper()
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

func load(t *testing.T, paths ...string) *Set {
	t.Helper()
	set, err := Load(t.Context(), paths, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
