// Package adaptertest proves the adapters to agent frameworks: their codecs, and a long
// task that an agent of the framework does with a scripted model.
package adaptertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// The tool that the agent reads with, and what the user asks.
const (
	ReadPart         = "read_part"
	ReadPartSays     = "Reads one part of the report."
	ReadPartTakes    = `{"type":"object","properties":{"n":{"type":"integer","description":"Which part, from 1 on."}},"required":["n"]}`
	Task             = "Read all parts of the report, one after the other, and then tell the access code that stands in the first, and what line 17 of part 3 says."
	Code             = "KESTREL-4471"
	Parts            = 60
	Window           = 24_000 // tokens, which a third of the parts would fill
	Output           = 1_000  // tokens
	partBytes        = 8 << 10
	sentence         = "Line %d of part %d says that belt %d of hall %d ran %d minutes and moved %d crates. "
	maxLookups       = 4
	refusal          = "prompt is too long: %d tokens > %d maximum"
	answerOfNoFinder = "It is nowhere to be found."
)

// ErrTooLong is wrapped by the error of a request that does not fit into the window.
var ErrTooLong = errors.New("the scripted model refuses it")

// Part is what the tool returns: 8 KB, and in the first of them the code.
func Part(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Part %d of %d.\n", n, Parts)
	if n == 1 {
		fmt.Fprintf(&b, "The access code is %s. Keep it.\n", Code)
	}
	for i := 1; b.Len() < partBytes; i++ {
		b.WriteString(line(i, n))
		if i%4 == 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func line(i, n int) string {
	return fmt.Sprintf(sentence, i, n, (i*7+n)%40, (i+n*3)%12, (i*13+n*5)%600, (i*31+n*17)%900)
}

// facts are what the model is asked for: one that every summary keeps, and one that
// none does. Each is looked up with its query.
var facts = []struct{ text, query string }{
	{Code, `{"query":"\"access code\" part 1"}`},
	{strings.TrimSpace(line(17, 3)), `{"query":"\"Line 17 of part 3\""}`},
}

// Script is a model that has every part read and then tells the facts. It knows only
// what stands in the request: what it does not find there it looks up with recall,
// where that is offered. The zero value refuses nothing. It may be used from several
// goroutines.
type Script struct {
	// Window is the size of a request, in tokens, above which it is refused; 0 refuses
	// none.
	Window int
	// RefuseOnce is the step whose request is refused at first, whatever its size; 0 is
	// none.
	RefuseOnce int

	mu      sync.Mutex
	step    int
	refused bool
	report  Report
}

// Report says how the task went.
type Report struct {
	// Requests were answered, Refused were not. Lookups are those of recall.
	Requests, Refused, Lookups int
	// Largest is the largest request that was answered, in tokens.
	Largest int
	// Told is the last thing that the model said.
	Told string
}

// Found reports whether the facts were told.
func (r Report) Found() bool {
	for _, f := range facts {
		if !strings.Contains(r.Told, f.text) {
			return false
		}
	}
	return true
}

// String is the report in one line.
func (r Report) String() string {
	return fmt.Sprintf("%d requests, %d refused, the largest of %d tokens, %d lookups; the model says: %s", r.Requests, r.Refused, r.Largest, r.Lookups, r.Told)
}

// Report returns how the task went up to now.
func (s *Script) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// counter is how the script counts; its estimate is a little less than that of the
// Compactor, as a provider's count may be.
var counter = sync.OnceValue(func() *token.Counter {
	c, err := token.New("chars/4", nil)
	if err != nil {
		panic(err)
	}
	return c
})

// Answer is the model's answer to a request with those messages and tools.
func (s *Script) Answer(messages []thread.Message, tools []string) (thread.Message, wire.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, seen := 0, strings.Builder{}
	for i := range messages {
		m := &messages[i]
		size += counter().Message(m)
		r, _ := m.Result()
		seen.WriteString(m.Text() + r.Text())
	}
	early := s.RefuseOnce > 0 && s.step+1 == s.RefuseOnce && !s.refused
	if early || s.Window > 0 && size > s.Window {
		s.refused = s.refused || early
		s.report.Refused++
		return thread.Message{}, wire.Usage{}, fmt.Errorf(refusal+": %w", size, s.Window, ErrTooLong)
	}
	s.step++
	s.report.Requests++
	s.report.Largest = max(s.report.Largest, size)
	known, query := recalled(seen.String())
	out := thread.Message{Role: thread.Assistant}
	switch {
	case s.step <= Parts:
		out.Parts = []thread.Part{
			thread.Text{Text: fmt.Sprintf("Reading part %d.", s.step)},
			thread.ToolCall{ID: fmt.Sprintf("call_%d", s.step), Name: ReadPart, Arguments: fmt.Sprintf(`{"n":%d}`, s.step)},
		}
	case query == "":
		s.report.Told = known
		out.Parts = []thread.Part{thread.Text{Text: known}}
	case s.report.Lookups < maxLookups && slices.Contains(tools, recall.RecallTool):
		s.report.Lookups++
		out.Parts = []thread.Part{thread.ToolCall{ID: fmt.Sprintf("call_%d", s.step), Name: recall.RecallTool, Arguments: query}}
	default:
		s.report.Told = answerOfNoFinder
		out.Parts = []thread.Part{thread.Text{Text: s.report.Told}}
	}
	return out, wire.Usage{Input: size, Output: counter().Message(&out), Known: true}, nil
}

// recalled are the facts that stand in a text, and the query of one that does not.
func recalled(seen string) (known, query string) {
	for _, f := range facts {
		if strings.Contains(seen, f.text) {
			known += f.text + " "
		} else {
			query = f.query
		}
	}
	return strings.TrimSpace(known), query
}
