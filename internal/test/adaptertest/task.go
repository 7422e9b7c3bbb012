package adaptertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Run has an agent of the framework do the Task with a scripted model and the tool
// ReadPart, with an adapter made of the compactor and the options. A nil compactor is
// the agent without an adapter.
type Run func(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, model *Script) error

// TestTask proves an adapter with an agent of its framework.
func TestTask(t *testing.T, run Run) {
	compactor := func(t *testing.T, log store.Log) *palimpsest.Compactor {
		memory := &store.Memory{}
		config := palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory}, Recall: &palimpsest.Recall{}}
		if log != nil {
			config.Store.Log = log
		}
		c, err := palimpsest.New(config)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	unhurt := func(t *testing.T) func(context.Context, string, error) {
		return func(_ context.Context, id string, err error) { t.Errorf("%s: %v", id, err) }
	}
	t.Run("without the adapter the window overflows", func(t *testing.T) {
		model := &Script{Window: Window}
		if err := run(t.Context(), nil, nil, model); err == nil {
			t.Errorf("no error: %v", model.Report())
		}
	})
	t.Run("with it the task ends", func(t *testing.T) {
		model := &Script{Window: Window}
		o := &adapter.Options{Window: Window, Output: Output, Failed: unhurt(t)}
		if err := run(t.Context(), compactor(t, nil), o, model); err != nil {
			t.Fatal(err)
		}
		got := model.Report()
		if !got.Found() || got.Refused > 0 || got.Lookups == 0 || got.Largest > Window {
			t.Errorf("%v", got)
		}
		t.Log(got)
	})
	t.Run("a refusal is followed by a smaller request", func(t *testing.T) {
		model := &Script{RefuseOnce: Parts / 2}
		o := &adapter.Options{Window: Window, Output: Output, Failed: unhurt(t)}
		if err := run(t.Context(), compactor(t, nil), o, model); err != nil {
			t.Fatal(err)
		}
		if got := model.Report(); !got.Found() || got.Refused != 1 {
			t.Errorf("%v", got)
		}
	})
	t.Run("a store that fails stops nobody", func(t *testing.T) {
		model := &Script{}
		var failed atomic.Int64
		o := &adapter.Options{Window: Window, Output: Output, Failed: func(_ context.Context, _ string, err error) {
			if failed.Add(1); !errors.Is(err, errBroken) {
				t.Errorf("told of %v", err)
			}
		}}
		if err := run(t.Context(), compactor(t, broken{}), o, model); err != nil {
			t.Fatal(err)
		}
		got := model.Report()
		if !got.Found() || got.Requests != Parts+1 || got.Lookups > 0 || got.Largest < 2*Window {
			t.Errorf("%v", got)
		}
		if failed.Load() == 0 {
			t.Error("nobody was told")
		}
	})
	t.Run("a panic of ours stops nobody", func(t *testing.T) {
		model := &Script{}
		if err := run(t.Context(), compactor(t, panics{}), &adapter.Options{Window: Window}, model); err != nil {
			t.Fatal(err)
		}
		if got := model.Report(); !got.Found() || got.Requests != Parts+1 {
			t.Errorf("%v", got)
		}
	})
}

var errBroken = errors.New("the disk is gone")

// broken is a log that fails.
type broken struct{}

func (broken) Load(context.Context, string) (*thread.Thread, error) { return nil, errBroken }

func (broken) Append(context.Context, string, int, []thread.Message) (*thread.Thread, error) {
	return nil, errBroken
}

// panics is a log with a defect.
type panics struct{ broken }

func (panics) Load(context.Context, string) (*thread.Thread, error) { panic("a defect") }
