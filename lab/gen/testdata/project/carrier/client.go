// Package carrier buys shipping labels from Northpost.
package carrier

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"example.com/shipq/order"
	"example.com/shipq/retry"
)

// Label is a label that has been bought.
type Label struct {
	Ref        string `json:"ref"`
	TrackingNo string `json:"tracking_no"`
	Cents      int    `json:"cents"`
}

// Client talks to the label API. The zero values of HTTP and Retry mean
// http.DefaultClient and retry.Default.
type Client struct {
	BaseURL string
	APIKey  string
	HTTP    *http.Client
	Retry   retry.Runner
}

// labelRequest is the body of POST /v2/labels.
type labelRequest struct {
	Reference   string `json:"reference"`
	Recipient   string `json:"recipient"`
	Country     string `json:"country"`
	WeightGrams int    `json:"weight_grams"`
	Service     string `json:"service"`
}

// StatusError is an answer other than 200 and 201.
type StatusError struct {
	Code int
	Body string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("carrier answered %d: %s", e.Code, e.Body)
}

// CreateLabel buys a label for the order. It repeats the request as the retry
// policy says.
func (c *Client) CreateLabel(ctx context.Context, o order.Order) (Label, error) {
	if o.ID.Test() {
		return Label{}, retry.Permanent(fmt.Errorf("carrier: %s is a test order", o.ID))
	}
	body, err := json.Marshal(labelRequest{
		Reference:   string(o.ID),
		Recipient:   o.Customer,
		Country:     o.Country,
		WeightGrams: o.WeightGrams,
		Service:     o.Service,
	})
	if err != nil {
		return Label{}, fmt.Errorf("carrier: encode %s: %w", o.ID, err)
	}
	var label Label
	err = c.Retry.Do(ctx, func(ctx context.Context) error {
		l, err := c.post(ctx, newKey(), body)
		if err != nil {
			return fmt.Errorf("carrier: create label for %s: %w", o.ID, err)
		}
		label = l
		return nil
	})
	return label, err
}

// newKey returns a random idempotency key.
func newKey() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// post sends one label request.
func (c *Client) post(ctx context.Context, key string, body []byte) (Label, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.BaseURL+"/v2/labels", bytes.NewReader(body))
	if err != nil {
		return Label{}, retry.Permanent(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.APIKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)

	hc := c.HTTP
	if hc == nil {
		hc = http.DefaultClient
	}
	resp, err := hc.Do(req)
	if err != nil {
		return Label{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return Label{}, err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return Label{}, classify(resp, answer)
	}
	var l Label
	if err := json.Unmarshal(answer, &l); err != nil {
		return Label{}, fmt.Errorf("decode label: %w", err)
	}
	return l, nil
}

// classify turns a refusal into an error that retry understands.
func classify(resp *http.Response, body []byte) error {
	err := error(&StatusError{Code: resp.StatusCode, Body: string(bytes.TrimSpace(body))})
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		if d, ok := retryAfter(resp.Header.Get("Retry-After")); ok {
			return retry.After(err, d)
		}
		return err
	case resp.StatusCode == http.StatusRequestTimeout, resp.StatusCode >= 500:
		return err
	}
	return retry.Permanent(err)
}

// retryAfter reads a Retry-After header.
func retryAfter(h string) (time.Duration, bool) {
	secs, err := strconv.Atoi(h)
	if err != nil || secs < 0 {
		return 0, false
	}
	return time.Duration(secs) * time.Second, true
}
