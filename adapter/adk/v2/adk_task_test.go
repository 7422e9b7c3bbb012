package adk_test

import (
	"context"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/adk/v2/internal/reader"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestTask(t *testing.T) {
	for name, asPlugin := range map[string]bool{"callbacks": false, "plugin": true} {
		t.Run(name, func(t *testing.T) {
			adaptertest.TestTask(t, func(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, model *adaptertest.Script) error {
				return reader.Run(ctx, c, o, model, asPlugin)
			})
		})
	}
}
