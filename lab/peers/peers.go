// Package peers runs other libraries, by their own code, as contenders of package eval:
// it asks a program what a library leaves of a history.
package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Program is a running program with contenders. It writes one line with their names, and
// then answers each line of its input with one line:
//
//	<- {"contenders":["NAME", ...]}
//	-> {"contender":"NAME","budget":8000,"messages":[...],"tokens":[...]}
//	<- {"messages":[...]}  or  {"error":"..."}
//
// Messages are in the neutral form of package api/neutral; tokens are their sizes. A
// message of the answer with the id of a message that was sent is that message, changed
// or not.
type Program struct {
	names   []string
	counter *token.Counter

	mu   sync.Mutex // one question at a time
	in   *bufio.Writer
	out  *bufio.Reader
	stop func() error
}

// question and answer are the lines.
type question struct {
	Contender string            `json:"contender"`
	Budget    int               `json:"budget"`
	Messages  []neutral.Message `json:"messages"`
	Tokens    []int             `json:"tokens"`
}

type answer struct {
	Messages []neutral.Message `json:"messages"`
	Error    string            `json:"error"`
}

// Start runs a program and its arguments until Stop or the end of the context.
func Start(ctx context.Context, command []string, counter *token.Counter) (*Program, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var words bytes.Buffer
	cmd.Stderr = &words
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("peers: %w", err)
	}
	p := &Program{counter: counter, in: bufio.NewWriter(in), out: bufio.NewReader(out)}
	p.stop = func() error {
		in.Close()
		err := cmd.Wait()
		cancel()
		if err != nil {
			err = fmt.Errorf("peers: %s: %w: %s", command[0], err, strings.TrimSpace(words.String()))
		}
		return err
	}
	var hello struct {
		Contenders []string `json:"contenders"`
	}
	if err := p.read(&hello); err != nil || len(hello.Contenders) == 0 {
		if err == nil {
			err = errors.New("it has no contenders")
		}
		return nil, errors.Join(fmt.Errorf("peers: %s: the first line: %w", command[0], err), p.stop())
	}
	p.names = hello.Contenders
	return p, nil
}

// Stop ends the program. The error holds what it wrote to stderr.
func (p *Program) Stop() error { return p.stop() }

func (p *Program) read(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return json.Unmarshal(line, v)
}

func (p *Program) ask(q *question) (*answer, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in.Write(append(line, '\n'))
	if err := p.in.Flush(); err != nil {
		return nil, err
	}
	a := &answer{}
	return a, p.read(a)
}

// Contenders are those of the program.
func (p *Program) Contenders() []references.Contender {
	var all []references.Contender
	for _, name := range p.names {
		all = append(all, references.Contender{Name: name, Fit: func(m *references.Moment, budget int) *references.Shown { return p.fit(name, m, budget) }})
	}
	return all
}

// fit asks for a prompt and checks it by the rules of OpenAI's Chat Completions, the
// strictest about calls and results. A prompt that breaks them is scored as it is and
// counts as failed.
func (p *Program) fit(name string, m *references.Moment, budget int) *references.Shown {
	q := &question{Contender: name, Budget: budget, Tokens: m.Sizes[:m.At]}
	for i := range m.At {
		q.Messages = append(q.Messages, neutral.MessageOf(m.Thread.At(i)))
	}
	a, err := p.ask(q)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return m.TailOnly(fmt.Errorf("%s: %w", name, err))
	}
	s, open := &references.Shown{}, unanswered(m)
	made := &prompt.Prompt{Model: "a-model", System: m.Base.System, Tools: m.Base.Tools}
	for n := range a.Messages {
		msg, err := a.Messages[n].Value(fmt.Sprintf("messages[%d]", n))
		if err != nil {
			return m.TailOnly(fmt.Errorf("%s: %w", name, err))
		}
		i, ok := m.Thread.Index(thread.ID(a.Messages[n].ID))
		if ok && i < m.At && same(&q.Messages[i], &a.Messages[n]) {
			s.Kept = append(s.Kept, i)
			s.Tokens += m.Sizes[i]
			msg = *m.Thread.At(i)
		} else {
			s.Other = append(s.Other, msg)
			s.Tokens += p.counter.Message(&msg)
		}
		made.Messages = append(append(made.Messages, msg), answers(&msg, open)...)
	}
	if why := references.RefusalReason(openai.Chat{}, made); why != "" {
		s.Failed = fmt.Errorf("%s: %s", name, why)
	}
	return s
}

// same reports whether two messages say the same.
func same(a, b *neutral.Message) bool {
	if len(a.Parts) != len(b.Parts) || a.Role != b.Role {
		return false
	}
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// unanswered are the calls of the history without a result: the user interrupted them,
// or the moment lies between parallel calls. They are no fault of a library.
func unanswered(m *references.Moment) map[string]bool {
	open := map[string]bool{}
	for i := range m.At {
		for _, c := range m.Thread.At(i).Calls() {
			open[c.ID] = true
		}
		if r, ok := m.Thread.At(i).Result(); ok {
			delete(open, r.CallID)
		}
	}
	return open
}

// answers are results for the open calls of a message.
func answers(msg *thread.Message, open map[string]bool) []thread.Message {
	var all []thread.Message
	for _, c := range msg.Calls() {
		if open[c.ID] {
			all = append(all, thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: c.ID, Tool: c.Name, Content: []thread.Part{thread.Text{Text: "no answer"}}}}})
		}
	}
	return all
}
