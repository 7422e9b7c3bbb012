// Package budget reads numbers of tokens as people write them, and the sizes that
// evaluations fit conversations into.
package budget

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxTokens is the largest number that Tokens reads.
const maxTokens = 1 << 40

// errTokens is the error of Tokens.
var errTokens = errors.New("want a number of tokens, such as 200000, 200k or 1m")

// Tokens reads 32000, 32_000, 32,000, 32k (thousands) and 1.5m (millions).
func Tokens(text string) (int, error) {
	digits, unit := strings.ToLower(strings.ReplaceAll(text, "_", "")), 1
	if rest, ok := strings.CutSuffix(digits, "k"); ok {
		digits, unit = rest, 1_000
	} else if rest, ok := strings.CutSuffix(digits, "m"); ok {
		digits, unit = rest, 1_000_000
	}
	groups := strings.Split(digits, ",")
	for _, group := range groups[1:] {
		if len(group) != 3 {
			return 0, errTokens // 1,5m may be meant as 1.5m
		}
	}
	digits = strings.Join(groups, "")
	if strings.Trim(digits, "0123456789.") != "" || unit == 1 && strings.Contains(digits, ".") {
		return 0, errTokens
	}
	x, err := strconv.ParseFloat(digits, 64)
	if x *= float64(unit); err != nil || x > maxTokens {
		return 0, errTokens
	}
	return int(math.Round(x)), nil
}

// Parse reads a size such as 8k or 16000, in tokens, or a share such as 20%; one of
// the two results is 0. The error says what is wanted.
func Parse(text string) (tokens int, of float64, err error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		of, err = strconv.ParseFloat(number, 64)
		if err == nil && of > 0 && of < 100 {
			return 0, of / 100, nil
		}
	} else if tokens, err = Tokens(text); err == nil && tokens > 0 {
		return tokens, 0, nil
	}
	return 0, 0, fmt.Errorf("budget %q: want tokens such as 8k or 16000, or a share such as 20%%", text)
}
