// Package budget reads the sizes that evaluations fit conversations into.
package budget

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a size such as 8k or 16000, in tokens, or a share such as 20%; one of
// the two results is 0. The error says what is wanted.
func Parse(text string) (tokens int, of float64, err error) {
	number, unit := strings.ToLower(text), ""
	if i := strings.IndexAny(number, "k%"); i >= 0 {
		number, unit = number[:i], number[i:]
	}
	x, err := strconv.ParseFloat(number, 64)
	if unit == "k" {
		x *= 1000
	}
	share := unit == "%"
	if err != nil || unit != "" && unit != "k" && !share || share && !(x > 0 && x < 100) || !share && !(x >= 1 && x < 1e12) {
		return 0, 0, fmt.Errorf("budget %q: want tokens such as 8k or 16000, or a share such as 20%%", text)
	}
	if share {
		return 0, x / 100, nil
	}
	return int(x), 0, nil
}
