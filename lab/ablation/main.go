// Command ablation measures what each rule of choosing in package summarize is worth: it switches one off
// after the other, and prints what the prompts then lose.
//
//	cd lab
//	go run ./ablation ../../shared                  all rows
//	go run ./ablation ../../shared 'words|code'     those whose name matches
//
// The product has no switches. The program builds itself a second time with go build -overlay: the text of each
// row is replaced by one that asks the environment.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// row is a rule, and how it is switched off.
type row struct {
	name, why string
	file      string // from the root of the project
	// old stands in the file once; by is put in its place. In by, OFF is an expression that is true where the
	// rule is off, and OLD is the old text. An empty by is (OLD && !OFF).
	old, by string
	lines   int // about how many lines the rule takes
}

const (
	root      = ".."
	switched  = "PALIMPSEST_ABLATION" // the environment of the program that measures: the name of the row
	switchSet = `package %s

import "os"

func ablated(name string) bool { return os.Getenv("` + switched + `") == name }

func either[T any](off bool, is, without T) T {
	if off {
		return without
	}
	return is
}
`
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ablation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return fmt.Errorf("want the folder with transcripts and reader, and perhaps a pattern of names")
	}
	if _, measures := os.LookupEnv(switched); measures {
		return measure(ctx, args[0], regexp.MustCompile(cmp.Or(append(args, "")[1], ".")))
	}
	dir, err := os.MkdirTemp("", "ablation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	replace, err := patch(dir, rows)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "measure")
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		return err
	}
	for _, c := range []*exec.Cmd{
		exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./ablation"),
		exec.CommandContext(ctx, program, args...),
	} {
		c.Env, c.Stdout, c.Stderr = append(os.Environ(), switched+"="), os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
		}
	}
	return nil
}

// patch writes the files with switches, and returns which files they replace.
func patch(dir string, rows []row) (map[string]string, error) {
	texts, names, replace := map[string]string{}, map[string]bool{}, map[string]string{}
	var wrong []error
	for _, r := range rows {
		if texts[r.file] == "" {
			data, err := os.ReadFile(filepath.Join(root, r.file))
			if err != nil {
				return nil, err
			}
			texts[r.file] = string(data)
		}
		if n := strings.Count(texts[r.file], r.old); n != 1 || names[r.name] {
			wrong = append(wrong, fmt.Errorf("rows.go: %s: the text stands %d times in %s, want once; and each name once: %q", r.name, n, r.file, r.old))
		}
		names[r.name] = true
		by := strings.ReplaceAll(cmp.Or(r.by, "(OLD && !OFF)"), "OFF", fmt.Sprintf("ablated(%q)", r.name))
		texts[r.file] = strings.Replace(texts[r.file], r.old, strings.ReplaceAll(by, "OLD", r.old), 1)
	}
	if wrong != nil {
		return nil, errors.Join(wrong...)
	}
	for file, text := range texts {
		folder := filepath.Dir(file)
		texts[filepath.Join(folder, "ablated.go")] = fmt.Sprintf(switchSet, filepath.Base(folder))
		texts[file] = text
	}
	for file, text := range texts {
		at, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		replace[at] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[at], []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return replace, nil
}
