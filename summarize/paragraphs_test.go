package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestAnnounced: a line is a piece, with what it announces; lines that only lead to what follows go with it.
func TestAnnounced(t *testing.T) {
	long := strings.Repeat("The order of a map changes from run to run. ", 6)
	tests := []struct {
		text string
		want []string
	}{
		{"The order of the map is random. Let me sort the names:", []string{"The order of the map is random. Let me sort the names:"}},
		{long + "I'll sort the names.", append(slices.Repeat([]string{"The order of a map changes from run to run."}, 6), "I'll sort the names.")},
		{"Let me sort the names:", []string{"Let me sort the names:"}},
		{"The map needs an order:", []string{"The map needs an order:"}},
		{"It is random. Let me know if you want more.", []string{"It is random. Let me know if you want more."}},
		{"I found three places. They are:\n- one\n- two", []string{"I found three places. They are:\n- one", "- two"}},
		{"It is random. Let me list what uses it:\n- one\n- two", []string{"It is random. Let me list what uses it:\n- one", "- two"}},
		{"**2. `Lines`** (state)\n- one\n- two", []string{"**2. `Lines`** (state)\n- one", "- two"}},
		{"In an outage:\n1. " + long, append([]string{"In an outage:\n1. The order of a map changes from run to run."}, slices.Repeat([]string{"The order of a map changes from run to run."}, 5)...)},
		{"**Done** with it.\n\n- one", []string{"**Done** with it.", "- one"}},
		{"It is this:\n```\n" + long + long + "\n```\nThat is all.", []string{"That is all."}},
		{"## Outcome\nAll pass.", []string{"Outcome\nAll pass."}},
		{"Which?\n\n| Way | What | Cost | Who |\n|---|---|---|---|\n| A | " + long + "| 2 | she |\n| B | less | 1 | he |\n\nBoth work.", []string{"Which?", "| Way | What | Cost | Who |\n| A | " + long + "| 2 | she |", "| Way | What | Cost | Who |\n… | B | less | 1 | he |", "Both work."}},
		{"| A | B | C | D |\n|-|-|-|-|\n| 1 | 2 | 3 | 4 |\n**Then:**\n| E | F |\n|-|-|\n| 5 | 6 |\n| 7 | 8 |", []string{"| A | B | C | D |\n| 1 | 2 | 3 | 4 |", "**Then:**\n| E | F |\n| 5 | 6 |", "| 7 | 8 |"}},
	}
	for _, tt := range tests {
		var got []string
		for _, p := range paragraphs(nil, tt.text) {
			got = append(got, p.text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%.60q (-want +got)\n%s", tt.text, diff)
		}
	}
}

// TestRows: a row of a table is told with the head of the table, which several share.
func TestRows(t *testing.T) {
	table := "Where they differ:\n\n| Way | Speed | Who | When |\n|---|---|---|---|\n| alpha_way | 10 seconds for each of the old archives | she | now |\n| beta_way | 20 minutes for the letters of the harbour | he | later |\n| gamma_way | never ends on any of the days | none | never |"
	k := new(talk).user("How fast are the ways?").says(table)
	if all := texts(summarizeNow(t, Input{Messages: k.done(t)}).Conclusions); len(all) != 1 || strings.Count(all[0], "| Way | Speed | Who | When |") != 1 || !strings.Contains(all[0], "archives | she | now |\n| beta_way") {
		t.Errorf("%q", all)
	}
	g := []piece(paragraphs(nil, table))
	s := selection{pool: &pool{candidates: []candidate{{text: g[0].text}, {text: g[2].text, piece: 2}}}}
	s.groups[secPlan] = []chosenGroup{{group: &group{places: []place{g[0].place, g[1].place, g[2].place}}}}
	if got := s.join([]int{0, 1}).Text; !strings.HasSuffix(got, "archives | she | now |\n… | gamma_way | never ends on any of the days | none | never |") {
		t.Errorf("%q", got)
	}
}

// TestFoundOnTheWay: why something failed is mostly said before the call that mends it, in one
// line with what announces the call. A small summary has it, and not what the call's output
// repeats a hundred times.
func TestFoundOnTheWay(t *testing.T) {
	k := new(talk).user("Make the agent detection stable.")
	for n := range 40 {
		k = k.says(fmt.Sprintf("Let me look at part %d:", n)).
			calls("Read", fmt.Sprintf(`{"file_path":"src/part%d.go"}`, n), strings.Repeat(fmt.Sprintf("func part%d(agentRegistry map[string]int) (handler%d error)\n", n, n), 12), thread.Success)
		if n == 20 {
			k = k.says("The registry is a map, which has no order, so that either agent may come first. Let me sort the names:").
				calls("Edit", `{"file_path":"src/registry.go","old_string":"range agents","new_string":"range sorted(agents)"}`, "ok", thread.Success)
		}
	}
	s := summarizeNow(t, Input{Messages: k.says("Done.").user("Thanks, what next?").done(t), Budget: 700})
	text := s.Render()
	if !strings.Contains(text, "The registry is a map, which has no order") {
		t.Errorf("the cause is missing:\n%s", text)
	}
}
