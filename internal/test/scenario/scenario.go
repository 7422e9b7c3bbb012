// Package scenario runs what must hold through the library, the proxy and the daemon alike: files
// testdata/scenarios/<behaviour>.txtar. A file begins with what it shows, in words, and the requirements it stands
// for. Sections follow:
//
//	-- settings.yaml --    may be absent, see settings
//	-- loop.yaml --        a policy file (docs/policies.md); with several the scenario runs under each of them
//	-- model --            what the summarizer answers, a line for each time that it is asked; without the section
//	                       code writes the summaries
//	-- log --              what is said, asked and checked; "log NAME" is another conversation under the same settings
//
// "model loop" answers under the policy of that name alone; under another name ("model that times out") the scenario
// runs once more with those answers. They are
//
//	say: TEXT      json: OBJECT      cut: TEXT (at the limit of tokens)      refuse:
//	fail: timeout|server|overflow|auth|unreachable      always say: TEXT (from now on; the same for the others)
//
// The lines of a log, of which spaces before them and lines that begin with # do not count:
//
//	system: TEXT               the agent's system prompt, before all else
//	user: TEXT                 assistant: TEXT
//	call ID TOOL ARGUMENTS     the assistant calls a tool; with +call the assistant's last message calls it too
//	result ID TOOL: TEXT       what the tool said; "result ID TOOL failure: TEXT" where that is told apart from the text
//	step                       the agent asks its model; what the assistant says next is the answer
//	> CHECK                    what the request of the last step must be like, see checks
//	repeat 20                  the lines up to "end" 20 times; "repeat 20 until plan 1" stops after the time in which
//	end                        plan 1 is made, and fails where it never is
//
// In each of them \n is a line break; {n} is the number of the repetition from 0, {n*7+1} and {n%3} are computed from
// it, and {x40 TEXT} is the text forty times, with {i} for the number of each.
package scenario

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// settings are those of a scenario; the comments say what holds where one is absent.
type settings struct {
	Faces    []string // which run it: library, proxy, daemon; all. The reason stands beside it
	Window   int      // of the model, in tokens; 100,000
	Output   int      // likewise; 1,000
	Tools    bool     // the agent offers a tool, "inspect"; it offers none
	Policies string   // a folder of policy files that scenarios share; none
}

// line is a line of a file, n its number from 1.
type line struct {
	n    int
	text string
}

// scenario is a file that was read.
type scenario struct {
	settings
	name     string
	policies map[string][]byte         // policy files by their names
	models   map[string][]llmtest.Turn // answers by the section's second word
	logs     map[string][]op
}

// op is a line of a log after all repetitions are written out.
type op struct {
	line
	// plan ends a repetition once it is in force; then behind is the index of the line that follows.
	plan, behind int
}

var heading = regexp.MustCompile(`^-- (.+) --$`)

// read reads a file. An error names the line.
func read(name string) (*scenario, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := &scenario{name: filepath.Base(name), policies: map[string][]byte{}, models: map[string][]llmtest.Turn{}, logs: map[string][]op{},
		settings: settings{Faces: []string{"library", "proxy", "daemon"}, Window: 100_000, Output: 1_000}}
	sections, section := map[string][]line{}, ""
	for n, text := range strings.Split(string(data), "\n") {
		if m := heading.FindStringSubmatch(text); m != nil {
			section = m[1]
			sections[section] = nil
		} else if shown := strings.TrimSpace(text); section != "" && shown != "" && !strings.HasPrefix(shown, "#") {
			sections[section] = append(sections[section], line{n + 1, text})
		}
	}
	for section, lines := range sections {
		kind, variant, _ := strings.Cut(section, " ")
		policy, isFile := strings.CutSuffix(section, ".yaml")
		var file bytes.Buffer
		for _, l := range lines {
			fmt.Fprintln(&file, l.text)
		}
		switch {
		case section == "settings.yaml":
			err = yaml.UnmarshalWithOptions(file.Bytes(), &s.settings, yaml.Strict())
		case isFile:
			s.policies[policy] = file.Bytes()
		case kind == "model":
			s.models[variant], err = s.answers(lines)
		case kind == "log":
			s.logs[variant], err = s.writtenOut(lines, 0)
		default:
			err = fmt.Errorf("want settings.yaml, a policy file, model or log")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: section %q: %w", name, section, err)
		}
	}
	if s.Policies != "" {
		shared, err := filepath.Glob(filepath.Join(filepath.Dir(name), s.Policies, "*.yaml"))
		for _, file := range shared {
			if s.policies[strings.TrimSuffix(filepath.Base(file), ".yaml")], err = os.ReadFile(file); err != nil {
				return nil, err
			}
		}
		if err != nil || len(shared) == 0 {
			return nil, fmt.Errorf("%s: %d policies in %q, %v", name, len(shared), s.Policies, err)
		}
	}
	if len(s.policies) == 0 || len(s.logs) == 0 {
		return nil, fmt.Errorf("%s: %d policies and %d logs: want one of each at least", name, len(s.policies), len(s.logs))
	}
	return s, nil
}

// wrong is an error about a line.
func (s *scenario) wrong(l line, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s: %.300s", s.name, l.n, fmt.Sprintf(format, args...), strings.TrimSpace(l.text))
}

// faults are the ways in which a model fails.
var faults = map[string]error{"timeout": llm.ErrTimeout, "server": llm.ErrServer, "overflow": llm.ErrOverflow, "auth": llm.ErrAuth, "unreachable": fmt.Errorf("no route to host")}

// answers are those of a model.
func (s *scenario) answers(lines []line) (all []llmtest.Turn, err error) {
	for _, l := range lines {
		text, always := strings.CutPrefix(strings.TrimSpace(l.text), "always ")
		kind, text, _ := strings.Cut(text, ":")
		text = filled(strings.TrimSpace(text), 0)
		turn := llmtest.Say(broken(text))
		switch {
		case kind == "cut":
			turn.Reply.Stop = wire.StopLength
		case kind == "refuse":
			turn.Reply.Stop = wire.StopRefusal
		case kind == "json":
			turn = llmtest.Turn{Reply: llm.Reply{Text: text, JSON: text}}
		case kind == "fail" && faults[text] != nil:
			turn = llmtest.Fail(faults[text])
		case kind != "say":
			return nil, s.wrong(l, "want say, json, cut, refuse, or fail with one of %d faults", len(faults))
		}
		times := 1
		if always {
			times = 200
		}
		all = append(all, slices.Repeat([]llmtest.Turn{turn}, times)...)
	}
	return all, nil
}

var repetition = regexp.MustCompile(`^repeat (\d+)(?: until plan (\d+))?$`)

// writtenOut writes what stands between "repeat" and "end" as often as it says, in repetition n.
func (s *scenario) writtenOut(lines []line, n int) (out []op, err error) {
	for i := 0; i < len(lines); i++ {
		l := line{lines[i].n, strings.TrimSpace(lines[i].text)}
		m := repetition.FindStringSubmatch(l.text)
		if m == nil {
			out = append(out, op{line: line{l.n, filled(l.text, n)}})
			continue
		}
		length := slices.IndexFunc(lines[i+1:], func(l line) bool { return strings.TrimSpace(l.text) == "end" })
		if length < 0 {
			return nil, s.wrong(l, "no end follows")
		}
		times, _ := strconv.Atoi(m[1])
		plan, _ := strconv.Atoi(m[2])
		from := len(out)
		for n := range times {
			each, err := s.writtenOut(lines[i+1:i+1+length], n)
			if err != nil {
				return nil, err
			}
			out = append(out, each...)
			if plan > 0 {
				out = append(out, op{line: l, plan: plan})
			}
		}
		for j := from; j < len(out); j++ {
			out[j].behind = len(out)
		}
		i += 1 + length
	}
	return out, nil
}

var (
	numbers = regexp.MustCompile(`\{([ni])(?:([*+%])(\d+))?(?:\+(\d+))?\}`)
	times   = regexp.MustCompile(`\{x(\d+) ((?:[^{}]|\{i[^{}]*\})*)\}`)
)

// filled puts in what stands in braces, in repetition n.
func filled(text string, n int) string {
	text = computed(text, "n", n)
	return times.ReplaceAllStringFunc(text, func(found string) string {
		m := times.FindStringSubmatch(found)
		count, _ := strconv.Atoi(m[1])
		var b strings.Builder
		for i := range count {
			b.WriteString(computed(m[2], "i", i))
		}
		return b.String()
	})
}

// computed puts in the numbers that are computed from a name's value.
func computed(text, name string, value int) string {
	return numbers.ReplaceAllStringFunc(text, func(found string) string {
		m := numbers.FindStringSubmatch(found)
		if m[1] != name {
			return found
		}
		by, _ := strconv.Atoi(cmp.Or(m[3], "0"))
		plus, _ := strconv.Atoi(cmp.Or(m[4], "0"))
		return strconv.Itoa(plus + map[string]int{"": value, "*": value * by, "+": value + by, "%": value % max(by, 1)}[m[2]])
	})
}

// broken is a text with its line breaks.
func broken(text string) string { return strings.ReplaceAll(text, `\n`, "\n") }
