package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Client talks to a daemon. It is safe for concurrent use and never repeats a request by
// itself. Errors of the daemon are *Problem.
type Client struct {
	base   string // without a slash at its end
	key    string
	client *http.Client
}

// Options tune a Client; nil or the zero value holds the defaults.
type Options struct {
	// Key is the bearer key; empty sends none.
	Key string
	// HTTP makes the requests. Nil is http.DefaultClient.
	HTTP *http.Client
}

// Any in place of a version makes a call whatever the current version is.
const Any = -1

// NewClient returns a client of the daemon at an address such as
// http://127.0.0.1:7433.
func NewClient(address string, o *Options) (*Client, error) {
	o = cmp.Or(o, &Options{})
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("api.NewClient(%q): want an address such as http://127.0.0.1:7433", address)
	}
	return &Client{base: strings.TrimSuffix(base.String(), "/"), key: o.Key, client: cmp.Or(o.HTTP, http.DefaultClient)}, nil
}

// CreateThread creates a thread. One that exists is a Problem of kind Exists.
func (c *Client) CreateThread(ctx context.Context, q NewThread) (*Thread, error) {
	return call[Thread](ctx, c, "POST", c.address(nil), Any, q)
}

// Threads returns a page of at most limit threads, which begins at cursor. 0 and ""
// stand for the daemon's limit and the first page.
func (c *Client) Threads(ctx context.Context, cursor string, limit int) (*Threads, error) {
	return call[Threads](ctx, c, "GET", c.address(pageQuery(cursor, limit)), Any, nil)
}

// Thread returns what is known of a thread.
func (c *Client) Thread(ctx context.Context, threadID string) (*Thread, error) {
	return call[Thread](ctx, c, "GET", c.address(nil, threadID), Any, nil)
}

// DeleteThread deletes a thread for good. It needs a key with the right admin.
func (c *Client) DeleteThread(ctx context.Context, threadID string) error {
	_, err := c.text(ctx, "DELETE", c.address(nil, threadID))
	return err
}

// Log returns a page of a thread's messages.
func (c *Client) Log(ctx context.Context, threadID, cursor string, limit int) (*Log, error) {
	return call[Log](ctx, c, "GET", c.address(pageQuery(cursor, limit), threadID, "messages"), Any, nil)
}

// Append adds messages to a log that has version messages, or to its end (Any).
// Messages that are there already are skipped; a log that has grown otherwise is a
// Problem of kind Stale.
func (c *Client) Append(ctx context.Context, threadID string, version int, q Append) (*Appended, error) {
	return call[Appended](ctx, c, "POST", c.address(nil, threadID, "messages"), version, q)
}

// Prepare adds what is new and returns the request to send to the model.
func (c *Client) Prepare(ctx context.Context, threadID string, version int, q Step) (*Prepared, error) {
	return call[Prepared](ctx, c, "POST", c.address(nil, threadID, "prepare"), version, q)
}

// Finish adds the model's answer.
func (c *Client) Finish(ctx context.Context, threadID string, version int, q Answer) (*Appended, error) {
	return call[Appended](ctx, c, "POST", c.address(nil, threadID, "finish"), version, q)
}

// Answer answers a call of one of the tools that the daemon offers in prompts. The
// result is a message for the next step. A call of any other tool is a Problem of
// kind NotFound.
func (c *Client) Answer(ctx context.Context, threadID string, toolCall neutral.Part) (*neutral.Message, error) {
	return call[neutral.Message](ctx, c, "POST", c.address(nil, threadID, "answer"), Any, toolCall)
}

// Overflowed compacts harder, or takes out what it was refused for, after the provider refused
// the prompt of the step for its size. The step must bring no messages: they are in the log already. A Problem of kind OverBudget says that no smaller one would help.
func (c *Client) Overflowed(ctx context.Context, threadID string, q Step) (*Prepared, error) {
	return call[Prepared](ctx, c, "POST", c.address(nil, threadID, "overflowed"), Any, q)
}

// CutOff adds an answer that ended at the limit on the output, and returns the
// request to go on with. A Problem of kind NothingToDo says that compacting would
// not help: the loop ends.
func (c *Client) CutOff(ctx context.Context, threadID string, version int, q CutOff) (*Prepared, error) {
	return call[Prepared](ctx, c, "POST", c.address(nil, threadID, "cut-off"), version, q)
}

// Remember adds entries to the memory block of the thread. planVersion is the
// version of the plans that must be in force, or Any.
func (c *Client) Remember(ctx context.Context, threadID string, planVersion int, entries ...string) (*Plan, error) {
	return call[Plan](ctx, c, "POST", c.address(nil, threadID, "memory"), planVersion, Remember{Entries: entries})
}

// Outcome says how the task of the thread ended, and returns how the thread did under
// compaction. An empty outcome only asks.
func (c *Client) Outcome(ctx context.Context, threadID string, task thread.Outcome) (*quality.Metrics, error) {
	return call[quality.Metrics](ctx, c, "POST", c.address(nil, threadID, "outcome"), Any, quality.Outcome{Task: task})
}

// Compact compacts now, if the plan in force still has the version, or in any
// case (Any). A Problem of kind NothingToDo says that there was nothing to
// compact.
func (c *Client) Compact(ctx context.Context, threadID string, planVersion int, q Compact) (*Plan, error) {
	return call[Plan](ctx, c, "POST", c.address(nil, threadID, "compact"), planVersion, q)
}

// View returns the thread for display, under a version of the plans or the one in force
// (Any). It holds no texts; see Text.
func (c *Client) View(ctx context.Context, threadID string, planVersion int) (*view.View, error) {
	return call[view.View](ctx, c, "GET", c.address(query("plan", numberUnless(Any, planVersion)), threadID, "view"), Any, nil)
}

// Text reads what a message of the log says.
func (c *Client) Text(ctx context.Context, threadID, messageID string) (string, error) {
	return c.text(ctx, "GET", c.address(url.Values{"message": {messageID}}, threadID, "text"))
}

// Preview returns the thread for display under the plan that Compact would make.
func (c *Client) Preview(ctx context.Context, threadID string, q Compact) (*view.View, error) {
	return call[view.View](ctx, c, "POST", c.address(nil, threadID, "preview"), Any, q)
}

// Pin keeps a message as it was said, in the plan in force and all later ones, or
// releases it. planVersion is as in Undo.
func (c *Client) Pin(ctx context.Context, threadID string, planVersion int, q view.Pin) (*Plan, error) {
	return call[Plan](ctx, c, "POST", c.address(nil, threadID, "pin"), planVersion, q)
}

// Sessions lists the sessions that agents left on the daemon's machine.
func (c *Client) Sessions(ctx context.Context) (*view.Sessions, error) {
	return call[view.Sessions](ctx, c, "GET", c.base+SessionsRoot, Any, nil)
}

// SessionView returns a session for display under the plan that compact would make of
// it.
func (c *Client) SessionView(ctx context.Context, id string, q Compact) (*view.View, error) {
	return call[view.View](ctx, c, "POST", c.base+SessionsRoot+"/"+url.PathEscape(id)+"/view", Any, q)
}

// DryRun returns the plan that Compact would make.
func (c *Client) DryRun(ctx context.Context, threadID string, q Step) (*Plan, error) {
	return call[Plan](ctx, c, "POST", c.address(nil, threadID, "dry-run"), Any, q)
}

// Plans returns a page of the thread's plans.
func (c *Client) Plans(ctx context.Context, threadID, cursor string, limit int) (*Plans, error) {
	return call[Plans](ctx, c, "GET", c.address(pageQuery(cursor, limit), threadID, "plans"), Any, nil)
}

// Plan returns one version of the plans, or the one in force (Any).
func (c *Client) Plan(ctx context.Context, threadID string, version int) (*Plan, error) {
	name := "current"
	if version != Any {
		name = strconv.Itoa(version)
	}
	return call[Plan](ctx, c, "GET", c.address(nil, threadID, "plans", name), Any, nil)
}

// Diff lists the messages that two plans treat differently; 0 is no plan, Any as
// the second the one in force.
func (c *Client) Diff(ctx context.Context, threadID string, from, to int) (*Diff, error) {
	return call[Diff](ctx, c, "GET", c.address(query("from", strconv.Itoa(from), "to", numberUnless(Any, to)), threadID, "diff"), Any, nil)
}

// Undo puts version n of the plans back in force; 0 is no plan. planVersion is the
// version that must be in force, or Any.
func (c *Client) Undo(ctx context.Context, threadID string, planVersion, n int) (*Plan, error) {
	return call[Plan](ctx, c, "POST", c.address(nil, threadID, "undo"), planVersion, Undo{Version: &n})
}

// Expand shows again what the record over a message hides. planVersion is the
// version that must be in force, or Any.
func (c *Client) Expand(ctx context.Context, threadID string, planVersion int, message thread.ID) (*Plan, error) {
	return call[Plan](ctx, c, "POST", c.address(nil, threadID, "expand"), planVersion, Expand{MessageID: string(message)})
}

// Render returns the prompt under any plan.
func (c *Client) Render(ctx context.Context, threadID string, q Render) (*Prepared, error) {
	return call[Prepared](ctx, c, "POST", c.address(nil, threadID, "render"), Any, q)
}

// Artifacts returns a page of what is known of a thread's artifacts.
func (c *Client) Artifacts(ctx context.Context, threadID, cursor string, limit int) (*Artifacts, error) {
	return call[Artifacts](ctx, c, "GET", c.address(pageQuery(cursor, limit), threadID, "artifacts"), Any, nil)
}

// Artifact returns what is known of an artifact.
func (c *Client) Artifact(ctx context.Context, threadID, id string) (*artifact.Metadata, error) {
	return call[artifact.Metadata](ctx, c, "GET", c.address(nil, threadID, "artifacts", id), Any, nil)
}

// Content reads the content of an artifact.
func (c *Client) Content(ctx context.Context, threadID, id string) (string, error) {
	return c.text(ctx, "GET", c.address(nil, threadID, "artifacts", id, "content"))
}

// text reads an answer that is a text, or empty.
func (c *Client) text(ctx context.Context, method, address string) (string, error) {
	answer, err := c.do(ctx, method, address, Any, nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", fmt.Errorf("api: %s %s: the answer ended before its time: %w", method, address, err)
	}
	return string(content), nil
}

// Recall searches what the plan in force removed; o may be nil. Its ThreadID and
// Excerpt are not used.
func (c *Client) Recall(ctx context.Context, threadID, words string, o *recall.Options) ([]recall.Hit, error) {
	o = cmp.Or(o, &recall.Options{})
	values := query("q", words, "limit", numberUnless(0, max(0, o.Limit)), "tool", o.Tool, "role", string(o.Role))
	hits, err := call[Hits](ctx, c, "GET", c.address(values, threadID, "recall"), Any, nil)
	if err != nil {
		return nil, err
	}
	return hits.Items, nil
}

func pageQuery(cursor string, limit int) url.Values {
	return query("cursor", cursor, "limit", numberUnless(0, max(0, limit)))
}

// query has the parameters whose values are not empty: names, each before its value.
func query(parameters ...string) url.Values {
	all := url.Values{}
	for p := range slices.Chunk(parameters, 2) {
		if p[1] != "" {
			all.Set(p[0], p[1])
		}
	}
	return all
}

// numberUnless writes a number, and nothing for the one that stands for none.
func numberUnless(none, n int) string {
	if n == none {
		return ""
	}
	return strconv.Itoa(n)
}

// address is the URL of a thread, or of something in it.
func (c *Client) address(query url.Values, segments ...string) string {
	address := c.base + Root
	for _, s := range segments {
		address += "/" + url.PathEscape(s)
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

func call[T any](ctx context.Context, c *Client, method, address string, version int, q any) (*T, error) {
	answer, err := c.do(ctx, method, address, version, q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	out := new(T)
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return nil, fmt.Errorf("api: %s %s: the answer cannot be read: %w", method, address, err)
	}
	return out, nil
}

// do makes a request; the caller closes the body of its answer, which is one of
// success.
func (c *Client) do(ctx context.Context, method, address string, version int, q any) (*http.Response, error) {
	var body io.Reader
	if q != nil {
		var data bytes.Buffer
		e := json.NewEncoder(&data)
		e.SetEscapeHTML(false) // bodies for providers stay as they are
		if err := e.Encode(q); err != nil {
			return nil, fmt.Errorf("api: %s %s: %w", method, address, err)
		}
		body = &data
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if q != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if version != Any {
		r.Header.Set("If-Match", strconv.Quote(strconv.Itoa(version)))
	}
	return c.send(r)
}

func (c *Client) send(r *http.Request) (*http.Response, error) {
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, problemOf(answer)
}

// maxProblem bounds the body of an error answer, in bytes.
const maxProblem = 1 << 20

func problemOf(answer *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	p := &Problem{}
	if err == nil {
		err = json.Unmarshal(data, p)
	}
	if err != nil || p.Status == 0 {
		return errors.Join(&Problem{Type: "about:blank", Title: answer.Status, Status: answer.StatusCode,
			Detail: "the answer is not from the daemon; is there something between it and the client?"}, err)
	}
	return p
}
