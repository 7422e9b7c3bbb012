package genkit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/genkit/internal/reader"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestTask(t *testing.T) {
	adaptertest.TestTask(t, func(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, model *adaptertest.Script) error {
		history, err := reader.Run(ctx, c, o, model)
		if n := 2 * model.Report().Requests; err == nil && len(history) != n+1 {
			return fmt.Errorf("the history has %d messages, want %d: it must stay whole", len(history), n+1)
		}
		return err
	})
}
