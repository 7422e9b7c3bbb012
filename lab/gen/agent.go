package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Session is a conversation that has taken place, before it is written in the
// format of some client.
type Session struct {
	Name   string
	Events []Event
	Facts  []Fact
	turns  int
	calls  int
	chars  int
}

// Event is one message, or one line of the client.
type Event struct {
	At     time.Time
	User   string // a user turn
	Think  string
	Say    string
	Calls  []DoneCall
	System string // subtype of a client line; its text is in Say
}

// DoneCall is a call with its result. A side chain has its own events.
type DoneCall struct {
	Call
	ID     string
	At     time.Time // when the result was there
	Result Result
	Side   []Event
}

// Fact is something a user said that must not get lost when the conversation
// is shortened. Fact is a verbatim piece of the user message.
type Fact struct {
	Session string `json:"session"`
	Fact    string `json:"fact"`
	Kind    string `json:"kind"` // constraint, preference, task, identifier
	Turn    int    `json:"turn"` // counted from 1
	// Until is the turn in which the user takes it back or replaces it.
	Until int `json:"until,omitempty"`
}

// sessionStart is when every session begins; the clock then follows the
// script.
var sessionStart = time.Date(2025, 6, 3, 8, 30, 0, 0, time.UTC)

// player plays a script on a workspace.
type player struct {
	s   *Session
	ws  *Workspace
	now time.Time
}

// play runs all turns and stops at the first surprise.
func play(name string, turns []Turn, ws *Workspace) (*Session, error) {
	p := &player{s: &Session{Name: name}, ws: ws, now: sessionStart}
	for i, t := range turns {
		p.now = p.now.Add(time.Duration(t.Pause)*time.Minute + 40*time.Second)
		p.s.Events = append(p.s.Events, Event{At: p.now, User: t.User})
		p.s.turns++
		p.s.chars += len(t.User)
		for _, f := range t.Facts {
			if !strings.Contains(t.User, f.Fact) {
				return nil, fmt.Errorf("%s: turn %d does not contain the fact %q", name, i+1, f.Fact)
			}
			f.Session = name
			p.s.Facts = append(p.s.Facts, f)
		}
		events, err := p.steps(t.Steps)
		if err != nil {
			return nil, fmt.Errorf("%s: turn %d: %w", name, i+1, err)
		}
		p.s.Events = append(p.s.Events, events...)
	}
	return p.s, nil
}

func (p *player) steps(steps []Step) ([]Event, error) {
	var events []Event
	for _, st := range steps {
		// The time it takes to write the message grows with its length.
		p.now = p.now.Add(3*time.Second + time.Duration(len(st.Think)+len(st.Say))*9*time.Millisecond)
		e := Event{At: p.now, Think: st.Think, Say: st.Say, System: st.System}
		p.s.chars += len(st.Think) + len(st.Say)
		for _, c := range st.Calls {
			d, err := p.call(c)
			if err != nil {
				return nil, err
			}
			e.Calls = append(e.Calls, d)
		}
		events = append(events, e)
	}
	return events, nil
}

// call executes a call and checks that it went as the script says.
func (p *player) call(c Call) (DoneCall, error) {
	p.s.calls++
	d := DoneCall{Call: c, ID: p.id("call", p.s.calls)}
	p.now = p.now.Add(700 * time.Millisecond)
	if c.Interrupted {
		d.At = p.now
		return d, nil
	}
	if c.Tool == ToolTask {
		side, err := p.steps(c.Side)
		if err != nil {
			return d, fmt.Errorf("task %s: %w", c.Description, err)
		}
		d.Side = side
		d.Result = Result{Text: side[len(side)-1].Say}
	} else {
		d.Result = p.ws.Run(c)
	}
	d.At = p.now
	p.s.chars += len(d.Result.Text) + len(argumentText(c))
	if d.Result.Failed != c.Fails {
		return d, fmt.Errorf("@%s %s: failed = %v, the script wants %v\n%s",
			c.Tool, callSubject(c), d.Result.Failed, c.Fails, d.Result.Text)
	}
	for _, want := range c.Expect {
		if !strings.Contains(d.Result.Text, want) {
			return d, fmt.Errorf("@%s %s: no %q in the result\n%s", c.Tool, callSubject(c), want, d.Result.Text)
		}
	}
	return d, nil
}

// id derives a stable identifier from the session and a counter.
func (p *player) id(kind string, n int) string { return stableID(p.s.Name, kind, n) }

func stableID(session, kind string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", session, kind, n))
	return hex.EncodeToString(sum[:])
}

// argumentText is roughly what the arguments of a call add to a conversation.
func argumentText(c Call) string {
	var todos strings.Builder
	for _, t := range c.Todos {
		todos.WriteString(t.Text)
	}
	return c.Path + c.Pattern + c.Command + c.Description + c.Old + c.New + c.Content + c.URL + c.Prompt + todos.String()
}

// callSubject names a call in an error message.
func callSubject(c Call) string {
	return strings.TrimSpace(c.Path + " " + c.Pattern + " " + c.Command + " " + c.URL)
}

// Describe tells how large the session is. Four characters are about a token.
func (s *Session) Describe() string {
	return fmt.Sprintf("%-12s %3d user turns, %3d calls, about %d tokens", s.Name, s.turns, s.calls, s.chars/4)
}

// encodeFacts writes the facts of all sessions, one per line, so that a change
// shows as one line in a diff.
func encodeFacts(facts []Fact) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, f := range facts {
		line, err := marshal(f)
		if err != nil {
			return nil, err
		}
		b.WriteString("  ")
		b.Write(line)
		if i < len(facts)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes(), nil
}

// marshal encodes v on one line and leaves <, > and & as they are, like the
// clients whose files we imitate.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
