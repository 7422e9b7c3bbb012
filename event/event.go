package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Event is one thing that happened. Only Type is always set; zero fields are unknown. Sinks
// must not change what an event points to.
type Event struct {
	Type Type `json:"event_type"`
	// Time is when it happened, or ended. Emit sets it when it is zero.
	Time     time.Time `json:"time"`
	ThreadID string    `json:"thread_id,omitempty"`
	TenantID string    `json:"tenant_id,omitempty"`
	Policy   string    `json:"policy,omitempty"`

	// TokensBefore and TokensAfter are the sizes of the whole request, BudgetLimit its
	// limit, in tokens. For a record of a plan they are the sizes of its messages.
	TokensBefore int `json:"tokens_before"`
	TokensAfter  int `json:"tokens_after"`
	BudgetLimit  int `json:"budget_limit"`

	// Strategy is who did it, Span to which messages, TokensFreed the gain in tokens,
	// negative if the request grew.
	Strategy    string       `json:"strategy,omitempty"`
	Span        *thread.Span `json:"span,omitempty"`
	TokensFreed int          `json:"tokens_freed"`

	// Duration is how long it took, up to Time. JSON has it in microseconds.
	Duration time.Duration `json:"duration_us,omitempty"`
	Cache    Cache         `json:"cache,omitempty"`
	// Err is the class of an error as ErrorClass finds it, never its text.
	Err string `json:"error_class,omitempty"`
	// Cause is that error, for a log of whoever runs the process: see CauseText. It is in
	// neither JSON nor Attrs, and nil in an event that was read back.
	Cause error `json:"-"`

	// Details are more ids, counts and names. Values are bools, numbers, time.Duration, and
	// texts or lists of texts without white space, of at most 128 bytes each; anything else
	// is replaced when the event is written.
	Details map[string]any `json:"details,omitempty"`
}

// OfRecord returns the event of a record of a plan, without its reason and summary, which
// may quote the conversation.
func OfRecord(r plan.Record) Event {
	span, made := r.Covers(), r.Made()
	e := Event{
		Strategy: made.Strategy, Span: &span,
		TokensBefore: made.TokensBefore, TokensAfter: made.TokensAfter, TokensFreed: made.Freed(),
	}
	switch r := r.(type) {
	case plan.Externalization:
		e.Type = Externalized
		e.Details = map[string]any{"artifact": r.ArtifactID}
	case plan.Summarization:
		e.Type = Summarized
		e.Details = map[string]any{"summary_tokens": r.SummaryTokens}
	case plan.Clearing:
		e.Type = Cleared
	case plan.Removal:
		e.Type = Dropped
	}
	return e
}

// ErrorClass returns a name for an error, without its text: "canceled", "deadline_exceeded",
// the result of its method Class() string, the first specific type in its chain, or "error".
// Errors of the stores in databases have the class "storage", those of a model's provider
// "provider". It is empty for nil.
func ErrorClass(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	}
	var classed interface {
		error
		Class() string
	}
	if errors.As(err, &classed) {
		if class := classed.Class(); isName(class) {
			return class
		}
	}
	if class := typeOf(err); class != "" {
		return class
	}
	return "error"
}

// typeOf returns the first type in the chain that is not only a generic wrapper.
func typeOf(err error) string {
	for e := range chain(err) {
		switch name := strings.TrimPrefix(fmt.Sprintf("%T", e), "*"); name {
		case "errors.errorString", "fmt.wrapError", "fmt.wrapErrors", "errors.joinError", "fmt.fmtError",
			"llm.AttemptsError": // it only lists what happened
		default:
			return name
		}
	}
	return ""
}

// maxName is the longest text, in bytes, that is written as it is: enough for ids and names
// of metrics and models, not for sentences.
const maxName = 128

func isName(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0x85 || r == 0xa0 || r >= 0x2000 && r <= 0x200a || r == 0x2028 || r == 0x2029 || r == 0x3000 || r == 0xfffd
	})
}

// name returns a text that may be written.
func name(s string) string {
	if isName(s) {
		return s
	}
	return fmt.Sprintf("[%d_bytes]", len(s))
}

// value returns what may be written of a detail.
func value(v any) any {
	switch v := v.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return v
	case float64:
		return number(v)
	case float32:
		return number(float64(v))
	case time.Duration:
		return v.String()
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case string:
		return name(v)
	case thread.ID:
		return name(string(v))
	case []string:
		return names(v)
	case []thread.ID:
		return names(v)
	case []any: // from a stored event
		out := make([]any, len(v))
		for i, one := range v {
			if _, deeper := one.([]any); deeper {
				out[i] = kind(one)
			} else {
				out[i] = value(one)
			}
		}
		return out
	}
	return kind(v)
}

// kind returns the type of a value that is not written.
func kind(v any) string { return "[" + strings.ReplaceAll(fmt.Sprintf("%T", v), " ", "") + "]" }

// number returns what JSON can represent.
func number(f float64) any {
	if f-f != 0 { // an infinity or NaN
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}

func names[S ~string](list []S) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = name(string(s))
	}
	return out
}

// fields is an Event without its methods. Names and order of its JSON do not change between versions.
type fields Event

// MarshalJSON writes the stable form: details sorted, the duration in microseconds, and no
// content.
func (e Event) MarshalJSON() ([]byte, error) {
	details := make(map[string]any, len(e.Details))
	for key, v := range e.Details {
		details[name(key)] = value(v)
	}
	e.Time, e.Duration, e.Details = e.Time.UTC(), e.Duration/time.Microsecond, details
	for _, text := range []*string{(*string)(&e.Type), &e.ThreadID, &e.TenantID, &e.Policy, &e.Strategy, (*string)(&e.Cache), &e.Err} {
		*text = name(*text)
	}
	return json.Marshal(fields(e))
}

// UnmarshalJSON reads what MarshalJSON wrote. It ignores fields of later versions; numbers in
// the details become float64.
func (e *Event) UnmarshalJSON(data []byte) error {
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	const most = math.MaxInt64 / time.Microsecond
	if f.Duration > most || f.Duration < -most {
		return fmt.Errorf("event: duration_us %d is out of range", int64(f.Duration))
	}
	f.Duration *= time.Microsecond
	*e = Event(f)
	return nil
}

// Attrs returns the event as flat attributes in a fixed order, without type, time, zero fields
// and content. Details are last, sorted, with the prefix "details.".
func (e Event) Attrs() []slog.Attr {
	var out []slog.Attr
	text := func(key, v string) {
		if v != "" {
			out = append(out, slog.String(key, name(v)))
		}
	}
	count := func(key string, v int) {
		if v != 0 {
			out = append(out, slog.Int(key, v))
		}
	}
	text("thread_id", e.ThreadID)
	text("tenant_id", e.TenantID)
	text("policy", e.Policy)
	count("tokens_before", e.TokensBefore)
	count("tokens_after", e.TokensAfter)
	count("budget_limit", e.BudgetLimit)
	text("strategy", e.Strategy)
	if e.Span != nil && e.Span.Len() > 0 {
		text("span.first", string(e.Span.First()))
		text("span.last", string(e.Span.Last()))
		out = append(out, slog.Int("span.messages", e.Span.Len()),
			slog.Int("span.first_turn", e.Span.FirstTurn), slog.Int("span.last_turn", e.Span.LastTurn))
	}
	count("tokens_freed", e.TokensFreed)
	if e.Duration != 0 {
		out = append(out, slog.Duration("duration", e.Duration))
	}
	text("cache", string(e.Cache))
	text("error_class", e.Err)
	for _, key := range slices.Sorted(maps.Keys(e.Details)) {
		out = append(out, slog.Any("details."+name(key), value(e.Details[key])))
	}
	return out
}
