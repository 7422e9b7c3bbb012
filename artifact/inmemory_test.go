package artifact_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/artifacttest"
)

func TestInMemory(t *testing.T) {
	artifacttest.TestBackend(t, func(testing.TB) artifact.Backend { return new(artifact.Memory) })
}
