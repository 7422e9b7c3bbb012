package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/secret"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// defaultAnswerTokens is how much the proxy reserves for an answer if the request does not say,
// in tokens. In a window of largeWindow, marks do not depend on the window.
const (
	defaultAnswerTokens = 16_000
	largeWindow         = 1_000_000
)

// describePolicy says when a policy compacts and how much it keeps, in a window or, if that is
// 0, in the window of any model, at prices; without any, those are not known.
func describePolicy(s *policyfile.Settings, window int, prices token.Rates) string {
	if !s.GoesByPrices() {
		return "compacts by the policy " + s.Name() + ": " + s.Description()
	}
	a := s.Auto.Defaults()
	hard := strconv.Itoa(int(100*a.Hard+0.5)) + " %"
	at := func(window, answer int) policy.Marks {
		return a.Marks(&policy.Situation{Thread: thread.New(""), Window: window, Output: answer, Rates: prices})
	}
	m := at(largeWindow, defaultAnswerTokens)
	var words string
	switch {
	case window > 0:
		// Each request says how long its answer may be, and the proxy reserves a third of the
		// window for it at most.
		least, most := at(window, window/3), at(window, 0)
		left := hard + " of what a request leaves for its messages"
		words = fmt.Sprintf("at %s of %s tokens", tokenRange(least.Mark, most.Mark), number(window))
		if !least.Priced && !most.Priced {
			words += " (" + left + ")"
		}
		words += " and keeps " + tokenRange(least.Target, most.Target)
		if least.Priced || most.Priced {
			words += "; at " + left + " where the model's prices are not known"
		}
	case a.Favor == policy.FavorQuality:
		words = fmt.Sprintf("at %s of each model's room for messages and keeps %d %% of that", hard, int(100*float64(m.Target)/float64(m.Mark)+0.5))
	default:
		words = fmt.Sprintf("at %s tokens and keeps %s; sooner in small windows, at %s of the window where prices are not known", aboutTokens(m.Mark), aboutTokens(m.Target), hard)
	}
	return "compacts " + words + " (favor: " + string(a.Favor) + ")"
}

func tokenRange(from, to int) string {
	least, most := aboutTokens(from), aboutTokens(to)
	if least == most {
		return least
	}
	return least + " to " + most
}

// aboutTokens writes a number of tokens, rounded to thousands (below 10,000 to hundreds).
func aboutTokens(n int) string {
	if n%500 == 0 {
		return number(n)
	}
	round := 1_000
	if n < 10_000 {
		round = 100
	}
	return "about " + number((n+round/2)/round*round)
}

// announcer is an event.Sink that prints a line for each compaction.
type announcer struct {
	print func(e event.Event, line string)

	reasons *lru.Cache[string, string] // of running compactions, by thread
}

// maxReasons bounds the compactions whose reasons are kept: of those that turned out to have
// nothing to do, no event says that they ended.
const maxReasons = 1000

func newAnnouncer(say func(e event.Event, line string)) *announcer {
	return &announcer{print: say, reasons: lru.New[string, string](maxReasons)}
}

// Emit implements event.Sink.
func (t *announcer) Emit(_ context.Context, e event.Event) {
	key := e.TenantID + "\x00" + e.ThreadID
	switch e.Type {
	case event.PreCompact:
		why, _ := e.Details["why"].(string)
		t.reasons.Put(key, why, 1)
	case event.Failed:
		t.reasons.Delete(key)
	case event.Completed:
		why, _ := t.reasons.Get(key)
		t.reasons.Delete(key)
		t.print(e, compactionLine(e, why))
	}
}

// reasonPrefix matches what the line says already.
var reasonPrefix = lazyregexp.New(`^the request takes [0-9]+ tokens (and )?(is )?`)

// longNumber matches a number that is written with commas.
var longNumber = lazyregexp.New(`\b[0-9]{4,9}\b`)

func compactionLine(e event.Event, why string) string {
	line := fmt.Sprintf("compacted %s tokens to %s", number(e.TokensBefore), number(e.TokensAfter))
	if why = reasonPrefix().ReplaceAllString(strings.ReplaceAll(why, "-", " "), ""); why != "" {
		line += " (" + longNumber().ReplaceAllStringFunc(why, func(digits string) string {
			n, _ := strconv.Atoi(digits) // it has at most nine
			return number(n)
		}) + ")"
	}
	if e.TokensFreed <= 0 {
		return line
	}
	line += fmt.Sprintf("; each request is %s tokens smaller", number(e.TokensFreed))
	if steps, ok := e.Details["pays_after_steps"].(int); ok && steps > 0 {
		line += ", which pays for it after " + plural(steps, "request")
	} else if ok {
		line += ", which pays at once"
	}
	return line
}

// troubles is an event.Sink for a command without a log: it prints what failed and why, each
// cause once, and which windows were learned.
type troubles struct {
	print func(e event.Event, line string)

	mu   sync.Mutex
	told map[string]bool
}

func newTroubles(say func(e event.Event, line string)) *troubles {
	return &troubles{print: say, told: map[string]bool{}}
}

// Emit implements event.Sink.
func (t *troubles) Emit(_ context.Context, e event.Event) {
	line := troubleLine(e)
	if line == "" {
		return
	}
	first := "" // the error that the others of the chain wrap, which name the conversation
	for err := e.Cause; err != nil; err = errors.Unwrap(err) {
		first = err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := string(e.Type) + " " + e.Err + " " + first
	if t.told[key] && e.Type != event.WindowLearned && e.Type != event.ModelAssumed {
		return
	}
	t.told[key] = true
	t.print(e, line)
}

// troubleLine describes what failed in one line; empty for all other events.
func troubleLine(e event.Event) string {
	cause := event.CauseText(e.Cause)
	switch {
	case e.Type == event.WindowLearned:
		window, _ := e.Details["window"].(int)
		line := fmt.Sprintf("the provider says that the window of %v is %s tokens", e.Details["model"], number(window))
		if instead, _ := e.Details["instead_of"].(int); instead > 0 {
			line += ", not " + number(instead)
		}
		return line + "; that is used from now on"
	case e.Type == event.ModelAssumed:
		window, _ := e.Details["window"].(int)
		return fmt.Sprintf("warning: the table of models does not know %v; its window of %s tokens and its prices are %v", e.Details["model"], number(window), e.Details["figures"])
	case cause == "" || e.Err == "canceled":
		return ""
	case e.Type == event.Failed:
		return "something failed (" + e.Err + "): " + cause
	case e.Type != event.RequestProxied || e.Err != "provider":
		return ""
	case e.Details["status"] == nil:
		return "the provider gave no answer: " + cause
	case e.Details["action"] == proxy.Compacted && e.Details["reason"] == "refused":
		return "the provider refused the smaller request too: " + cause
	case e.Details["status"] != http.StatusOK:
		return "the provider refused a request: " + cause
	}
	if _, said := errors.AsType[*llm.APIError](e.Cause); said {
		return "the provider ended its answer with an error: " + cause
	}
	return "the provider broke off its answer: " + cause
}

// deferredLines holds lines back while an agent draws on the same terminal.
type deferredLines struct {
	w           io.Writer
	hold, masks bool // masks says that secrets are masked

	mu    sync.Mutex
	lines []string
}

// sharesTerminal reports whether standard output and standard error are terminals.
func sharesTerminal(s Streams) bool {
	return isTerminalFile(s.Err) && isTerminalFile(underlyingWriter(s.Out))
}

func (h *deferredLines) print(_ event.Event, line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.masks {
		line = secret.Mask(line)
	}
	line = printable(line) // it names models
	if h.hold {
		h.lines = append(h.lines, line)
		return
	}
	fmt.Fprintln(h.w, "palimpsest: "+line)
}

// flush writes the lines that were held back, and holds back no more.
func (h *deferredLines) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines {
		fmt.Fprintln(h.w, "palimpsest: "+line)
	}
	h.lines, h.hold = nil, false
}
