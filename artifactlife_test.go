package palimpsest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// counting counts how often contents are read.
type counting struct {
	artifact.Backend
	reads map[string]int
}

func (c *counting) Get(ctx context.Context, tenant, id string) (artifact.Metadata, []byte, error) {
	c.reads[id]++
	return c.Backend.Get(ctx, tenant, id)
}

// TestCompactionsLengthenNoLife: what a tool allows to be kept for an hour is gone after an
// hour, however often the thread is compacted in between and after, and compactions do
// not read what earlier ones have stored. The same content under a new call is new. A8
func TestCompactionsLengthenNoLife(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	backend := &counting{mem.New(), map[string]int{}}
	artifacts := artifact.NewStore(backend, &artifact.Options{Now: clock})
	c, err := palimpsest.New(palimpsest.Config{
		Policy: policy.Ladder{DisableSummarization: true, DisableDropping: true}, Artifacts: artifacts, Now: clock,
		Tools: toolpolicy.New(map[string]toolpolicy.Policy{"Lookup": {TTL: time.Hour}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	secret := strings.Repeat("The customer lives in street 17 and pays by invoice. ", 200)
	id, asked := artifact.IDOf("t", secret), 0
	compact := func(text string) {
		t.Helper()
		asked++
		call := fmt.Sprint("c", asked)
		step := palimpsest.Step{Budget: 1_500 + 1_500*asked, Messages: []thread.Message{
			plain(thread.User, fmt.Sprintf("Question %d.", asked)),
			{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: call, Name: "Lookup", Arguments: fmt.Sprintf(`{"n":%d}`, asked)}}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: call, Tool: "Lookup", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}},
			plain(thread.Assistant, strings.Repeat("I see. ", 20)),
		}}
		if _, err := s.Compact(t.Context(), step, ""); err != nil && !errors.Is(err, policy.ErrNothing) {
			t.Fatal(err)
		}
	}
	other := func(n int) string { return strings.Repeat(fmt.Sprintf("Order %d is of no interest here. ", n), 300) }
	compact(secret)
	compact(other(1))
	m, err := artifacts.Metadata(t.Context(), artifact.Requester{}, id)
	if err != nil {
		t.Fatal(err)
	}
	ends, _ := m.Expires()
	stored := backend.reads[id]
	for n := range 3 {
		now = now.Add(15 * time.Minute)
		compact(other(2 + n))
	}
	if m, err = artifacts.Metadata(t.Context(), artifact.Requester{}, id); err != nil {
		t.Fatal(err)
	}
	if later, _ := m.Expires(); !later.Equal(ends) {
		t.Errorf("it ended at %s, after three compactions at %s", ends, later)
	}
	if backend.reads[id] != stored {
		t.Errorf("three compactions read it %d times", backend.reads[id]-stored)
	}
	now = now.Add(3 * time.Hour)
	compact(other(9))
	if _, err := artifacts.Metadata(t.Context(), artifact.Requester{}, id); !errors.Is(err, artifact.ErrExpired) && !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("after three hours and a compaction: %v", err)
	}
	compact(secret)
	compact(other(10))
	if _, err := artifacts.Metadata(t.Context(), artifact.Requester{}, id); err != nil {
		t.Errorf("looked up again: %v", err)
	}
}
