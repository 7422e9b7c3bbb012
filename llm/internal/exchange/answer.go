package exchange

import (
	"context"
	"io"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Question is a request for an answer. All but Body and API may be nil.
type Question struct {
	Body []byte
	// API reads the answer.
	API wire.Answers
	// Schema is the shape of a structured answer; nil for text.
	Schema *llm.Schema
	// OnDelta gets the pieces of the answer.
	OnDelta func(llm.Delta)
	// Adjust changes the answer before the reply is made of it, or says why there
	// is none.
	Adjust func(*wire.Answer) error
}

// Ask sends a question until it is answered; see Post.
func (c *Client) Ask(ctx context.Context, timeout time.Duration, q *Question) (reply *llm.Reply, err error) {
	err = c.Post(ctx, timeout, q.Body, func(r *Response) (delivered bool, err error) {
		reply, delivered, err = q.Reply(c.provider, r)
		return delivered, err
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// Reply reads the answer to the question, whole or as a stream. delivered says
// that OnDelta was called.
func (q *Question) Reply(provider string, r *Response) (reply *llm.Reply, delivered bool, err error) {
	var a wire.Answer
	if r.Stream {
		a, delivered, err = q.streamed(provider, r)
	} else {
		a, err = q.whole(provider, r)
	}
	if err != nil {
		return nil, delivered, err
	}
	if q.Adjust != nil {
		if err := q.Adjust(&a); err != nil {
			return nil, delivered, err
		}
	}
	a.Message.Frame = nil // it is tied to no place yet
	reply = &llm.Reply{Message: a.Message, Text: a.Message.Text(), Stop: a.Stop, Usage: a.Usage, RequestID: r.RequestID, Model: a.Model}
	if err := structured(r, reply, q.Schema); err != nil {
		return nil, delivered, err
	}
	if !r.Stream && q.OnDelta != nil {
		// A stream was asked for and the whole came.
		if reply.Text != "" {
			q.OnDelta(llm.Delta{Text: reply.Text})
		}
		delivered = true
	}
	return reply, delivered, nil
}

func (q *Question) whole(provider string, r *Response) (a wire.Answer, err error) {
	body, err := Whole(provider, r)
	if err != nil {
		return a, err
	}
	if a, err = q.API.DecodeAnswer([]byte(body)); err != nil {
		return a, Garbage(r, err.Error(), body)
	}
	return a, nil
}

func (q *Question) streamed(provider string, r *Response) (a wire.Answer, delivered bool, err error) {
	s := q.API.NewStream()
	err = events(provider, r, func(data string) (bool, error) {
		now, err := s.Event(data)
		if err != nil {
			return false, Garbage(r, err.Error(), data)
		}
		if q.OnDelta != nil {
			for _, d := range now.Deltas {
				delivered = true
				q.OnDelta(d)
			}
		}
		return now.Done, nil
	})
	if err != nil {
		return a, delivered, err
	}
	if a, err = s.Answer(); err != nil {
		return a, delivered, Garbage(r, err.Error(), "")
	}
	if a.Stop == "" {
		return a, delivered, io.ErrUnexpectedEOF
	}
	return a, delivered, nil
}

// Count sends a request for a number of tokens, which the answer has as a member
// of that name.
func (c *Client) Count(ctx context.Context, body []byte, member string) (n int, err error) {
	err = c.Post(ctx, 0, body, func(r *Response) (delivered bool, err error) {
		whole, err := Whole(c.provider, r)
		if err != nil {
			return false, err
		}
		if v := gjson.Get(whole, member); v.Type == gjson.Number && v.Num > 0 && v.Num < 1<<53 {
			n = int(v.Num)
			return true, nil
		}
		return false, Garbage(r, "the answer has no "+member, whole)
	})
	return n, err
}
