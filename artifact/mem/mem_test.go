package mem_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/artifacttest"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
)

func TestBackend(t *testing.T) {
	artifacttest.TestBackend(t, func(testing.TB) artifact.Backend { return mem.New() })
}
