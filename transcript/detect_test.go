package transcript

import (
	"errors"
	"strings"
	"testing"
)

// TestNotRead: a session of an agent that is not read is named, and not taken for another's.
func TestNotRead(t *testing.T) {
	for _, u := range unread {
		_, err := Read(strings.NewReader(u.example), nil)
		if !errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), "looks like a session of "+u.agent+", which is not read") {
			t.Errorf("%s: %v", u.agent, err)
		}
	}
}
