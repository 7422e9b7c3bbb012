// Package budget reads the sizes that evaluations fit conversations into.
package budget

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/config"
)

// Parse reads a size such as 8k or 16000, in tokens, or a share such as 20%; one of
// the two results is 0. The error says what is wanted.
func Parse(text string) (tokens int, of float64, err error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		of, err = strconv.ParseFloat(number, 64)
		if err == nil && of > 0 && of < 100 {
			return 0, of / 100, nil
		}
	} else if tokens, err = config.ParseTokens(text); err == nil && tokens > 0 {
		return tokens, 0, nil
	}
	return 0, 0, fmt.Errorf("budget %q: want tokens such as 8k or 16000, or a share such as 20%%", text)
}
