package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// received is a request as it was read. It does not change: what a stage finds out it hands on, the
// decision above all.
type received struct {
	request       *http.Request // without our headers
	endpoint      endpoint
	thread        string           // as the client names its conversation; empty if it does not
	body          *identify.Body   // as it came, compressed if it was
	plain         identify.Similar // decompressed, and compared with the step before
	decompressErr error            // why there is no plain body
	work          int              // about how much memory it takes to make something of plain, in bytes (see workBytes)
	start         time.Time
	held          *heldHistory // the history that the request does not hold; nil if it has its own
	rewritten     bool         // body is not the client's
	// What the client asks of its provider beside an answer, and is done here (package emulate):
	edited      bool // its own edits have made the request smaller, which had bytesBefore
	bytesBefore int
	managed     bool // it waits for compactions, from threshold tokens on; 0 is as the policy has it
	threshold   int
}

// decision is what goes to the provider, and why.
type decision struct {
	action, reason           string         // the values of ActionHeader and ReasonHeader
	failed                   error          // why the provider gave no answer of the model's; nil if it did
	parsed                   *parsedRequest // nil if the body was not decoded
	step                     *step          // nil if the conversation was not looked up, or that failed
	failedLog                string         // of a conversation where our own part failed; else empty
	body                     []byte         // empty for the client's own
	retry                    retryKind      // why it is sent again
	tokensBefore, tokensSent int            // 0 if not counted
}

func forward(reason string) decision { return decision{action: Passed, reason: reason} }

// The reasons that code depends on.
const (
	reasonBelowMark   = "below-mark"
	reasonBusy        = "busy"
	reasonCompacting  = "compacting"        // a compaction is under way, and the request stopped waiting for it
	reasonFailed      = "compaction-failed" // one was due
	reasonFault       = "fault"
	reasonNative      = "native"
	reasonNoAnswer    = "no-answer"         // the provider cannot be reached
	reasonNoRoom      = "no-room"           // nothing smaller can be made
	reasonNoReasoning = "without-reasoning" // what the model reasoned was taken out of the client's own
	reasonRefused     = "refused"           // the provider refused what was made here
	reasonStopping    = "stopping"          // the process is to end
	reasonTooLarge    = "too-large"         // to be looked at
	reasonWebSocket   = "websocket"         // to an API that has none here
)

// step is a request whose conversation is known. Each further request for the same answer
// has a step of its own.
type step struct {
	logID                       string
	session                     *palimpsest.Session
	input                       palimpsest.Step
	parsed                      *parsedRequest
	canOfferTools, toolsOffered bool // the model may be offered our tools, and was
	// openLookups are the lookups of an interrupted try, at the end of the log.
	openLookups []*thread.Message
	// earlierLogs are the logs that the conversation continues.
	earlierLogs []string
	// prepared is the last rendering; nil before the first.
	prepared *palimpsest.Prepared
	// planBefore is the version of the plan that was in force before the step.
	planBefore int
	// countsWhole says that without a plan results which the client has cleared count whole.
	countsWhole bool
}

// parsedRequest is a request whose body was decoded.
type parsedRequest struct {
	*identify.Request
	kind           identify.Kind
	client         identify.Client
	model          token.Model
	base           string // the id of its conversation, before any fork
	bytes          int    // with its whole conversation
	retriesRefused bool   // it asks another model what one refused
	// isSummary says that the client asks for a summary of its own history. The conversation
	// does not continue with this question.
	isSummary bool
}

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
