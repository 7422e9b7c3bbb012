package artifact_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/artifacttest"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
)

func TestInMemory(t *testing.T) {
	artifacttest.TestBackend(t, func(testing.TB) artifact.Backend { return mem.New() })
}
