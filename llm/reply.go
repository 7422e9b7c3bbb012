package llm

import (
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Reply is a model's answer.
type Reply struct {
	// Message is the answer with role assistant: reasoning, text and tool calls, each with
	// its original bytes, ready to be appended to a thread. A structured answer is a text
	// part, however the provider was asked for it.
	Message thread.Message
	// Text is the text of the message.
	Text string
	// JSON is the structured answer: a valid JSON object with the members that the schema
	// requires, not checked further. It is empty without a Schema, and if Stop is not
	// wire.StopEnd.
	JSON string
	// Stop is why the model stopped.
	Stop wire.Stop
	// Usage is what the provider counted.
	Usage wire.Usage
	// RequestID is the provider's id of the request, for its support; it may be empty.
	RequestID string
	// Model is the model that answered, which may be a version of the one asked.
	Model string
	// Attempts are the models that were asked, if the generator has several: first those
	// that failed, last the one that gave this reply.
	Attempts []Attempt
	// Cached means that the answer was known and no model was asked (see Answers).
	Cached bool
}

// Err returns an error if the model gave no complete answer, and nil for wire.StopEnd and
// wire.StopTool.
// Its kind is ErrRefused, ErrOverflow, ErrTruncated or ErrResponse.
func (r *Reply) Err() error {
	e := &APIError{RequestID: r.RequestID, Message: "the model stopped: " + string(r.Stop)}
	switch r.Stop {
	case wire.StopRefusal, wire.StopFilter:
		e.Kind = ErrRefused
	case wire.StopContext:
		e.Kind = ErrOverflow
	case wire.StopLength:
		e.Kind = ErrTruncated
	case wire.StopOther:
		e.Kind = ErrResponse
	default:
		return nil
	}
	return e
}
