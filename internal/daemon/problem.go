package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// problemKind is what all problems of a kind have in common.
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
	{api.Gone, http.StatusGone, "It has expired"},
	{api.Stale, http.StatusPreconditionFailed, "The version is not the current one"},
	{api.TooLarge, http.StatusRequestEntityTooLarge, "It is too large"},
	{api.WrongType, http.StatusUnsupportedMediaType, "The body has the wrong type"},
	{api.OverBudget, http.StatusUnprocessableEntity, "The budget cannot be met"},
	{api.OverQuota, http.StatusInsufficientStorage, "The tenant keeps as much as it may"},
	{api.TooManyRequests, http.StatusTooManyRequests, "Too many requests"},
	{api.Internal, http.StatusInternalServerError, "Something broke in the daemon"},
	{api.Unavailable, http.StatusServiceUnavailable, "The daemon cannot answer now"},
}

// problem makes a problem of a kind. It panics for a kind that the table does not
// know.
func problem(name, detail string) *api.Problem {
	for _, k := range problemKinds {
		if k.name == name {
			return &api.Problem{Type: api.ProblemBase + k.name, Title: k.title, Status: k.status, Detail: detail}
		}
	}
	panic("daemon: unknown kind of problem " + name)
}

// atPath sets the place in the request that the problem is about.
func atPath(path string, p *api.Problem) *api.Problem {
	p.Path = path
	return p
}

// problemOf says what an error means to whoever asked. Errors that it does not
// know are ours: their text is for the log.
func problemOf(err error) *api.Problem {
	var ready *api.Problem
	var wrong *neutral.FieldError
	var conflict *store.ConflictError
	var stale *palimpsest.VersionError
	var limited *artifact.LimitError
	var over *palimpsest.BudgetError
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &wrong):
		return atPath(wrong.Path, problem(api.BadRequest, wrong.Error()))
	case errors.As(err, &stale):
		return versionProblem(true, stale.Want, stale.Have)
	case errors.As(err, &conflict):
		return versionProblem(false, conflict.Want, conflict.Have)
	case errors.Is(err, store.ErrUnavailable):
		return problem(api.Unavailable, "the daemon's store cannot be reached; try again. A write may have been made all the same: with the same If-Match, or ids, making it again changes nothing")
	case errors.Is(err, store.ErrQuota):
		return problem(api.OverQuota, "the tenant keeps as much as it may, and nothing was changed; delete threads that nobody needs, or have its quota raised (tenant-disk)")
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrGone), errors.Is(err, store.ErrSealed), errors.Is(err, keyring.ErrNoMaster):
		return problem(api.Unavailable, unreadyDetail(err)+". Nothing was changed; whoever runs the daemon has to see to it")
	case errors.Is(err, store.ErrName):
		return problem(api.BadRequest, "a name in the request cannot be stored: an id has at most 512 bytes, and no zero byte")
	case errors.Is(err, store.ErrConflict):
		return problem(api.Conflict, "others kept writing to the thread; try again")
	case errors.Is(err, wire.ErrFormat):
		return problem(api.BadRequest, "body: "+err.Error())
	case errors.Is(err, thread.ErrDuplicateID):
		return problem(api.Exists, "a message with one of the ids is in the thread already, and says something else or stands elsewhere; leave the ids out, or bring new ones")
	case errors.Is(err, thread.ErrUnknownID), errors.Is(err, store.ErrNotFound), errors.Is(err, artifact.ErrNotFound):
		return problem(api.NotFound, "what the request names does not exist here")
	case errors.Is(err, artifact.ErrExpired):
		return problem(api.Gone, "the artifact's time to live is over; its content cannot be read any more")
	case errors.Is(err, artifact.ErrForbidden):
		return problem(api.Forbidden, "the artifact is more sensitive than the key may read")
	case errors.As(err, &limited):
		p := problem(api.TooManyRequests, "the key has read as many artifacts as it may for now")
		p.RetryAfter = max(1, int(math.Ceil(limited.RetryAfter.Seconds())))
		return p
	case errors.Is(err, artifact.ErrTooLarge):
		return problem(api.TooLarge, "the content is over the store's limit for one artifact")
	case errors.Is(err, palimpsest.ErrMaxTokens):
		return problem(api.NothingToDo, "the answer is in the thread, but compacting would give the model no more room to answer: end the loop, or raise the limit on the output")
	case errors.Is(err, policy.ErrNothing):
		return problem(api.NothingToDo, "there is nothing to compact: the thread stays as it is")
	case errors.As(err, &over):
		return problem(api.OverBudget, budgetDetail(over))
	case errors.Is(err, palimpsest.ErrNoRoom):
		return problem(api.OverBudget, "compacting harder gave no smaller request; to send it again would only be refused again")
	case errors.Is(err, plan.ErrInvalid):
		return problem(api.Conflict, "the plan does not hold for the thread as it is now; choose another version")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem(api.Unavailable, "the request took too long, or the daemon is stopping; try again")
	}
	return problem(api.Internal, "nothing was changed that the request did not get an answer for; the daemon's log has the cause under the id of this request")
}

// versionProblem is the problem of a write for another version than the one there is:
// stale where the request named it, else a conflict.
func versionProblem(named bool, want, have int) *api.Problem {
	name, detail := api.Conflict, fmt.Sprintf("written for version %d, but it is at %d: read what came between, and try again", want, have)
	if named {
		name, detail = api.Stale, fmt.Sprintf("If-Match names version %d, but it is at %d: read what came between, and send the request again with If-Match: \"%d\"", want, have, have)
	}
	p := problem(name, detail)
	p.Want, p.Have = &want, &have
	return p
}

func budgetDetail(over *palimpsest.BudgetError) string {
	text := fmt.Sprintf("what must stay takes %d tokens, the budget is %d; raise it, or shorten:", over.Need, over.Budget)
	for i, part := range over.Parts {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s (%d tokens)", part.Name, part.Tokens)
	}
	return text
}

// writeProblem answers with the problem.
func writeProblem(w http.ResponseWriter, requestID string, p *api.Problem) {
	answer := *p
	answer.Instance = requestID
	// What they quote of a request may be as long as the request.
	answer.Detail, answer.Path = clip.Short(p.Detail, 1200), clip.Short(p.Path, 400)
	data, err := json.Marshal(answer)
	if err != nil { // unreachable: a problem has only texts and numbers
		data = []byte(`{}`)
	}
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
