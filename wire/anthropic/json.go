package anthropic

import "strings"

// isBlank reports whether the API takes a text for empty.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
