package native

import (
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Refusal is the documented answer, of status 400 or 404, to a request that its provider would refuse.
// It is an error.
type Refusal struct {
	// API is the name of the API in package wire.
	API string
	// Param is the member that is wrong, in the Responses API. The messages of the other begin
	// with it.
	Param string
	// Code is the provider's code, such as "compaction_block_misplaced"; empty for none.
	Code    string
	Message string

	notFound bool   // it has status 404
	details  string // members behind the code, in the Messages API
}

// Status is that of the answer.
func (r *Refusal) Status() int {
	if r.notFound {
		return 404
	}
	return 400
}

// Error says what is wrong, and where.
func (r *Refusal) Error() string {
	if r.Param != "" {
		return r.Param + ": " + r.Message
	}
	return r.Message
}

// Body is the refusal as the API writes it.
func (r *Refusal) Body() string {
	if r.API == wire.Anthropic {
		kind := "invalid_request_error"
		if r.notFound {
			kind = "not_found_error"
		}
		return messagesError(kind, r.Message, r.Code, r.details)
	}
	orNull := func(s string) string {
		if s == "" {
			return "null"
		}
		return rawjson.Quote(s)
	}
	return `{"error":{"message":` + rawjson.Quote(r.Message) + `,"type":"invalid_request_error","param":` + orNull(r.Param) + `,"code":` + orNull(r.Code) + `}}`
}

// Unavailable is the body of the documented answer, of status 529, to a request for a summary
// that cannot be made now: the client keeps its history and asks again.
func Unavailable() string {
	return messagesError("overloaded_error", "no summary can be made now: ask again", "compaction_unavailable", "")
}

// messagesError is an error as the Messages API writes it.
func messagesError(kind, message, code, more string) string {
	details := ""
	if code != "" {
		details = `,"details":{"error_code":` + rawjson.Quote(code) + more + `}`
	}
	return `{"type":"error","error":{"type":"` + kind + `","message":` + rawjson.Quote(message) + details + `}}`
}

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{API: wire.Anthropic, Code: code, Message: fmt.Sprintf(format, args...)}
}

func refuseParam(param, code, message string) *Refusal {
	return &Refusal{API: wire.Responses, Param: param, Code: code, Message: message}
}

// The refusals on which clients send their history themselves.

// ResponseNotFound says that the response which a request continues is not known.
func ResponseNotFound(id string) *Refusal {
	return refuseParam("previous_response_id", "previous_response_not_found", "Previous response with id '"+id+"' not found.")
}

// ThreadNotFound says so of a message thread.
func ThreadNotFound() *Refusal {
	r := refuse("thread_not_found", "the history of the thread is not known here, and does not fit the context window any more: send the messages themselves")
	r.notFound = true
	return r
}

// ThreadUnsupported says that a message thread is not compacted.
func ThreadUnsupported() *Refusal {
	r := refuse("thread_unsupported_request", "threads and context management do not go together here: send the messages themselves")
	r.details = `,"unsupported":["context_management"]`
	return r
}
