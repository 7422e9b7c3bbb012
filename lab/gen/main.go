// Gen records the sample sessions in testdata/sessions.
//
// The agent in these sessions is scripted, but its tools are real: every
// command, edit and search runs on a private copy of lab/gen/testdata/project, and what
// is recorded is what came out. A script also says which calls must fail; when
// the outcome differs, gen stops. Recording twice gives the same bytes.
//
//	go run ./lab/gen -out testdata/sessions           record
//	go run ./lab/gen -out testdata/sessions -check    compare only
package main

import (
	"bytes"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed scripts
var scripts embed.FS

// recording is one session and the file format it is kept in.
type recording struct {
	session string
	file    string
	record  func(*Session) ([]byte, error)
}

var recordings = []recording{
	{"fix-retry", "fix-retry.claude-code.jsonl", recordClaudeCode},
	{"import-csv", "import-csv.openai-chat.json", recordOpenAIChat},
	{"small", "small.openai-chat.json", recordOpenAIChat},
}

func main() {
	out := flag.String("out", "testdata/sessions", "directory of the recorded sessions")
	project := flag.String("project", "lab/gen/testdata/project", "the project the agent works on")
	check := flag.Bool("check", false, "compare with the files in -out instead of writing them")
	only := flag.String("session", "", "only record this session; facts.json is left alone")
	flag.Parse()
	if err := run(*out, *project, *only, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(out, project, only string, check bool) error {
	files := make(map[string][]byte)
	var order []string
	add := func(name string, data []byte) {
		files[name] = data
		order = append(order, name)
	}
	var facts []Fact
	for _, r := range recordings {
		if only != "" && only != r.session {
			continue
		}
		s, err := perform(r.session, project)
		if err != nil {
			return err
		}
		data, err := r.record(s)
		if err != nil {
			return fmt.Errorf("%s: %w", r.session, err)
		}
		add(r.file, data)
		facts = append(facts, s.Facts...)
		fmt.Println(s.Describe())
	}
	if only == "" {
		data, err := encodeFacts(facts)
		if err != nil {
			return err
		}
		add("facts.json", data)
	}
	if check {
		return compare(out, order, files)
	}
	for _, name := range order {
		if err := os.WriteFile(filepath.Join(out, name), files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// perform plays one script.
func perform(name, project string) (*Session, error) {
	turns, err := loadScript(scripts, "scripts/"+name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ws, err := newWorkspace(project)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer ws.Close()
	return play(name, turns, ws)
}

// compare reports every file that differs from the recorded one, and where.
func compare(out string, order []string, files map[string][]byte) error {
	var errs []error
	for _, name := range order {
		have, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if bytes.Equal(have, files[name]) {
			continue
		}
		line, a, b := firstDifference(have, files[name])
		errs = append(errs, fmt.Errorf("%s differs at line %d:\n  file:     %s\n  recorded: %s", name, line, a, b))
	}
	if len(errs) > 0 {
		return errors.Join(append(errs, errors.New("run go run ./lab/gen to record again"))...)
	}
	return nil
}

// firstDifference returns the number of the first line that differs, and what
// both sides have from the first differing byte on, cut to a readable length.
func firstDifference(a, b []byte) (line int, inA, inB string) {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	part := func(s []byte) string {
		from := max(0, i-40)
		return fmt.Sprintf("%q", s[min(from, len(s)):min(len(s), i+80)])
	}
	return 1 + bytes.Count(a[:i], []byte("\n")), part(a), part(b)
}
