package dir

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/artifacttest"
)

func TestBackend(t *testing.T) {
	artifacttest.TestBackend(t, func(t testing.TB) artifact.Backend {
		s, err := Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return backend{s.files}
	})
}
