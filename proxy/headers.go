package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

func busyAnswer(r *http.Request) *http.Response {
	res := httpbody.NewAnswer(r, http.StatusServiceUnavailable, httpbody.JSON, errorBody(http.StatusServiceUnavailable, "overloaded_error", busyMessage))
	res.Header.Set("Retry-After", "1")
	forward(reasonBusy).setHeaders(res.Header)
	return res
}

const busyMessage = "too many large requests are at work: ask again"

// errorBody is an error of ours, in a form that the SDKs of all providers read.
func errorBody(status int, kind, message string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%s,"code":%d,"message":%s}}`, rawjson.Quote(kind), status, rawjson.Quote("palimpsest: "+message))
}

func refuseHere(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", httpbody.JSON)
	w.WriteHeader(status)
	io.WriteString(w, errorBody(status, kind, message))
}

// setHeaders writes into an answer what was done.
func (d decision) setHeaders(h http.Header) {
	set := func(name, value string) {
		if value != "" && value != "0" {
			h.Set(name, value)
		}
	}
	set(ActionHeader, d.action)
	set(ReasonHeader, d.reason)
	set(ThreadHeader, d.logID())
	set(BeforeHeader, strconv.Itoa(d.tokensBefore))
	set(SentHeader, strconv.Itoa(d.tokensSent))
}

// logID is the conversation's, as far as it is known.
func (d decision) logID() string {
	if d.step != nil {
		return d.step.logID
	}
	return d.failedLog
}

// Our own headers, which answers have. ThreadHeader may also be in a request.
const (
	// ThreadHeader is the conversation: in a request its name, in an answer the id of its log.
	ThreadHeader = "X-Palimpsest-Thread"
	// ActionHeader says what was done: one of the Action constants.
	ActionHeader = "X-Palimpsest-Action"
	// BeforeHeader and SentHeader are the tokens of the request, by our count: under the plan so far,
	// and as it was sent.
	BeforeHeader = "X-Palimpsest-Tokens-Before"
	SentHeader   = "X-Palimpsest-Tokens-Sent"
	// ReasonHeader says why a request passed as it came.
	ReasonHeader = "X-Palimpsest-Reason"
)

// The values of ActionHeader.
const (
	Passed    = "passed"    // the client's own bytes
	Planned   = "planned"   // under a plan that existed before
	Compacted = "compacted" // under a new plan
	Recovered = "recovered" // the provider refused it first
	Emulated  = "emulated"  // with native compaction done here
)
