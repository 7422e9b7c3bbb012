package api

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is the body of every answer that is not a success (RFC 9457). As an
// error it can be found with errors.As.
type Problem struct {
	// Type names the kind of problem: the address of its description, whose
	// fragment is what Kind returns. Callers branch on it.
	Type string `json:"type"`
	// Title says what the type means.
	Title string `json:"title"`
	// Status is the HTTP status.
	Status int `json:"status"`
	// Detail says what is wrong with this request and what to do.
	Detail string `json:"detail"`
	// Instance is the id of the request, as it stands in the daemon's logs.
	Instance string `json:"instance,omitempty"`
	// Path is the field or query parameter that the problem is about, as a JSON path.
	Path string `json:"path,omitempty"`
	// Want and Have are the version that the request named and the current one, where they
	// differ.
	Want *int `json:"want,omitempty"`
	Have *int `json:"have,omitempty"`
	// RetryAfter is how long to wait before trying again, in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
}

// The kinds of problems, as Problem.Kind returns them.
const (
	BadRequest      = "bad-request"
	BadCursor       = "bad-cursor"
	TooDeep         = "too-deep"
	TooLarge        = "too-large"
	WrongType       = "wrong-media-type"
	Unauthorized    = "unauthorized"
	Forbidden       = "forbidden"
	NotFound        = "not-found"
	NotAllowed      = "method-not-allowed"
	Exists          = "exists"
	Conflict        = "version-conflict"
	Stale           = "stale-version"
	Gone            = "expired"
	OverBudget      = "over-budget"
	OverQuota       = "over-quota"
	NothingToDo     = "nothing-to-do"
	TooManyRequests = "too-many-requests"
	Unavailable     = "unavailable"
	Internal        = "internal"
)

// ProblemBase is where the types of problems are described; followed by a kind it is
// Problem.Type.
const ProblemBase = "https://github.com/palimpsest-ai/palimpsest/blob/main/docs/operations.md#"

// Kind is the fragment of the type, one of the constants above.
func (p *Problem) Kind() string {
	if _, kind, ok := strings.Cut(p.Type, "#"); ok {
		return kind
	}
	return p.Type
}

// Error is the status, the title, the detail, and the id of the request.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail)
	if p.Instance != "" {
		text += " (request " + p.Instance + ")"
	}
	return text
}

// IsKind reports whether the error is a Problem of that kind.
func IsKind(err error, kind string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Kind() == kind
}
