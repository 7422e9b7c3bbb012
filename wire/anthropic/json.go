package anthropic

import "strings"

// blank reports whether the API takes a text for empty.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
