package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// problemKind is what the problems of one kind share.
type problemKind struct {
	name   string
	status int
	title  string
}

// problemKinds is the table of all kinds with their HTTP status.
var problemKinds = []problemKind{
	{api.BadRequest, http.StatusBadRequest, "The request cannot be used"},
	{api.BadCursor, http.StatusBadRequest, "The cursor is not one of this list"},
	{api.TooDeep, http.StatusBadRequest, "The JSON is nested too deep"},
	{api.Unauthorized, http.StatusUnauthorized, "A key is needed"},
	{api.Forbidden, http.StatusForbidden, "Not allowed"},
	{api.NotFound, http.StatusNotFound, "There is no such thing"},
	{api.NotAllowed, http.StatusMethodNotAllowed, "The method does not fit the address"},
	{api.Exists, http.StatusConflict, "It exists already"},
	{api.Conflict, http.StatusConflict, "It was changed meanwhile"},
	{api.NothingToDo, http.StatusConflict, "There is nothing to do"},
	{api.Gone, http.StatusGone, "It has expired, or was erased"},
	{api.Stale, http.StatusPreconditionFailed, "The version is not the current one"},
	{api.TooLarge, http.StatusRequestEntityTooLarge, "It is too large"},
	{api.WrongType, http.StatusUnsupportedMediaType, "The body has the wrong type"},
	{api.OverBudget, http.StatusUnprocessableEntity, "The budget cannot be met"},
	{api.OverQuota, http.StatusInsufficientStorage, "The tenant keeps as much as it may"},
	{api.TooManyRequests, http.StatusTooManyRequests, "Too many requests"},
	{api.Internal, http.StatusInternalServerError, "Something broke in the daemon"},
	{api.Unavailable, http.StatusServiceUnavailable, "The daemon cannot answer now"},
}

// problem makes a problem of a kind, which the table must have. Its detail is formatted
// as by fmt.Sprintf.
func problem(kind, format string, args ...any) *api.Problem {
	for _, k := range problemKinds {
		if k.name == kind {
			return &api.Problem{Type: api.ProblemBase + k.name, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...)}
		}
	}
	panic("daemon: unknown kind of problem " + kind)
}

// problemAt is a problem with one field of the request, or one query parameter.
func problemAt(kind, path, format string, args ...any) *api.Problem {
	p := problem(kind, "%s: %s", path, fmt.Sprintf(format, args...))
	p.Path = path
	return p
}

// badField is a field or query parameter that cannot be used.
func badField(path, format string, args ...any) *api.Problem {
	return problemAt(api.BadRequest, path, format, args...)
}

// retryLater is a problem that passes: the caller should try again in a second.
func retryLater(kind, format string, args ...any) *api.Problem {
	p := problem(kind, format, args...)
	p.RetryAfter = 1
	return p
}

// errorProblems are the problems of errors that need no more than a fixed text. Where
// an error wraps several of them, the first one is told.
var errorProblems = []struct {
	is           error
	kind, detail string
}{
	{store.ErrUnavailable, api.Unavailable, "the daemon's store cannot be reached, or another process has locked it; try again. A write may have been made all the same: with the same If-Match, or ids, making it again changes nothing"},
	{store.ErrQuota, api.OverQuota, "the tenant's storage is full, and nothing was changed; delete threads that nobody needs, or have its quota raised (tenant-disk)"},
	{store.ErrErased, api.Gone, "the tenant's keys were erased: its data can no longer be read or written"},
	{keyring.ErrErased, api.Gone, "the tenant's keys were erased: its data can no longer be read or written"},
	{store.ErrName, api.BadRequest, "a name in the request cannot be stored: an id has at most 512 bytes, and no zero byte"},
	{store.ErrConflict, api.Conflict, "others kept writing to the thread; try again"},
	{thread.ErrDuplicateID, api.Exists, "a message with one of the ids is in the thread already, with other content or at another place; leave the ids out, or send new ones"},
	{thread.ErrUnknownID, api.NotFound, "what the request names does not exist here"},
	{store.ErrNotFound, api.NotFound, "what the request names does not exist here"},
	{artifact.ErrNotFound, api.NotFound, "what the request names does not exist here"},
	{artifact.ErrExpired, api.Gone, "the artifact has expired; its content cannot be read any more"},
	{artifact.ErrForbidden, api.Forbidden, "the artifact is more sensitive than the key may read"},
	{artifact.ErrTooLarge, api.TooLarge, "the content is over the store's limit for one artifact"},
	{policy.ErrMaxTokens, api.NothingToDo, "the answer is in the thread, but compacting would give the model no more room to answer: end the loop, or raise the limit on the output"},
	{policy.ErrNothing, api.NothingToDo, "there is nothing to compact: the thread stays as it is"},
	{policy.ErrOverBudget, api.OverBudget, "what must stay does not fit the budget; raise it"},
	{palimpsest.ErrNoRoom, api.OverBudget, "compacting harder made the request no smaller; sent again, it would be refused again"},
	{plan.ErrInvalid, api.Conflict, "the plan does not fit the thread as it is now; choose another version"},
	{context.DeadlineExceeded, api.Unavailable, "the request took too long, or the daemon is stopping; try again"},
	{context.Canceled, api.Unavailable, "the request took too long, or the daemon is stopping; try again"},
}

// problemOf is what an error means to the caller. The texts of errors that it does not
// know are for the log alone.
func problemOf(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	if wrong, ok := errors.AsType[*neutral.FieldError](err); ok {
		return badField(wrong.Path, "%s", wrong.Reason)
	}
	if stale, ok := errors.AsType[*palimpsest.VersionError](err); ok {
		return versionProblem(api.Stale, stale.Want, stale.Have)
	}
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return versionProblem(api.Conflict, conflict.Want, conflict.Have)
	}
	if errors.Is(err, wire.ErrFormat) {
		return problem(api.BadRequest, "body: %s", err)
	}
	if over, ok := errors.AsType[*policy.BudgetError](err); ok {
		return problem(api.OverBudget, "%s", budgetDetail(over))
	}
	if detail := brokenStore(err); detail != "" {
		return problem(api.Unavailable, "%s. Nothing was changed; whoever runs the daemon has to see to it", detail)
	}
	for _, e := range errorProblems {
		if errors.Is(err, e.is) {
			p := problem(e.kind, "%s", e.detail)
			if e.kind == api.Unavailable {
				p.RetryAfter = 1
			}
			return p
		}
	}
	return problem(api.Internal, "the daemon failed; its log has the cause under the id of this request")
}

// versionProblem is the problem of a write for another version than there is: Stale
// where the request named the version, else Conflict.
func versionProblem(kind string, want, have int) *api.Problem {
	p := problem(kind, "written for version %d, but it is at %d: read what came between, and try again", want, have)
	if kind == api.Stale {
		p = problem(kind, "If-Match names version %d, but it is at %d: read what came between, and send the request again with If-Match: \"%d\"", want, have, have)
	}
	p.Want, p.Have = &want, &have
	return p
}

func budgetDetail(over *policy.BudgetError) string {
	parts := make([]string, len(over.Parts))
	for i, part := range over.Parts {
		parts[i] = fmt.Sprintf("%s (%d tokens)", part.Name, part.Tokens)
	}
	return fmt.Sprintf("what must stay takes %d tokens, the budget is %d; raise it, or shorten: %s", over.Need, over.Budget, strings.Join(parts, ", "))
}

// answerError answers with what an error means to the caller.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	requestOf(r.Context()).setProblem(p, err)
	// A connection that ends while the request is still being sent is a network error to
	// the caller: one who should try again, or send less, must be able to read that.
	if p.RetryAfter > 0 || p.Kind() == api.TooLarge {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, s.config.Limits.Body))
	}
	if p.Kind() == api.OverQuota {
		s.metrics.refused.WithLabelValues("disk").Inc()
	}
	writeProblem(w, requestID(r.Context()), p)
}

func writeProblem(w http.ResponseWriter, requestID string, p *api.Problem) {
	answer := *p
	answer.Instance = requestID
	// They may quote the request, at any length.
	answer.Detail, answer.Path = clip.Short(p.Detail, 1200), clip.Short(p.Path, 400)
	data, _ := json.Marshal(answer) // a problem has only texts and numbers
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="palimpsest"`)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	w.WriteHeader(p.Status)
	w.Write(append(data, '\n'))
}
