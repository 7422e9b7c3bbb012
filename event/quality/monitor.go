// Package quality notices when compaction took away too much: an agent that asks for what
// it was told, says it cannot see what was there, or looks again at what it had looked at.
//
// A Monitor watches one thread:
//
//	m := quality.New(threadID, &quality.Options{Events: sink})
//	m.Message(ctx, msg)        // each message, when it is appended to the log
//	m.Compacted(thread, plan)  // each compaction, when its plan takes effect
//	m.TaskFinished(thread.Success) // once
//	m.Metrics()
//
// Messages are judged by phrases, sentence by sentence; calls by comparing them
// with the calls whose results the plan removed. Both keep silent when in doubt: there is
// good reason to read a file again that was changed since, and to repeat a command that is
// run all the time, or after any change of a file that a call names; ordinary questions to the user do not count.
package quality

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Options say what a monitor notices. Nil and the zero value are the defaults.
type Options struct {
	// Events receives an event for each ask of the agent (event.ContextRequested) and for one
	// that keeps asking (event.QualityAlert). That the user repeats something is only counted.
	// Nil: none.
	Events event.Sink
	// TenantID and Policy are written into the events.
	TenantID, Policy string
	// Asks is how many messages that ask make an alert; 0 stands for 3.
	Asks int
	// Turns is for how many turns of the agent after a compaction an ask counts for an
	// alert; 0 stands for 10.
	Turns int
}

// Monitor watches one thread for signs that a compaction removed what the agent needs.
// Call it for every message and every compaction, in log order. It keeps hashes and ids,
// never text. It is safe for concurrent use.
type Monitor struct {
	threadID string
	options  Options

	mu             sync.Mutex
	metrics        Metrics
	turn           int // of the agent
	compactionTurn int // turn of the last compaction
	hiddenMessages map[thread.ID]bool
	removed        []removal
	askTurns       []int // turns of messages that asked and count for an alert
}

// removal is something that was visible until the compaction at a turn.
type removal struct {
	observation
	turn int
}

// Metrics say how a thread fared under compaction. Counts begin at the first compaction.
type Metrics struct {
	Compactions int `json:"compactions"`
	// TurnsSinceCompaction counts turns of the agent, one for each assistant message;
	// turns of the user would count a whole unattended run as one. It is 0 before the
	// first compaction.
	TurnsSinceCompaction int `json:"turns_since_compaction"`
	// AgentAskedForContext: it asked, in words, since the last compaction.
	AgentAskedForContext bool `json:"agent_asked_for_context"`
	// RehydrationRequests counts calls of read_artifact and recall.
	RehydrationRequests int `json:"rehydration_requests"`
	// Rereads and Reruns count what was looked at again soon after it was removed, each
	// removed thing once.
	Rereads int `json:"rereads"`
	Reruns  int `json:"reruns"`
	// UserRepeats counts messages in which the user says they said so before.
	UserRepeats int `json:"user_repeats"`
	Alerts      int `json:"alerts"`
	// Asks are the newest signs, at most 100, oldest first.
	Asks []Ask `json:"asks,omitempty"`
	// Task is how the task ended, empty until TaskFinished.
	Task thread.Outcome `json:"task_completion,omitempty"`
}

// Ask is one sign, and the message that gave it.
type Ask struct {
	MessageID thread.ID `json:"message_id"`
	Class     Class     `json:"class"`
	// Turns is how many turns after the last compaction it came, from 1.
	Turns int `json:"turns_since_compaction"`
}

// Outcome says how the task of a thread ended.
type Outcome struct {
	// Task is success, failure or partial; empty says nothing.
	Task thread.Outcome `json:"task,omitempty"`
}

const (
	// repeatTurns is for how many turns of the agent after something was removed looking
	// at it again is noticed.
	repeatTurns = 10
	// maxAsks and maxRemoved bound the memory of a monitor.
	maxAsks    = 100
	maxRemoved = 4096
)

// New returns a monitor of the thread.
func New(threadID string, o *Options) *Monitor {
	m := &Monitor{threadID: threadID, options: *cmp.Or(o, &Options{})}
	m.options.Asks = cmp.Or(max(m.options.Asks, 0), 3)
	m.options.Turns = cmp.Or(max(m.options.Turns, 0), 10)
	return m
}

// Message records a message that was appended to the log, with its calls.
func (m *Monitor) Message(ctx context.Context, msg thread.Message) {
	for _, e := range m.message(&msg) {
		event.Emit(ctx, m.options.Events, e)
	}
}

// message does the work under the lock. Events are emitted after it, since a sink may ask
// the monitor.
func (m *Monitor) message(msg *thread.Message) []event.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case msg.Role == thread.Assistant:
		m.turn++
	case !msg.StartsTurn():
		return nil
	}
	if m.metrics.Compactions == 0 {
		return nil
	}
	if msg.StartsTurn() {
		if class, ok := matchPhrases(injected.UserWords(msg), userPhrases); ok {
			m.metrics.UserRepeats++
			m.recordAsk(msg.ID, class)
		}
		return nil
	}
	m.metrics.TurnsSinceCompaction = m.turn - m.compactionTurn
	classes := m.findSigns(msg)
	events := make([]event.Event, 0, len(classes)+1)
	for _, class := range classes {
		m.recordAsk(msg.ID, class)
		events = append(events, m.newEvent(event.ContextRequested, map[string]any{
			"message_id": msg.ID, "class": string(class), "turns_since_compaction": m.metrics.TurnsSinceCompaction,
		}))
	}
	if len(classes) > 0 && m.countAsk() {
		m.metrics.Alerts++
		events = append(events, m.newEvent(event.QualityAlert, map[string]any{"asks": m.options.Asks, "turns": m.options.Turns, "message_id": msg.ID}))
	}
	return events
}

// findSigns finds the classes of signs in the agent's message, each once, and counts.
func (m *Monitor) findSigns(msg *thread.Message) []Class {
	var classes []Class
	sign := func(c Class) {
		if !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
	}
	if class, ok := asks(msg.Text()); ok {
		m.metrics.AgentAskedForContext = true
		sign(class)
	}
	for _, c := range msg.Calls() {
		if toolclass.ClassOf(c.Name) == toolclass.Recall {
			m.metrics.RehydrationRequests++
			sign(artifactRead)
		}
		for _, what := range changedFiles(c) {
			// The file is another now, and so is what commands say.
			m.removed = slices.DeleteFunc(m.removed, func(r removal) bool { return r.repeatClass == rerun || r.target == what })
		}
		o, ok := observationOf(c)
		if !ok || !m.isRepeat(o) {
			continue
		}
		if o.repeatClass == reread {
			m.metrics.Rereads++
		} else {
			m.metrics.Reruns++
		}
		sign(o.repeatClass)
	}
	return classes
}

// isRepeat reports whether o was removed a short while ago, and forgets it, since it is
// visible again.
func (m *Monitor) isRepeat(o observation) bool {
	n := len(m.removed)
	recent := false
	m.removed = slices.DeleteFunc(m.removed, func(r removal) bool {
		same := r.target == o.target && r.overlaps(o)
		recent = recent || same && m.turn-r.turn <= repeatTurns
		return same
	})
	return recent && len(m.removed) < n
}

func (m *Monitor) recordAsk(id thread.ID, class Class) {
	if len(m.metrics.Asks) >= maxAsks {
		m.metrics.Asks = slices.Delete(m.metrics.Asks, 0, 1)
	}
	m.metrics.Asks = append(m.metrics.Asks, Ask{MessageID: id, Class: class, Turns: m.turn - m.compactionTurn})
}

// countAsk counts the message of this turn and reports whether the agent keeps asking. A
// further alert needs as many asks again.
func (m *Monitor) countAsk() bool {
	if m.turn-m.compactionTurn > m.options.Turns {
		return false
	}
	m.askTurns = append(m.askTurns, m.turn)
	m.askTurns = slices.DeleteFunc(m.askTurns, func(turn int) bool { return m.turn-turn >= m.options.Turns })
	if len(m.askTurns) < m.options.Asks {
		return false
	}
	m.askTurns = m.askTurns[:0]
	return true
}

func (m *Monitor) newEvent(typ event.Type, details map[string]any) event.Event {
	return event.Event{Type: typ, ThreadID: m.threadID, TenantID: m.options.TenantID, Policy: m.options.Policy, Details: details}
}

// Compacted records that the plan took effect. A nil plan is a compaction that removed
// nobody knows what, such as an agent's own.
func (m *Monitor) Compacted(t *thread.Thread, p *plan.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics.Compactions++
	m.compactionTurn = m.turn
	m.metrics.TurnsSinceCompaction = 0
	m.metrics.AgentAskedForContext = false
	if t == nil || p == nil {
		return
	}
	found, gone := removedObservations(t, p, m.hiddenMessages)
	m.hiddenMessages = gone
	m.removed = slices.DeleteFunc(m.removed, func(r removal) bool { return m.turn-r.turn > repeatTurns })
	for _, o := range found[:min(len(found), maxRemoved)] {
		m.removed = append(m.removed, removal{o, m.turn})
	}
	if over := len(m.removed) - maxRemoved; over > 0 {
		m.removed = slices.Delete(m.removed, 0, over)
	}
}

// TaskFinished records how the task ended.
func (m *Monitor) TaskFinished(o thread.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics.Task = o
}

// Metrics returns the figures of now; they share nothing with the monitor.
func (m *Monitor) Metrics() Metrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.metrics
	out.Asks = slices.Clone(out.Asks)
	return out
}
