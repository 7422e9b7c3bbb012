package openai_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestMembersBesideTheContent: members that were not always read are kept and do not change the ids
// of messages, also when a store has read them back.
func TestMembersBesideTheContent(t *testing.T) {
	read := func(members string) *thread.Message {
		t.Helper()
		p, err := openai.Chat{}.Decode(`{"model":"m","messages":[{"role":"assistant","content":"Done."` + members + `}]}`)
		if err != nil {
			t.Fatal(err)
		}
		return &p.Messages[0]
	}
	plain := thread.ChainID("", read(""))
	for _, tt := range []struct {
		members string
		counts  bool
	}{
		{`,"novelty":{"a":1}`, false},
		{`,"thinking_blocks":[{"type":"thinking","thinking":"I see.","signature":"s"}]`, false},
		{`,"reasoning_opaque":"x"`, false},
		{`,"reasoning_content":"I see."`, true},
		{`,"refusal":"No."`, true},
	} {
		m := read(tt.members)
		if counts := thread.ChainID("", m) != plain; counts != tt.counts {
			t.Errorf("%s counts for the id: %v", tt.members, counts)
		}
		if len(m.Parts) != 2 {
			t.Errorf("%s: %d parts", tt.members, len(m.Parts))
		}
		log, err := thread.New("t").Append(*m)
		if err != nil {
			t.Fatal(err)
		}
		line, err := neutral.Marshal(log, 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := neutral.Unmarshal(line, nil)
		if err != nil {
			t.Fatal(err)
		}
		if thread.ChainID("", &back) != thread.ChainID("", m) {
			t.Errorf("%s: a store changes the id", tt.members)
		}
	}
}
