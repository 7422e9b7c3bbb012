// Package budget reads the sizes that evaluations fit conversations into.
package budget

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a size such as 8k or 16000, in tokens, or a share such as 20%; one of
// the two results is 0. The error says what is wanted.
func Parse(text string) (tokens int, share float64, err error) {
	number, unit := strings.ToLower(text), ""
	if i := strings.IndexAny(number, "k%"); i >= 0 {
		number, unit = number[:i], number[i:]
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x > 0 && x < 1e9) || unit != "" && unit != "k" && unit != "%" || unit == "%" && x >= 100 {
		return 0, 0, fmt.Errorf("budget %q: want tokens such as 8k or 16000, or a share such as 20%%", text)
	}
	switch unit {
	case "%":
		return 0, x / 100, nil
	case "k":
		x *= 1000
	}
	return int(x), 0, nil
}
