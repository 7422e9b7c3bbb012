package main

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A script is plain text, so that Go code and prose can stand in it without
// quoting. A line that starts with @ is a directive; the lines up to the next
// directive are its body.
//
//	@user                 a user turn
//	@fact KIND [TURN]     a fact of that turn: a piece of its text, verbatim;
//	                      TURN is the one that takes it back
//	@think                the next assistant message starts with this thought
//	@say                  ... or with this text
//	@then                 ... or with neither, right after the last results
//	@ls PATH              a tool call; consecutive calls stand in one message
//	@read PATH [FROM-TO]
//	@grep [-C N] PATH     body: the regular expression
//	@glob PATTERN
//	@bash COMMAND         body: description
//	@edit PATH            body: old text
//	@with                 body: new text
//	@write PATH           body: content
//	@todo                 body: lines "[ ] x", "[>] x", "[x] x"
//	@fetch URL            body: prompt
//	@task DESCRIPTION     body: prompt; the side chain runs to @end
//	@end
//	@fails                the last call must report an error
//	@expect               the last result must contain the body
//	@interrupted          the last call gets no result
//	@pause MINUTES        the user is away
//	@summary              a title that the client keeps beside the chat
//	@system SUBTYPE       a line of the client itself
//
// A body keeps its inner newlines. @write ends its body with one newline, all
// other bodies end without.

// Turn is one user turn with everything the agent did in it.
type Turn struct {
	User  string
	Facts []Fact
	Pause int // minutes before the turn
	Steps []Step
}

// Step is one assistant message, or a line of the client.
type Step struct {
	Think string
	Say   string
	Calls []Call

	// System is the subtype of a client line; its text is in Say.
	System string
}

// Call is one tool call. Only the fields of its tool are set.
type Call struct {
	Tool        Tool
	Path        string
	From, To    int
	Context     int
	Pattern     string
	Command     string
	Description string
	Old, New    string
	Content     string
	Todos       []Todo
	URL         string
	Prompt      string
	Side        []Step

	Fails       bool
	Expect      []string
	Interrupted bool
}

// Todo is one line of the plan.
type Todo struct {
	Text   string
	Status string // pending, in_progress, completed
}

// loadScript reads the parts of a script in the order of their names.
func loadScript(fsys fs.FS, dir string) ([]Turn, error) {
	parts, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	p := &scriptParser{}
	for _, part := range parts {
		text, err := fs.ReadFile(fsys, path.Join(dir, part.Name()))
		if err != nil {
			return nil, err
		}
		if err := p.parse(part.Name(), string(text)); err != nil {
			return nil, err
		}
	}
	return p.turns, nil
}

// scriptParser collects turns. While it is inside a @task, outer is the call
// whose side chain is being read.
type scriptParser struct {
	turns []Turn
	side  []Step
	outer bool
	fresh bool // the next call starts a new step
	pause int
}

func (p *scriptParser) parse(name, text string) error {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		if lines[i] == "" {
			i++
			continue
		}
		if !strings.HasPrefix(lines[i], "@") {
			return fmt.Errorf("%s:%d: text outside a directive", name, i+1)
		}
		start := i
		i++
		for i < len(lines) && !strings.HasPrefix(lines[i], "@") {
			i++
		}
		body := strings.Trim(strings.Join(lines[start+1:i], "\n"), "\n")
		verb, arg, _ := strings.Cut(lines[start][1:], " ")
		if err := p.directive(verb, arg, body); err != nil {
			return fmt.Errorf("%s:%d: @%s: %w", name, start+1, verb, err)
		}
	}
	return nil
}

func (p *scriptParser) directive(verb, arg, body string) error {
	switch verb {
	case "user":
		p.turns = append(p.turns, Turn{User: body, Pause: p.pause})
		p.pause, p.fresh = 0, true
		return nil
	case "pause":
		n, err := strconv.Atoi(arg)
		p.pause = n
		return err
	}
	if len(p.turns) == 0 {
		return fmt.Errorf("before the first @user")
	}
	turn := &p.turns[len(p.turns)-1]
	steps := p.steps()
	switch verb {
	case "fact":
		f := Fact{Fact: body, Turn: len(p.turns)}
		if n, _ := fmt.Sscanf(arg, "%s %d", &f.Kind, &f.Until); n == 0 {
			return fmt.Errorf("no kind")
		}
		turn.Facts = append(turn.Facts, f)
	case "think":
		*steps = append(*steps, Step{Think: body})
		p.fresh = false
	case "say":
		// A text after a thought belongs to the same message.
		if last := p.lastStep(); last != nil && last.Think != "" && last.Say == "" && len(last.Calls) == 0 {
			last.Say = body
		} else {
			*steps = append(*steps, Step{Say: body})
		}
		p.fresh = false
	case "then":
		p.fresh = true
	case "system", "summary":
		if verb == "summary" {
			arg = "summary"
		}
		*steps = append(*steps, Step{System: arg, Say: body})
		p.fresh = true
	case "end":
		p.outer = false
		call := p.lastCall()
		call.Side, p.side = p.side, nil
	case "with", "fails", "expect", "interrupted":
		return p.amend(verb, body)
	default:
		call, err := newCall(verb, arg, body)
		if err != nil {
			return err
		}
		if p.fresh || p.lastStep() == nil {
			*steps = append(*steps, Step{})
			p.fresh = false
		}
		last := p.lastStep()
		last.Calls = append(last.Calls, call)
		p.outer = p.outer || call.Tool == ToolTask
	}
	return nil
}

// amend changes the last call.
func (p *scriptParser) amend(verb, body string) error {
	call := p.lastCall()
	if call == nil {
		return fmt.Errorf("no call before it")
	}
	switch verb {
	case "with":
		call.New = body
	case "fails":
		call.Fails = true
	case "expect":
		call.Expect = append(call.Expect, body)
	case "interrupted":
		call.Interrupted = true
	}
	return nil
}

// steps is the list that the next step goes to.
func (p *scriptParser) steps() *[]Step {
	if p.outer {
		return &p.side
	}
	return &p.turns[len(p.turns)-1].Steps
}

func (p *scriptParser) lastStep() *Step {
	s := *p.steps()
	if len(s) == 0 {
		return nil
	}
	return &s[len(s)-1]
}

func (p *scriptParser) lastCall() *Call {
	s := p.lastStep()
	if s == nil || len(s.Calls) == 0 {
		return nil
	}
	return &s.Calls[len(s.Calls)-1]
}

// newCall makes a call of a directive.
func newCall(verb, arg, body string) (Call, error) {
	c := Call{Tool: Tool(verb)}
	words := strings.Fields(arg)
	switch c.Tool {
	case ToolList:
		c.Path = arg
	case ToolGlob:
		c.Pattern = arg
	case ToolRead:
		c.Path = words[0]
		if len(words) > 1 {
			if _, err := fmt.Sscanf(words[1], "%d-%d", &c.From, &c.To); err != nil {
				return c, fmt.Errorf("line range %q: %w", words[1], err)
			}
		}
	case ToolGrep:
		if words[0] == "-C" {
			n, err := strconv.Atoi(words[1])
			if err != nil {
				return c, err
			}
			c.Context, words = n, words[2:]
		}
		c.Path, c.Pattern = words[0], body
	case ToolBash:
		c.Command, c.Description = arg, body
	case ToolEdit:
		c.Path, c.Old = arg, body
	case ToolWrite:
		c.Path, c.Content = arg, body+"\n"
	case ToolFetch:
		c.URL, c.Prompt = arg, body
	case ToolTask:
		c.Description, c.Prompt = arg, body
	case ToolTodo:
		return c, parseTodos(&c, body)
	default:
		return c, fmt.Errorf("unknown directive")
	}
	return c, nil
}

func parseTodos(c *Call, body string) error {
	status := map[string]string{"[ ] ": "pending", "[>] ": "in_progress", "[x] ": "completed"}
	for _, line := range strings.Split(body, "\n") {
		s, ok := status[line[:min(4, len(line))]]
		if !ok {
			return fmt.Errorf("todo %q has no state", line)
		}
		c.Todos = append(c.Todos, Todo{Text: line[4:], Status: s})
	}
	return nil
}
