package summarize

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestTable: the learned table has a figure for every bin there is.
func TestTable(t *testing.T) {
	want := [traitCount]int{
		traitKind: int(ident.Name) + 1, traitAge: len(ageBins) + 1, traitMessages: len(messageBins) + 1, traitCalls: len(callBins) + 1,
		traitUser: 2, traitWords: 2, traitSource: int(sources), traitNear: len(nearBins) + 1,
	}
	for trait, n := range want {
		if got := len(salience.odds[trait]); got != n {
			t.Errorf("trait %d has %d bins in the table, %d in the code; run the command that the table names", trait, got, n)
		}
	}
}

// TestObserve: what was said lately, by the agent in a call, near what is in use,
// has better chances than what stood once in an old output; what stays in the
// prompt is not observed.
func TestObserve(t *testing.T) {
	k := new(talk).user("Fix the parser.").
		calls("Grep", `{"pattern":"x"}`, "pkg/a.go:1: oldSymbolOnce\n", thread.Success).
		calls("Read", `{"file_path":"src/parse.go"}`, "func readHeader(b []byte) error {\n\treturn errShortHeader\n}\n", thread.Success)
	for range 12 {
		k.calls("Bash", `{"command":"go test ./..."}`, "ok\n", thread.Success)
	}
	k.calls("Edit", `{"file_path":"src/parse.go","old_string":"a","new_string":"readHeader(nil)"}`, "done", thread.Success)
	messages := k.done(t)
	last := len(messages) - 2
	kept := thread.Message{ID: "kept", Role: thread.User, Parts: []thread.Part{thread.Text{Text: "src/parse.go is what I mean"}}}
	chances := map[string]float32{}
	for _, o := range Observe(Input{Messages: messages[:last+2], Context: []thread.Message{kept}}) {
		chances[o.Name] = chance(traits(o.Bins))
	}
	if _, ok := chances["src/parse.go"]; ok {
		t.Error("what stays in the prompt was observed")
	}
	if !(chances["readHeader"] > chances["errShortHeader"] && chances["errShortHeader"] > chances["oldSymbolOnce"] && chances["oldSymbolOnce"] > 0) {
		t.Errorf("chances: %v", chances)
	}
}
