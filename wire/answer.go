package wire

import (
	"errors"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Answer is what a model answered: read from a body in one piece, or as far as a
// stream has told it.
type Answer struct {
	// ID is the provider's name for the answer, and Model the model that gave it,
	// which may be a version of the one asked. Both may be empty.
	ID, Model string
	// Message is the answer with role assistant. Its frame is the element that
	// stands for it in later requests; there is none where the answer holds
	// nothing, or a call whose arguments broke off.
	Message thread.Message
	// Stop is why the model stopped; empty while a stream goes on. Reason is the
	// provider's own word for it.
	Stop   Stop
	Reason string
	// Usage is what the provider counted.
	Usage Usage
}

// Stop is why a model stopped.
type Stop string

// The reasons to stop. Every provider's own reasons are mapped to them.
const (
	StopEnd     Stop = "end"            // the answer is complete
	StopLength  Stop = "length"         // the limit on the output cut it off
	StopTool    Stop = "tool"           // it waits for the results of its calls
	StopRefusal Stop = "refusal"        // the model will not answer
	StopFilter  Stop = "content-filter" // the provider took the answer away
	StopContext Stop = "context"        // the context window was full
	StopOther   Stop = "other"          // a pause, or a reason unknown here
)

// Usage is what a provider counted, in tokens.
type Usage struct {
	// Input is the whole prompt: what was read from the cache and written to it
	// included, whichever way the provider counts.
	Input int
	// CacheRead and CacheWrite are the parts of Input that came from the prompt
	// cache and that were written to it.
	CacheRead, CacheWrite int
	// Output is the whole answer, reasoning included.
	Output int
	// Reasoning is the part of Output that was thinking, where the provider
	// tells.
	Reasoning int
	// Known is false when the provider sent no usage, or only zeros, as some
	// servers do; then the numbers mean nothing.
	Known bool
	// Mixed says that Input is not the size of the prompt as it was sent: tools
	// that the provider runs itself asked the model several times, or its own
	// compaction took something away.
	Mixed bool
}

// Answers reads the answers of one API. The codecs implement it.
type Answers interface {
	// DecodeAnswer reads an answer in one piece. The error wraps ErrAnswer.
	DecodeAnswer(body []byte) (Answer, error)
	// NewStream returns the reader of one streamed answer.
	NewStream() Stream
}

// Stream adds up one answer from the events of a stream. It is not safe for
// concurrent use.
type Stream interface {
	// Event takes the data of the next event, which is JSON or the word that ends
	// a stream. Events of unknown types change nothing. The error wraps ErrAnswer
	// and says that an event does not fit those before it.
	Event(data string) (Progress, error)
	// Answer is what came so far. The error wraps ErrAnswer: there is nothing of
	// an answer, or it cannot be read.
	Answer() (Answer, error)
}

// Progress is how a stream stands after an event.
type Progress struct {
	// Stop is why the model stopped; empty before it did. What Answer says counts:
	// it also looks at what was said.
	Stop Stop
	// Usage is what the provider has counted so far.
	Usage Usage
	// Done says that the answer ends here. Not every stream says so.
	Done bool
}

// ErrAnswer is wrapped by the errors of Answers and Stream: there is no answer of
// the API.
var ErrAnswer = errors.New("not an answer of this API")
