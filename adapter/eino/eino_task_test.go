package eino_test

import (
	"context"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/eino/internal/reader"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestTask(t *testing.T) {
	for name, stream := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			adaptertest.TestTask(t, func(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, model *adaptertest.Script) error {
				return reader.Run(ctx, c, o, model, stream)
			})
		})
		t.Run("blocks, "+name, func(t *testing.T) {
			adaptertest.TestTask(t, func(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, model *adaptertest.Script) error {
				return reader.RunAgentic(ctx, c, o, model, stream)
			})
		})
	}
}
