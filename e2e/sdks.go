//go:build tools

package e2e

// The declarations of this SDK are read by a test.
import _ "google.golang.org/genai"
