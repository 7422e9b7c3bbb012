package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// library is a program that uses the library as a host does, and chooses nothing that it
// would have to import for.
const library = `package main

import (
	"fmt"

	"github.com/palimpsest-ai/palimpsest"
)

func main() {
	c, err := palimpsest.New(palimpsest.Config{Recall: &palimpsest.Recall{}})
	s := c.Session("ticket-4711")
	fmt.Println(err, c.Compact, c.Render, c.Work, s.PrepareStep, s.FinishStep, s.Overflowed, s.CutOff, s.CutOffMessages, s.Append,
		s.Tools, s.Answer, s.Recall, s.Remember, s.Compact, s.Plan, s.Plans, s.Undo, s.Expand, s.Pin, s.Delete, s.TaskFinished, s.Quality)
}
`

// TestSizes: what is downloaded stays small. A bound stands a little above what the program
// takes: whoever adds a dependency that goes beyond it says that it is worth that much.
func TestSizes(t *testing.T) {
	if !corpus.Long() {
		t.Skip("two programs are built: in a long run")
	}
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(library), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, program := range []struct {
		name, source string
		most         int64 // bytes
	}{
		{"command", "./cmd/palimpsest", 36_800_000},
		{"library", source, 9_875_000},
	} {
		t.Run(program.name, func(t *testing.T) {
			built := filepath.Join(t.TempDir(), "built")
			build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", built, program.source)
			build.Dir = filepath.Join("..", "..")
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			info, err := os.Stat(built)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes", info.Size())
			if info.Size() > program.most {
				t.Errorf("it takes %d bytes, want at most %d", info.Size(), program.most)
			}
		})
	}
}
