package transcript

import (
	"errors"
	"strings"
	"testing"
)

// TestNotRead: what is not read is named, alone and in a list, and not taken for another's.
func TestNotRead(t *testing.T) {
	for _, u := range unread {
		for _, example := range []string{u.example, "[" + u.example + "]"} {
			_, err := Read(strings.NewReader(example), nil)
			if !errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), "looks like "+u.what+", which is not read") {
				t.Errorf("%s: %v", example, err)
			}
		}
	}
}
