// Package exchange is shared by the clients of models: one POST with retries, limits on the
// answer, and errors that say what happened without showing a key.
package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// DefaultLimit is the largest answer that is read, in bytes: twice the largest
// request that Anthropic takes.
const DefaultLimit = 64 << 20

// errorLimit is how much of an error's body is read, in bytes.
const errorLimit = 128 << 10

// Client sends requests to one address. It is safe for concurrent use.
type Client struct {
	provider string
	url      string
	http     *http.Client
	header   func() http.Header // a function, so that printing a client shows no key
	redact   *strings.Replacer
	retry    retry.Policy
	limit    int64
}

// Config says where and how to send. HTTP, Retry and Limit are optional.
type Config struct {
	Provider string
	URL      string
	// HTTP sends the requests; nil stands for a client with the default
	// transport. Redirects are never followed: they would carry keys elsewhere.
	HTTP *http.Client
	// Header is sent with every request. Values that may be credentials are removed from
	// all error messages.
	Header http.Header
	Retry  llm.Retry
	Limit  int64 // bytes of an answer; 0 stands for DefaultLimit
}

// New returns a client. The error says what is wrong with the address, without secrets that it
// may hold.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%s: the base URL must be an absolute http or https address", c.Provider)
	}
	client := &Client{provider: c.Provider, url: c.URL, header: func() http.Header { return c.Header }, retry: retry.Policy(c.Retry), limit: cmp.Or(max(0, c.Limit), DefaultLimit)}
	hc := *cmp.Or(c.HTTP, &http.Client{})
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.http = &hc

	var pairs []string
	password, _ := u.User.Password()
	for _, s := range append(secrets(c.Header), password) {
		if s = strings.TrimPrefix(s, bearer); len(s) >= minSecretLength {
			pairs = append(pairs, s, "[key]")
		}
	}
	client.redact = strings.NewReplacer(pairs...)
	return client, nil
}

// minSecretLength is the length of the shortest key worth hiding, in bytes. Local servers accept
// any word ("none", "ollama"), which may be in a message for other reasons.
const minSecretLength = 8

// Response is an answer with a status below 300.
type Response struct {
	// Body is the answer, up to the limit.
	Body      io.Reader
	Status    int
	RequestID string
}

// Read reads an answer. An error that is no *llm.APIError counts as a broken connection.
type Read func(*Response) error

// Post sends a body, with retries, until read succeeds. The error is an *llm.APIError. timeout
// bounds the whole call; see llm.Options.
func (c *Client) Post(ctx context.Context, timeout time.Duration, body string, read Read) error {
	timeout = cmp.Or(timeout, llm.DefaultTimeout)
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err := c.retry.Do(ctx, func(ctx context.Context) error {
		return c.sendOnce(ctx, body, read)
	})
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		// The context ended while waiting for the next try.
		return &llm.APIError{
			Provider: c.provider, Kind: endKind(cause), Err: errors.Join(cause, err),
			Message: "gave up waiting after " + err.Error(),
		}
	}
	return err
}

func (c *Client) sendOnce(ctx context.Context, body string, read Read) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return c.connectionError(ctx, nil, err)
	}
	req.Header.Set("Content-Type", "application/json")
	maps.Copy(req.Header, c.header())
	res, err := c.http.Do(req)
	if err != nil {
		return c.connectionError(ctx, nil, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return c.statusError(ctx, res)
	}
	err = read(&Response{Body: http.MaxBytesReader(nil, res.Body, c.limit), Status: res.StatusCode, RequestID: requestID(res.Header)})
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*llm.APIError](err)
	if !ok {
		return c.connectionError(ctx, res, err)
	}
	c.addHeaders(e, res)
	return e
}

func (c *Client) statusError(ctx context.Context, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, errorLimit))
	if err != nil && ctx.Err() != nil {
		return c.connectionError(ctx, res, err)
	}
	e := llm.Failure(c.provider, res.StatusCode, body)
	if res.StatusCode < 400 && e == nil {
		e = &llm.APIError{Kind: llm.ErrResponse, Message: "redirected; set the base URL to where the API is"}
	}
	id := gjson.GetBytes(body, "request_id").Str // Anthropic's, in case a gateway removed the header
	e.RequestID = cmp.Or(e.RequestID, id[:min(len(id), maxID)])
	c.addHeaders(e, res)
	return e
}

// addHeaders adds the facts in the response's headers to an error.
func (c *Client) addHeaders(e *llm.APIError, res *http.Response) {
	e.Provider = c.provider
	e.Status = cmp.Or(e.Status, res.StatusCode)
	e.RequestID = cmp.Or(requestID(res.Header), e.RequestID)
	e.RetryAfter = retry.RetryAfter(res.Header, c.now())
	// The providers' own SDKs obey this header too.
	e.NoRetry = strings.EqualFold(res.Header.Get("X-Should-Retry"), "false")
	c.redactError(e)
}

// connectionError returns the error for an answer that did not arrive, or not completely.
func (c *Client) connectionError(ctx context.Context, res *http.Response, err error) error {
	e := &llm.APIError{Provider: c.provider, Kind: llm.ErrConnection}
	if res != nil {
		e.Status, e.RequestID = res.StatusCode, requestID(res.Header)
	}
	var timeout net.Error
	var large *http.MaxBytesError
	switch cause := ctx.Err(); {
	case cause != nil:
		e.Kind, e.Err = endKind(cause), cause
		e.Message = cause.Error()
	case errors.As(err, &large):
		e.Kind, e.Message = llm.ErrResponse, fmt.Sprintf("the answer is too large: more than %d bytes", large.Limit)
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Kind, e.Message = llm.ErrTimeout, withoutURL(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Message = "the connection ended before the answer was complete"
	default:
		e.Message = withoutURL(err)
	}
	c.redactError(e)
	return e
}

// withoutURL leaves out the address, which may hold a key.
func withoutURL(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}

func (c *Client) redactError(e *llm.APIError) {
	for _, s := range []*string{&e.Message, &e.Code, &e.RequestID} {
		*s = c.redact.Replace(*s)
	}
}

func (c *Client) now() time.Time {
	if c.retry.Now != nil {
		return c.retry.Now()
	}
	return time.Now()
}

func endKind(cause error) llm.Kind {
	if errors.Is(cause, context.DeadlineExceeded) {
		return llm.ErrTimeout
	}
	return llm.ErrCanceled
}
