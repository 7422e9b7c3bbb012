package summarize_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/summarize"
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
