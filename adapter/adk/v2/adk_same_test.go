package adk_test

import (
	"os"
	"strings"
	"testing"
)

// The adapter to version 2 is that to version 1 with the names that have changed.
func TestSameAsVersion1(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := strings.NewReplacer(
		"google.golang.org/adk/", "google.golang.org/adk/v2/", "google.golang.org/adk (version 1)", "google.golang.org/adk/v2 (version 2)",
		"agent.CallbackContext", "agent.Context", "agent.ToolContext", "agent.Context",
	).Replace(read("../adk.go"))
	if read("adk.go") != want {
		t.Error("adk.go is not that of version 1 with the names of version 2; make the change in both")
	}
}
