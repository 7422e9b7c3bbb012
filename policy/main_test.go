package policy_test

import (
	"os"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rarely"
)

func TestMain(m *testing.M) {
	rarely.Collect()
	os.Exit(m.Run())
}
