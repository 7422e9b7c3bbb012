package otelsink

import (
	"log/slog"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/palimpsest-ai/palimpsest/event"
)

// The generative-AI conventions still move between versions: this file is the
// only one that knows theirs.

const operation = "compact_context"

var operationName = semconv.GenAIOperationNameKey.String(operation)

// conventional are the attributes of events that the conventions name.
var conventional = map[string]attribute.Key{
	"thread_id":        semconv.GenAIConversationIDKey,
	"error_class":      semconv.ErrorTypeKey,
	"details.model":    semconv.GenAIRequestModelKey,
	"details.provider": semconv.GenAIProviderNameKey,
}

const (
	prefix     = "palimpsest."
	keyOutcome = attribute.Key(prefix + "outcome")
)

// attributes gives all attributes of an event.
func attributes(e event.Event) []attribute.KeyValue {
	attrs := e.Attrs()
	out := make([]attribute.KeyValue, len(attrs))
	for i, a := range attrs {
		out[i] = convert(a)
	}
	return out
}

// few gives the labels of a figure. What an event does not have is left out.
func few(m *event.Metric, labels []string) []attribute.KeyValue {
	var out []attribute.KeyValue
	for i, value := range labels {
		if value != "" {
			out = append(out, convert(slog.String(m.Labels[i], value)))
		}
	}
	return out
}

func convert(a slog.Attr) attribute.KeyValue {
	key, ok := conventional[a.Key]
	if !ok {
		key = attribute.Key(prefix + a.Key)
	}
	switch v := a.Value; v.Kind() {
	case slog.KindBool:
		return key.Bool(v.Bool())
	case slog.KindInt64:
		return key.Int64(v.Int64())
	case slog.KindUint64:
		return key.String(strconv.FormatUint(v.Uint64(), 10)) // OpenTelemetry has no unsigned numbers
	case slog.KindFloat64:
		return key.Float64(v.Float64())
	case slog.KindDuration:
		return key.Float64(v.Duration().Seconds())
	default:
		return key.String(v.String())
	}
}
