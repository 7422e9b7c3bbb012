package summarize_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ending is a context that ends after it was looked at so many times.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestSummaryStops: whenever whoever asked for a summary has gone, the rest of it is
// not counted, and what was begun does no harm to the next one.
func TestSummaryStops(t *testing.T) {
	stopped := 0
	property.Few(t, 8, func(rt *rapid.T) {
		log := threadgen.Thread().Draw(rt, "thread")
		in := summarize.Input{Messages: log.Messages(), Budget: rapid.SampledFrom([]int{0, 200, 2000}).Draw(rt, "budget")}
		want, wanted := (&summarize.Extractive{}).Summarize(context.Background(), in)
		ctx, after := &ending{Context: context.Background()}, 0
		e := &summarize.Extractive{Counter: func(s string) int {
			if ctx.looks < 0 {
				after++
			}
			return (len(s) + 3) / 4
		}}
		for looks := range 200 {
			ctx.looks = looks
			if _, err := e.Summarize(ctx, in); ctx.looks < 0 {
				stopped++
				if !errors.Is(err, context.Canceled) {
					rt.Fatalf("after %d looks: %v", looks, err)
				}
			}
		}
		if after > 0 {
			rt.Fatalf("%d texts were counted for nobody", after)
		}
		ctx.looks = 1 << 30
		got, err := e.Summarize(ctx, in)
		if (err == nil) != (wanted == nil) || err == nil && got.Render() != want.Render() {
			rt.Fatalf("another summary afterwards: %v, %v\n%s\n%s", err, wanted, got.Render(), want.Render())
		}
	})
	if stopped < 100 {
		t.Errorf("only %d summaries were stopped", stopped)
	}
}

// late is an ending whose time is over, as that of a caller with a deadline.
type late struct{ ending }

func (l *late) Err() error {
	if l.ending.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestDeadlineEndsFallback: a deadline of the caller ends the work of all steps, the one without a model too;
// a model that takes all of the time leaves some to that one.
func TestDeadlineEndsFallback(t *testing.T) {
	var said []thread.Message
	for n := range 60 {
		said = append(said, thread.Message{ID: thread.ID(fmt.Sprint(n)), Role: thread.Assistant, Turn: 1, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("I read file_%d.go and found value %d.", n, n*977)}}})
	}
	in := summarize.Input{Messages: said, Budget: 400}
	ctx, after := &late{ending{Context: t.Context()}}, 0
	f := &summarize.Fallback{Extractive: &summarize.Extractive{Counter: func(s string) int {
		if ctx.looks < 0 {
			after++
		}
		return (len(s) + 3) / 4
	}}}
	stopped := 0
	for looks := range 200 {
		ctx.looks = looks
		if _, err := f.Summarize(ctx, in); ctx.looks < 0 {
			if stopped++; !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("after %d looks: %v", looks, err)
			}
		}
	}
	if after > 0 || stopped < 3 {
		t.Errorf("%d texts were counted after the deadline, in %d summaries that it ended", after, stopped)
	}
	synctest.Test(t, func(t *testing.T) {
		bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f := &summarize.Fallback{Steps: []summarize.Step{{Name: "hangs", Summarizer: hanging{}}}}
		began := time.Now()
		got, err := f.Summarize(bounded, in)
		if err != nil || got.Report.By != "extractive" || time.Since(began) != 54*time.Second {
			t.Errorf("after %v: by %q, %v", time.Since(began), got.Report.By, err)
		}
	})
}

// hanging is a model that does not answer.
type hanging struct{}

func (hanging) Summarize(ctx context.Context, _ summarize.Input) (summarize.Result, error) {
	<-ctx.Done()
	return summarize.Result{}, ctx.Err()
}
