package exchange

import (
	"context"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Question is a request for an answer.
type Question struct {
	Body string
	// API reads the answer.
	API wire.Answers
	// Schema is the shape of a structured answer; nil for text.
	Schema *llm.Schema
	// Adjust may change the answer before it becomes a reply, or return why it cannot
	// become one. It may be nil.
	Adjust func(*wire.Answer) error
}

// Ask sends a question until it is answered; see Post.
func (c *Client) Ask(ctx context.Context, timeout time.Duration, q *Question) (reply *llm.Reply, err error) {
	err = c.Post(ctx, timeout, q.Body, func(r *Response) (err error) {
		reply, err = q.Reply(c.provider, r)
		return err
	})
	return reply, err
}

// Reply reads the answer to the question.
func (q *Question) Reply(provider string, r *Response) (*llm.Reply, error) {
	body, err := ReadObject(provider, r)
	if err != nil {
		return nil, err
	}
	a, err := q.API.DecodeAnswer([]byte(body))
	if err != nil {
		return nil, UnreadableError(r, err.Error(), body)
	}
	if q.Adjust != nil {
		if err := q.Adjust(&a); err != nil {
			return nil, err
		}
	}
	a.Message.Frame = nil // it is tied to no place yet
	reply := &llm.Reply{Message: a.Message, Text: a.Message.Text(), Stop: a.Stop, Usage: a.Usage, RequestID: r.RequestID, Model: a.Model}
	if err := setReplyJSON(r, reply, q.Schema); err != nil {
		return nil, err
	}
	return reply, nil
}

// Count sends a token-counting request and returns the number that the answer holds in
// member.
func (c *Client) Count(ctx context.Context, body, member string) (n int, err error) {
	err = c.Post(ctx, 0, body, func(r *Response) error {
		whole, err := ReadObject(c.provider, r)
		if err != nil {
			return err
		}
		if v := gjson.Get(whole, member); v.Type == gjson.Number && v.Num > 0 && v.Num < 1<<53 {
			n = int(v.Num)
			return nil
		}
		return UnreadableError(r, "the answer has no "+member, whole)
	})
	return n, err
}
