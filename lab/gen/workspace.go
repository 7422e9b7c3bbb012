package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// virtualRoot is where the agent believes the project to be. The real
// directory is a temporary one and must not appear in a recording.
const virtualRoot = "/home/dev/shipq"

// Workspace is a private copy of the project that the tools work on.
type Workspace struct {
	root string
}

// newWorkspace copies the project.
func newWorkspace(project string) (*Workspace, error) {
	root, err := os.MkdirTemp("", "shipq-")
	if err != nil {
		return nil, err
	}
	// The go command reports resolved paths, so they are what scrub must know.
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(root, os.DirFS(project)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	return &Workspace{root: root}, nil
}

// Close removes the copy.
func (w *Workspace) Close() error { return os.RemoveAll(w.root) }

// real is the true place of a path in the project.
func (w *Workspace) real(path string) string { return filepath.Join(w.root, filepath.FromSlash(path)) }

// absolute is the place of a path as the agent writes it.
func absolute(path string) string {
	if path == "." || path == "" {
		return virtualRoot
	}
	return virtualRoot + "/" + path
}

// files lists the files below a path of the project, sorted.
func (w *Workspace) files(path string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(w.real(path), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(w.root, p)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	return names, err
}

// What differs from run to run in the output of the go command, and what we
// write instead.
var volatile = []struct {
	re   *regexp.Regexp
	with string
}{
	// "(0.03s)" after a test, "0.012s" after a package.
	{regexp.MustCompile(`\(\d+\.\d+s\)`), "(0.00s)"},
	{regexp.MustCompile(`(?m)^((?:ok|FAIL)\s.*\t)\d+\.\d+s`), "${1}0.00s"},
	// Addresses and goroutine numbers in stack traces.
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "0xc000000000"},
	{regexp.MustCompile(`goroutine \d+`), "goroutine 1"},
	// The port of a test server.
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:40000"},
}

// scrub makes output repeatable.
func (w *Workspace) scrub(s string) string {
	s = strings.ReplaceAll(s, w.root, virtualRoot)
	for _, v := range volatile {
		s = v.re.ReplaceAllString(s, v.with)
	}
	return s
}
