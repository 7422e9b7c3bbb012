package quality

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// observation is what a call looked at, as a hash, so that nothing of the conversation is
// kept; of a file also the lines.
type observation struct {
	target      [sha256.Size]byte
	repeatClass Class // what it is when done again
	from, to    int   // lines, the end excluded; to 0 is the whole
}

func (o observation) overlaps(other observation) bool {
	if o.to == 0 || other.to == 0 {
		return true
	}
	return o.from < other.to && other.from < o.to
}

// ignoredArguments do not change what is seen.
var ignoredArguments = []string{"description", "timeout", "timeout_ms", "yield_time_ms", "run_in_background", "explanation"}

// observationOf is what the call looks at; false for tools that do not look.
func observationOf(c thread.ToolCall) (observation, bool) {
	class := toolclass.ClassOf(c.Name)
	switch class {
	case toolclass.Read, toolclass.Shell, toolclass.Search, toolclass.List, toolclass.Fetch, toolclass.Web:
	default:
		return observation{}, false
	}
	args := arguments(c)
	if class == toolclass.Read {
		if path := toolclass.Path(c); path != "" {
			o := observation{target: hash(class, path), repeatClass: reread}
			o.from, o.to = lineRange(args)
			return o, true
		}
	}
	for _, name := range ignoredArguments {
		delete(args, name)
	}
	what := c.Arguments
	if args != nil {
		if canonical, err := json.Marshal(args); err == nil {
			what = string(canonical)
		}
	}
	if what == "" || what == "{}" {
		return observation{}, false
	}
	return observation{target: hash(class, what), repeatClass: rerun}, true
}

// changedFiles returns the hashes of observations of the files that the call changes, or may
// change; zero for one that it does not name.
func changedFiles(c thread.ToolCall) (all [][sha256.Size]byte) {
	switch toolclass.ClassOf(c.Name) {
	case toolclass.Edit, toolclass.Write:
		if path := toolclass.Path(c); path != "" {
			return append(all, hash(toolclass.Read, path))
		}
		return append(all, [sha256.Size]byte{})
	case toolclass.Shell:
		line := shell.Read(commandLine(c))
		for _, op := range shell.Files(line) {
			if op.Op != "read" {
				all = append(all, hash(toolclass.Read, op.Path))
			}
		}
	}
	return all
}

// commandLine is the command line of a shell's call.
func commandLine(c thread.ToolCall) string {
	args := arguments(c)
	for _, name := range []string{"command", "cmd"} {
		switch v := args[name].(type) {
		case string:
			return v
		case []any: // ["bash", "-lc", "the command"]
			if len(v) > 0 {
				s, _ := v[len(v)-1].(string)
				return s
			}
		}
	}
	return ""
}

func hash(class toolclass.Class, what string) [sha256.Size]byte {
	return sha256.Sum256([]byte(string(class) + "\x00" + what))
}

func arguments(c thread.ToolCall) map[string]any {
	var args map[string]any
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return nil
	}
	return args
}

// lineRange is the range of lines that a read asks for; 0, 0 is all.
func lineRange(args map[string]any) (from, to int) {
	number := func(name string) (int, bool) {
		f, ok := args[name].(float64)
		return int(f), ok && f >= 0 && f < 1<<30
	}
	if start, ok := number("start_line"); ok {
		if end, ok := number("end_line"); ok && end >= start {
			return start, end + 1
		}
		return 0, 0
	}
	limit, ok := number("limit")
	if !ok || limit == 0 {
		return 0, 0
	}
	offset, _ := number("offset")
	return offset, offset + limit
}

// removedObservations finds what the plan hides that was visible before, unless looking
// again is normal: the same is still visible elsewhere, the file was changed since, or,
// for commands, anything was changed since or the command is run time and again. before
// are the messages that were hidden already; now those that are hidden under the plan.
func removedObservations(t *thread.Thread, p *plan.Plan, before map[thread.ID]bool) (found []observation, now map[thread.ID]bool) {
	now = map[thread.ID]bool{}
	for _, r := range p.Records() {
		for _, id := range r.Covers().MessageIDs {
			now[id] = true
		}
	}
	pairs := thread.Pair(t)
	var (
		visible = map[[sha256.Size]byte][]observation{}
		runs    = map[[sha256.Size]byte]int{}
		changed = map[[sha256.Size]byte]bool{}
		edited  bool
		gone    []observation
	)
	for i := t.Len() - 1; i >= 0; i-- {
		m := t.At(i)
		for _, c := range m.Calls() {
			for _, what := range changedFiles(c) {
				changed[what], edited = true, true
			}
		}
		call, ok := pairs.Answered(i)
		if !ok {
			continue
		}
		o, ok := observationOf(call)
		if !ok {
			continue
		}
		runs[o.target]++
		switch {
		case !now[m.ID]:
			visible[o.target] = append(visible[o.target], o)
		case before[m.ID], o.repeatClass == reread && changed[o.target], o.repeatClass == rerun && edited:
		default:
			gone = append(gone, o)
		}
	}
	for _, o := range gone {
		if o.repeatClass == rerun && runs[o.target] > 1 || slices.ContainsFunc(visible[o.target], o.overlaps) {
			continue
		}
		found = append(found, o)
	}
	return found, now
}
