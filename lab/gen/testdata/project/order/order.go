// Package order holds the order type, its id and its states.
package order

import (
	"errors"
	"fmt"
	"time"
)

// ErrBadID is returned by ParseID for anything that is not an order id.
var ErrBadID = errors.New("order: malformed id")

// ID identifies an order, for example ORD-10007-A.
type ID string

// ParseID checks the shape of an id: ORD-, five digits, a dash, a batch letter.
func ParseID(s string) (ID, error) {
	if len(s) != len("ORD-00000-A") || s[:4] != "ORD-" || s[9] != '-' {
		return "", fmt.Errorf("%w: %q", ErrBadID, s)
	}
	for _, c := range s[4:9] {
		if c < '0' || c > '9' {
			return "", fmt.Errorf("%w: %q", ErrBadID, s)
		}
	}
	if b := s[10]; (b < 'A' || b > 'F') && b != 'Z' {
		return "", fmt.Errorf("%w: %q: unknown batch %q", ErrBadID, s, string(b))
	}
	return ID(s), nil
}

// Batch returns the batch letter.
func (id ID) Batch() string { return string(id[len(id)-1:]) }

// Test reports whether the order belongs to the test batch and must never
// reach a carrier.
func (id ID) Test() bool { return id.Batch() == "Z" }

// Status is the state of an order in the queue.
type Status string

// The states. See docs/architecture.md for the transitions.
const (
	Queued  Status = "queued"
	Claimed Status = "claimed"
	Shipped Status = "shipped"
	Failed  Status = "failed"
)

// Valid reports whether s is one of the known states.
func (s Status) Valid() bool {
	switch s {
	case Queued, Claimed, Shipped, Failed:
		return true
	}
	return false
}

// Services a carrier offers.
const (
	Standard = "standard"
	Express  = "express"
)

// MaxWeightGrams is the heaviest parcel Northpost accepts.
const MaxWeightGrams = 31500

// Order is one parcel to ship.
type Order struct {
	ID          ID        `json:"id"`
	Customer    string    `json:"customer"`
	Country     string    `json:"country"`
	WeightGrams int       `json:"weight_grams"`
	Service     string    `json:"service"`
	Status      Status    `json:"status"`
	Attempts    int       `json:"attempts"`
	LabelRef    string    `json:"label_ref,omitempty"`
	FailReason  string    `json:"fail_reason,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// Validate checks the fields that a caller may set.
func (o Order) Validate() error {
	if _, err := ParseID(string(o.ID)); err != nil {
		return err
	}
	if o.Customer == "" {
		return fmt.Errorf("order %s: no customer", o.ID)
	}
	if len(o.Country) != 2 {
		return fmt.Errorf("order %s: country %q is not a two-letter code", o.ID, o.Country)
	}
	if o.WeightGrams <= 0 || o.WeightGrams > MaxWeightGrams {
		return fmt.Errorf("order %s: weight %d g is outside 1..%d", o.ID, o.WeightGrams, MaxWeightGrams)
	}
	if o.Service != Standard && o.Service != Express {
		return fmt.Errorf("order %s: unknown service %q", o.ID, o.Service)
	}
	return nil
}
