package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
)

// readmeCommands are the lines of the README's first block of commands that
// run the program.
func readmeCommands(t *testing.T) [][]string {
	t.Helper()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands [][]string
	for n, block := range strings.Split(string(data), "\n```") {
		if n%2 == 0 {
			continue // prose between blocks
		}
		for line := range strings.SplitSeq(block, "\n") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/palimpsest "); ok {
				commands = append(commands, strings.Fields(rest))
			}
		}
		if len(commands) > 0 {
			return commands
		}
	}
	return nil
}

// The commands of the README work as they are written there, from the root of
// the project, and what compact makes is a request that the API accepts.
func TestReadme(t *testing.T) {
	commands := readmeCommands(t)
	if len(commands) == 0 || commands[0][0] != "compact" {
		t.Fatalf("the README shows %v, want `go run ./cmd/palimpsest compact …` first", commands)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "testdata"), filepath.Join(dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Chdir(dir) // what is written must not land in the project
	for _, args := range commands {
		var out, report bytes.Buffer
		s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &report}
		if status := cli.Run(context.Background(), args, s); status != 0 {
			t.Fatalf("palimpsest %s: exit status %d\n%s", strings.Join(args, " "), status, report.String())
		}
		if args[0] != "compact" {
			continue
		}
		if !strings.Contains(report.String(), "budget 16,000") {
			t.Errorf("the report does not name the budget:\n%s", report.String())
		}
		prompt := args[len(args)-1]
		out.Reset()
		if status := cli.Run(context.Background(), []string{"check", prompt, "--to", "anthropic"}, s); status != 0 {
			t.Errorf("check %s: exit status %d\n%s", prompt, status, out.String())
		}
	}
}
