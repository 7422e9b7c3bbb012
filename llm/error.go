package llm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is what went wrong. Each kind is an error, so that errors.Is(err, llm.ErrOverflow)
// works.
type Kind string

// The kinds of failure.
const (
	ErrOverflow    Kind = "context overflow"    // the request does not fit: make it smaller
	ErrOutput      Kind = "output limit"        // the answer that was asked for leaves no room: ask for a shorter one
	ErrPictures    Kind = "pictures"            // too many pictures, or too large ones: send fewer
	ErrBytes       Kind = "request bytes"       // the body is too large, whatever its tokens: send less
	ErrRateLimited Kind = "rate limited"        // too much in a short time: wait
	ErrOverloaded  Kind = "overloaded"          // the provider has no capacity: wait
	ErrServer      Kind = "server error"        // the provider failed
	ErrTimeout     Kind = "timeout"             // a deadline passed, here or there
	ErrConnection  Kind = "connection failed"   // no answer, or its rest, arrived
	ErrResponse    Kind = "unreadable response" // the answer is not what the API describes
	ErrAuth        Kind = "not authorized"      // the key is missing, wrong, or not enough
	ErrQuota       Kind = "quota exhausted"     // paid for no more: waiting does not help
	ErrInvalid     Kind = "invalid request"     // the provider does not take the request
	ErrNotFound    Kind = "not found"           // no such model or address
	ErrRefused     Kind = "refused"             // the model or a filter will not answer
	ErrTruncated   Kind = "answer cut off"      // the limit on the output was reached
	ErrCanceled    Kind = "canceled"            // the caller's context was canceled
)

// Error returns the kind in words.
func (k Kind) Error() string { return string(k) }

// Class is "provider", the class of all failures of this package in events.
func (Kind) Class() string { return "provider" }

// APIError is the failure of a request. It never contains a key.
type APIError struct {
	// Provider names the API: "anthropic", "openai", …
	Provider string
	// Kind is what went wrong; errors.Is compares with it.
	Kind Kind
	// Status is the HTTP status, 0 when there was no response.
	Status int
	// Code and Message are the provider's, or ours if it sent none.
	Code, Message string
	// RequestID is the provider's id of the request; it may be empty.
	RequestID string
	// RetryAfter is how long the provider asked to wait; 0 if it did not.
	RetryAfter time.Duration
	// NoRetry is set if the provider said that a retry is no use, whatever the kind.
	NoRetry bool
	// Err is the cause, such as context.Canceled; may be nil.
	Err error
}

// Error names the provider, the kind, and the other facts that are known.
func (e *APIError) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider + ": ")
	}
	b.WriteString(e.Kind.Error())
	var facts []string
	if e.Status != 0 {
		facts = append(facts, fmt.Sprintf("status %d", e.Status))
	}
	if e.Code != "" {
		facts = append(facts, e.Code)
	}
	if e.RequestID != "" {
		facts = append(facts, "request "+e.RequestID)
	}
	if e.RetryAfter > 0 {
		facts = append(facts, "retry after "+e.RetryAfter.String())
	}
	if len(facts) > 0 {
		b.WriteString(" (" + strings.Join(facts, ", ") + ")")
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// Is reports whether target is the kind of the error.
func (e *APIError) Is(target error) bool { return target == error(e.Kind) }

// Class is "provider", as that of Kind.
func (e *APIError) Class() string { return e.Kind.Class() }

// Quoted is what the provider wrote, which may quote the prompt; empty if nothing came from
// it. The words of Error that are in it do not belong in a log.
func (e *APIError) Quoted() string {
	if e.Status == 0 {
		return ""
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *APIError) Unwrap() error { return e.Err }

// Temporary reports whether the same request may succeed later.
func (e *APIError) Temporary() bool {
	switch e.Kind {
	case ErrRateLimited, ErrOverloaded, ErrServer, ErrTimeout, ErrConnection:
		return !e.NoRetry
	}
	return false
}

// IsOverflow reports whether a request failed because it does not fit into the model's context
// window, or is larger than the provider accepts.
func IsOverflow(err error) bool { return errors.Is(err, ErrOverflow) || errors.Is(err, ErrBytes) }
