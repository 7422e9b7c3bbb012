package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// unrun are the words behind ```sh that say why the commands of a block are not run here. Requests of
// curl are run by TestAPICommands.
var unrun = []string{"stays running", "needs an agent", "needs a key", "needs openssl", "from a clone", "curl"}

// shellBlock is a block of commands on a page.
type shellBlock struct {
	line         int
	info, script string
}

// shellBlocks are the blocks of commands of a page, and the lines with a command outside of one.
func shellBlocks(page string) (blocks []shellBlock, stray []int) {
	command := regexp.MustCompile(`^(    )?(\$ )?palimpsest(-eval)? \S`)
	fence := ""
	for n, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```") && fence != "":
			fence = ""
		case strings.HasPrefix(line, "```"):
			fence = line
			if info, ok := strings.CutPrefix(line, "```sh"); ok {
				blocks = append(blocks, shellBlock{line: n + 1, info: strings.TrimSpace(info)})
			}
		case strings.HasPrefix(fence, "```sh"):
			blocks[len(blocks)-1].script += line + "\n"
		case command.MatchString(line) && (fence != "" || strings.HasPrefix(line, "    ")):
			stray = append(stray, n+1)
		}
	}
	return blocks, stray
}

// pages are the pages of the documentation, by their paths from the root of the project.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/formats/*.md"} {
		paths, err := filepath.Glob("../../" + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(strings.TrimPrefix(path, "../../"))] = string(data)
		}
	}
	return found
}

// TestDocumentedCommands: the commands of the documentation run as they are written there, one block after the other, on
// a machine with the sample as a session of Claude Code (91bfefb2-…), as session.jsonl, and as a conversation
// that was compacted twice (px-ac42898f6da936aa6f1027ef), for the tenant acme too.
func TestDocumentedCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a shell")
	}
	sample, err := os.ReadFile("../../testdata/sessions/fix-retry.claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for path, page := range pages(t) {
		blocks, stray := shellBlocks(page)
		for _, line := range stray {
			// The plugins of agents print what they did, which their tests look at.
			if path != "docs/agents.md" {
				t.Errorf("%s:%d: a command outside of a block ```sh, which nobody runs", path, line)
			}
		}
		for _, b := range blocks {
			if b.info != "" && !slices.Contains(unrun, b.info) {
				t.Errorf("%s:%d: ```sh %s: want nothing, or one of %q", path, b.line, b.info, unrun)
			}
			if b.info != "" && b.info != "curl" {
				t.Logf("%s:%d: not run (%s): %s", path, b.line, b.info, strings.TrimSpace(b.script))
			}
		}
		blocks = slices.DeleteFunc(blocks, func(b shellBlock) bool { return b.info != "" })
		ran += len(blocks)
		if len(blocks) == 0 {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			run := documentedMachine(t, sample)
			for _, b := range blocks {
				if out, err := run(b.script); err != nil {
					t.Errorf("%s:%d: %v\n%s%s", path, b.line, err, b.script, out)
				}
			}
		})
	}
	if ran < 20 {
		t.Errorf("only %d blocks were found", ran)
	}
}

// documentedMachine returns a function that runs a script on a machine that has what the documentation speaks of.
func documentedMachine(t *testing.T, sample []byte) func(script string) (string, error) {
	t.Helper()
	home := t.TempDir()
	project := filepath.Join(home, ".claude", "projects", "shipq")
	other := bytes.ReplaceAll(sample, []byte("91bfefb2-9533-4bcc-8bfc-f00dd138f269"), []byte("px-ac42898f6da936aa6f1027ef"))
	for path, data := range map[string][]byte{
		filepath.Join(project, "91bfefb2-9533-4bcc-8bfc-f00dd138f269.jsonl"): sample,
		filepath.Join(home, "work", "session.jsonl"):                         sample,
		filepath.Join(home, "other.jsonl"):                                   other,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(script string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", "-euc", script)
		c.Dir = filepath.Join(home, "work")
		c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TMPDIR=" + t.TempDir()}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, how := range []string{"--budget 32000", "--budget 16000", "--budget 16000 --tenant acme"} {
		if out, err := run("palimpsest compact ../other.jsonl " + how + " -o /dev/null"); err != nil {
			t.Fatal(err, out)
		}
	}
	return run
}

// TestDocumentedPrompts: the parts of a prompt that pages show are of the sample, as it is compacted today; "…" stands
// for what is left out.
func TestDocumentedPrompts(t *testing.T) {
	for path, budget := range map[string]string{"README.md": "16000", "docs/summaries.md": "3000"} {
		file := filepath.Join(t.TempDir(), "prompt.txt")
		t.Setenv("XDG_DATA_HOME", t.TempDir())
		args := []string{"compact", "../../testdata/sessions/fix-retry.claude-code.jsonl", "--budget", budget, "--to", "text", "-o", file}
		if status := cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); status != 0 {
			t.Fatalf("palimpsest %s: exit status %d", strings.Join(args, " "), status)
		}
		prompt, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, shown, _ := strings.Cut(pages(t)[path], "```text\n[Context Summary")
		shown, _, _ = strings.Cut("[Context Summary"+shown, "\n```")
		rest := string(prompt)
		for line := range strings.SplitSeq(shown, "\n") {
			if strings.Trim(line, " -") == "…" {
				continue
			}
			pieces := strings.Split(line, "…")
			for n := range pieces {
				pieces[n] = regexp.QuoteMeta(pieces[n])
			}
			at := regexp.MustCompile("(?m)^" + strings.Join(pieces, ".*") + "$").FindStringIndex(rest)
			if at == nil {
				t.Errorf("%s shows a line that the prompt does not hold, or not in this order: %q", path, line)
				continue
			}
			rest = rest[at[1]:]
		}
	}
}

// TestDocumentedLinks: every link between pages leads to a file, and to a heading of it.
func TestDocumentedLinks(t *testing.T) {
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$|<a id="([^"]+)">`)
	for path, page := range all {
		for _, found := range link.FindAllStringSubmatch(page, -1) {
			to, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(found[1], "://") {
				continue
			}
			target := path
			if to != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(path), to))
			}
			if _, err := os.Stat("../../" + target); err != nil {
				t.Errorf("%s: [%s]: there is no %s", path, found[1], target)
				continue
			}
			if anchor == "" {
				continue
			}
			text, err := os.ReadFile("../../" + target)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(heading.FindAllStringSubmatch(string(text), -1), func(h []string) bool {
				return h[2] == anchor || h[1] != "" && anchorOf(h[1]) == anchor
			}) {
				t.Errorf("%s: [%s]: %s has no such heading", path, found[1], target)
			}
		}
	}
}

// TestDocumentedInto: the first steps and the page of agents name the agents that --into takes, and no other.
func TestDocumentedInto(t *testing.T) {
	all := pages(t)
	_, said, _ := strings.Cut(all["docs/start.md"], "\n`--into` takes ")
	said, _, _ = strings.Cut(said, ".")
	_, table, _ := strings.Cut(all["docs/agents.md"], "\n| agent | where | the line |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want []string
	for _, format := range transcript.Writers() {
		want = append(want, string(format))
	}
	slices.Sort(want)
	for page, in := range map[string][][]string{
		"docs/start.md":  regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(said, -1),
		"docs/agents.md": regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1),
	} {
		var names []string
		for _, found := range in {
			names = append(names, found[1])
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("--into takes %q, %s says %q", want, page, names)
		}
	}
}

// TestPromisesNameTests: each promise of the page on security names tests that hold it, and these exist.
func TestPromisesNameTests(t *testing.T) {
	_, rest, _ := strings.Cut(pages(t)["docs/security.md"], "\n## What is promised\n")
	promised, _, _ := strings.Cut(rest, "\n## ")
	promises := strings.Split(promised, "\n- **")[1:]
	if len(promises) < 12 {
		t.Errorf("only %d promises were found", len(promises))
	}
	named := regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z]+)`")
	for _, promise := range promises {
		tests := named.FindAllStringSubmatch(promise, -1)
		if len(tests) == 0 {
			t.Errorf("no test is named: %s", promise)
		}
		for _, test := range tests {
			if folder := strings.TrimPrefix(test[1], "palimpsest"); !hasTest(t, "../../"+folder, test[2]) {
				t.Errorf("%s has no %s", test[1], test[2])
			}
		}
	}
}

// TestDocumentedMarks: the words and marks that the page on summaries explains are those that the code writes.
func TestDocumentedMarks(t *testing.T) {
	var code strings.Builder
	for _, folder := range []string{"render", "plan/summary", "summarize", "internal/clip", "thread"} {
		paths, err := filepath.Glob("../../" + folder + "/*.go")
		if err != nil || len(paths) == 0 {
			t.Fatal(folder, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(path, "_test.go") {
				code.Write(data)
			}
		}
	}
	_, table, _ := strings.Cut(pages(t)["docs/summaries.md"], "\n| there stands | it means | you |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	found := 0
	for line := range strings.SplitSeq(table, "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, said := range regexp.MustCompile("\"[^\"]+\"|`\\[[^`]+`").FindAllString(cell, -1) {
			found++
			// Numbers, ids and names of tools differ; what stands between them does not.
			pieces := regexp.MustCompile("[0-9…`\"]+|art_|Bash: failure").Split(said, -1)
			longest := slices.MaxFunc(pieces, func(a, b string) int { return len(a) - len(b) })
			if !strings.Contains(code.String(), strings.TrimSuffix(longest, " ")) {
				t.Errorf("%s: the code does not write %q", said, longest)
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d marks were found", found)
	}
}

// hasTest says whether a folder has a test of a name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		data, err := os.ReadFile(path)
		return err == nil && bytes.Contains(data, []byte("\nfunc "+name+"(t *testing.T)"))
	})
}

// anchorOf is the anchor that GitHub makes of a heading.
func anchorOf(heading string) string {
	heading = regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(heading, " ", "-")
}
