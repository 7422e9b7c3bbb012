package references

import (
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestCorpusHash: the hash is that of the content, not of its order.
func TestCorpusHash(t *testing.T) {
	of := func(texts ...string) *Session {
		var messages []thread.Message
		for _, text := range texts {
			messages = append(messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}})
		}
		th, err := thread.New("x").Append(messages...)
		if err != nil {
			t.Fatal(err)
		}
		return &Session{Thread: th}
	}
	hash := func(s ...*Session) string { return CorpusHash(slices.Values(s)) }
	a, b, c := of("one", "two"), of("three"), of("one!", "two")
	if hash(a, b) != hash(b, a) || hash(a, b) == hash(c, b) || hash(a) == hash(a, b) {
		t.Errorf("%s %s %s %s", hash(a, b), hash(b, a), hash(c, b), hash(a))
	}
}
