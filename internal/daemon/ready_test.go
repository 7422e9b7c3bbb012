package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
)

// TestUnfitNamesTheCause: where a file is gone, opening it once more fails too; what is
// said is that it is gone, not that it may not be written to.
func TestUnfitNamesTheCause(t *testing.T) {
	err := fmt.Errorf("%w: %w", store.ErrGone, fmt.Errorf("%w: unable to open", store.ErrReadOnly))
	if says := unreadyDetail(err); !strings.Contains(says, "removed or replaced") {
		t.Error(says)
	}
}
