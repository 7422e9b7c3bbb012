package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// allowed are the programs that scripts may run. A command is not given to a
// shell: it is one program, and possibly filters after it.
var allowed = map[string]bool{"go": true, "gofmt": true}

// bash runs a command line such as "go test ./retry 2>&1 | tail -20".
func (w *Workspace) bash(line string) Result {
	stages := strings.Split(line, " | ")
	words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(stages[0]), "2>&1"))
	if len(words) == 0 || !allowed[words[0]] {
		return failf("bash: %s: command not found", words[0])
	}
	for i, word := range words {
		words[i] = strings.Trim(word, "'\"")
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(),
		// One package after the other and nothing from the cache, so that the
		// order of the output is always the same.
		"GOFLAGS=-count=1 -p=1",
		"GOWORK=off",
		"GOPROXY=off",
		"GOTOOLCHAIN=local",
		"PWD="+w.root,
	)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return failf("bash: %v", err)
	}
	text := strings.TrimRight(w.scrub(string(out)), "\n")
	for _, filter := range stages[1:] {
		text, err = applyFilter(filter, text)
		if err != nil {
			return failf("bash: %v", err)
		}
	}
	// The agent sees the status of the program itself, as with pipefail.
	if exit != nil {
		return Result{Text: strings.TrimLeft(text+fmt.Sprintf("\nexit code %d", exit.ExitCode()), "\n"), Failed: true}
	}
	if text == "" {
		text = "(no output)"
	}
	return Result{Text: text}
}

// applyFilter knows head, tail and grep.
func applyFilter(filter, text string) (string, error) {
	name, arg, _ := strings.Cut(strings.TrimSpace(filter), " ")
	lines := strings.Split(text, "\n")
	switch name {
	case "head", "tail":
		n, err := strconv.Atoi(strings.TrimPrefix(arg, "-"))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		n = min(n, len(lines))
		if name == "tail" {
			return strings.Join(lines[len(lines)-n:], "\n"), nil
		}
		return strings.Join(lines[:n], "\n"), nil
	case "grep":
		re, err := regexp.Compile(strings.Trim(arg, "'\""))
		if err != nil {
			return "", fmt.Errorf("grep: %w", err)
		}
		var kept []string
		for _, line := range lines {
			if re.MatchString(line) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "\n"), nil
	}
	return "", fmt.Errorf("%s: command not found", name)
}
