package summarize

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestPlanInFile(t *testing.T) {
	const plan = `# Move to SQLite

1. [ ] not a plan of this page

` + "```\n- [ ] an example\n```" + `
## Step 1: schema
- [x] Write the tables
- [x] Verify

## Step 2: driver
* [ ] Open the file
* [ ] Close it
* [ ] Verify

## Step 3: docs
- [ ] One page
- [ ] An example
- [ ] Verify

## Step 4: release
- [ ] Tag it
`
	steps := func(k *talk) string {
		var lines []string
		for _, s := range summarizeNow(t, Input{Messages: k.done(t)}).CurrentPlan {
			lines = append(lines, "["+s.Status+"] "+s.Text)
		}
		return strings.Join(lines, "\n")
	}
	k := (&talk{}).user("Move the store to SQLite, step by step, as the plan says.")
	k.calls("Write", args{"file_path": "/p/PLAN.md", "content": plan}, "ok", thread.Success)
	k.calls("Edit", args{"file_path": "/p/PLAN.md", "old_string": "* [ ] Open", "new_string": "* [x] Open"}, "ok", thread.Success)
	k.calls("Edit", args{"file_path": "/p/PLAN.md", "old_string": "* [ ] Close", "new_string": "* [x] Close"}, "it was not found", thread.Failure)
	want := `[pending] Move to SQLite
[pending] not a plan of this page
[completed] Step 1: schema
[in_progress] Step 2: driver
[completed] Open the file
[pending] Close it
[pending] Verify
[pending] Step 3: docs
[pending] One page
[pending] An example
[pending] Verify
[pending] Step 4: release`
	if diff := cmp.Diff(want, steps(k)); diff != "" {
		t.Errorf("the plan in a file (-want +got):\n%s", diff)
	}
	// What changes the file in another way leaves nothing to be said of it.
	k.calls("Bash", args{"command": "sed -i 's/\\[ \\]/[x]/' /p/PLAN.md"}, "", thread.Success)
	if got := steps(k); got != "" {
		t.Errorf("after a command changed the file its plan is told: %s", got)
	}
	k.calls("Read", args{"file_path": "/p/PLAN.md"}, "     1→## Rest\n     2→- [x] a step\n     3→- [ ] b step\n     4→- [ ] c step\n", thread.Success)
	k.calls("Edit", args{"file_path": "/p/PLAN.md", "old_string": "- [ ] b", "new_string": "- [x] b"}, "ok", thread.Success)
	if diff := cmp.Diff("[in_progress] Rest\n[completed] a step\n[completed] b step\n[pending] c step", steps(k)); diff != "" {
		t.Errorf("read again and edited (-want +got):\n%s", diff)
	}
	// A list of the agent's own says more.
	k.calls("TodoWrite", args{"todos": []any{args{"content": "c step", "status": "in_progress"}}}, "ok", thread.Success)
	if diff := cmp.Diff("[in_progress] c step", steps(k)); diff != "" {
		t.Errorf("beside a list of tasks (-want +got):\n%s", diff)
	}
}

// A list of the project's is not the agent's plan, though the agent edits it.
func TestListOfTheProject(t *testing.T) {
	const list = "# Open points\n- [ ] the cache is cold\n- [ ] the log is loud\n- [ ] the port is fixed\n- [ ] the key is old\n"
	k := (&talk{}).user("Take the cache out of the list of open points, please.")
	k.calls("Read", args{"file_path": "/p/TODO.md"}, list, thread.Success)
	k.calls("Edit", args{"file_path": "/p/TODO.md", "old_string": "- [ ] the cache is cold\n", "new_string": ""}, "ok", thread.Success)
	if plan := summarizeNow(t, Input{Messages: k.done(t)}).CurrentPlan; plan != nil {
		t.Errorf("the project's list is told as the agent's plan: %v", plan)
	}
	k.calls("Edit", args{"file_path": "/p/TODO.md", "old_string": "- [ ] the log", "new_string": "- [x] the log"}, "ok", thread.Success)
	if plan := summarizeNow(t, Input{Messages: k.done(t)}).CurrentPlan; len(plan) != 4 {
		t.Errorf("the agent ticks its boxes, but its plan is %v", plan)
	}
	// A tool for tasks that was used before the span says where the plan is kept.
	log := (&talk{}).user("Go on with the list, please.").calls("TodoWrite", args{"todos": []any{args{"content": "a", "status": "completed"}}}, "ok", thread.Success).done(t)
	log = append(log, k.done(t)...)
	if plan := summarizeNow(t, Input{Messages: log[3:], Log: log}).CurrentPlan; plan != nil {
		t.Errorf("beside a tool for tasks: %v", plan)
	}
}
