package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// works is a session that edits eighteen files, runs four checks, and says and reads much,
// with ids of calls that begin with name.
func works(name string, steps int) []thread.Message {
	var all []thread.Message
	add := func(tool, arguments, output string) {
		id := fmt.Sprint(name, len(all))
		all = append(all, call(id, tool, arguments), answer(id, tool, output))
	}
	for i := range 18 {
		add("Edit", fmt.Sprintf(`{"file_path":"/repo/internal/%s/part_of_the_lease_%d.go","old_string":"a%d","new_string":"b%d"}`, name, i, i, i), "The file was updated.")
	}
	for _, line := range []string{"go build ./...", "go test ./store", "go vet ./...", "gofmt -l ."} {
		add("Bash", fmt.Sprintf(`{"command":%q}`, line), "ok")
	}
	for i := range steps {
		all = append(all, say(thread.Assistant, fmt.Sprintf("The lease of %s%d runs out early because worker %d keeps its clock.", name, i, i)))
		add("Bash", fmt.Sprintf(`{"command":"cat log%d"}`, i), strings.Repeat(fmt.Sprintf("lease %s%d: taken by worker%d\n", name, i, i*3), 12))
	}
	return all
}

// summariesOf are the summaries among records.
func summariesOf(records []plan.Record) []plan.Summarization {
	var all []plan.Summarization
	for _, r := range records {
		if s, ok := r.(plan.Summarization); ok {
			all = append(all, s)
		}
	}
	return all
}

// TestStateOfTheWhole: of two summaries the last says where the work stands, and in as much
// room as where there is only one, though it stands for a few messages.
func TestStateOfTheWhole(t *testing.T) {
	messages := slices.Concat([]thread.Message{say(thread.User, "Find out why leases run out.")}, works("old", 240),
		[]thread.Message{say(thread.User, "And write a test for that.")}, works("new", 60), []thread.Message{say(thread.Assistant, "Done.")})
	for _, room := range []int{7500, 8000, 8500} {
		v := view(t, log(t, messages...), room, strategy.LastStep)
		all := summariesOf(climb(t, strategy.Auto(), v))
		if len(all) != 2 {
			t.Errorf("%d summaries in %d tokens", len(all), room)
			continue
		}
		if first := all[0].Summary.Work; !first.IsZero() {
			t.Errorf("in %d tokens the first summary says:\n%s", room, summary.RenderWork(first))
		}
		work := all[1].Summary.Work
		if len(work.Edited) < 36 || len(work.Checks) < 4 || work.Again {
			t.Errorf("in %d tokens, of which the last summary takes %d, it says:\n%s", room, all[1].TokensAfter, summary.RenderWork(work))
		}
		if v.Total() > room || v.Total() < room*9/10 {
			t.Errorf("the messages take %d of %d tokens", v.Total(), room)
		}
	}
}

// TestStateAgain: a summary that is added to a plan stands below another, whose bytes stay,
// and says that where the work stands there is no longer so.
func TestStateAgain(t *testing.T) {
	const room = 5000
	messages := slices.Concat([]thread.Message{say(thread.User, "Find out why leases run out.")}, works("old", 60),
		[]thread.Message{say(thread.User, "And write a test for that.")}, works("new", 3))
	before := &plan.Plan{}
	short := view(t, log(t, messages[:len(messages)-15]...), room/3, strategy.LastStep)
	for _, r := range climb(t, strategy.Auto(), short) {
		before.Add(r)
	}
	kept := summariesOf(recordsOf(before))
	if len(kept) == 0 || kept[0].Summary.Work.IsZero() || strings.Contains(kept[0].Summary.Render(), "stands now") {
		t.Fatalf("%d summaries in the plan in force", len(kept))
	}
	v := view(t, log(t, slices.Concat(messages, works("more", 40))...), room, strategy.LastStep)
	v.Keep(before, true)
	all := summariesOf(climb(t, strategy.Auto(), v))
	if len(all) != len(kept)+1 || all[0].Summary.Render() != kept[0].Summary.Render() {
		t.Fatalf("%d summaries after %d", len(all), len(kept))
	}
	last := all[len(all)-1].Summary
	if !last.Work.Again || len(last.Work.Edited) < 24 || !strings.Contains(last.Render(), "## Where the work stands now (newer than what summaries above say of it;") {
		t.Errorf("the last summary says:\n%s", last.Render())
	}
}

func recordsOf(p *plan.Plan) []plan.Record {
	var all []plan.Record
	for _, ref := range p.Refs() {
		all = append(all, p.Record(ref))
	}
	return all
}
