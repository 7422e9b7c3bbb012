package transcript

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestNotRead: what is not read is named, alone and in a list, and not taken for another's.
func TestNotRead(t *testing.T) {
	for line := range strings.Lines(unread) {
		what, alone := gjson.Get(line, "what").Str, gjson.Get(line, "example").Raw
		for _, example := range []string{alone, "[" + alone + "]"} {
			_, err := Read(strings.NewReader(example), nil)
			if !errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), "looks like "+what+", which is not read") {
				t.Errorf("%s: %v", example, err)
			}
		}
	}
}
