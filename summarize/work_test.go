package summarize

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"

	"github.com/palimpsest-ai/palimpsest/internal/scan"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// logOf is a thread written by hand: "user: …", "say: …", "env: …" and calls.
type logOf struct {
	messages []thread.Message
	n        int
}

func (l *logOf) add(m thread.Message) *logOf { l.messages = append(l.messages, m); return l }

func (l *logOf) text(role thread.Role, kind thread.Kind, s string) *logOf {
	return l.add(thread.Message{Role: role, Kind: kind, Parts: []thread.Part{thread.Text{Text: s}}})
}

func (l *logOf) user(s string) *logOf { return l.text(thread.User, thread.Plain, s) }

func (l *logOf) say(s string) *logOf { return l.text(thread.Assistant, thread.Plain, s) }

func (l *logOf) env(s string) *logOf { return l.text(thread.User, thread.Injected, s) }

func (l *logOf) call(tool string, args map[string]any) *logOf {
	l.n++
	doc, _ := json.Marshal(args)
	return l.add(thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: fmt.Sprint("c", l.n), Name: tool, Arguments: string(doc)}}})
}

func (l *logOf) result(tool string, outcome thread.Outcome, out string) *logOf {
	return l.settled(thread.ToolResult{Tool: tool, Outcome: outcome}, out)
}

// rejected is the result of a call that the agent's own record shows was not allowed.
func (l *logOf) rejected(tool, out string) *logOf {
	return l.settled(thread.ToolResult{Tool: tool, Outcome: thread.Failure, Denied: true}, out)
}

func (l *logOf) settled(r thread.ToolResult, out string) *logOf {
	r.CallID, r.Content = fmt.Sprint("c", l.n), []thread.Part{thread.Text{Text: out}}
	injected.Settle("claude-code", "", &thread.ToolCall{Name: r.Tool}, &r)
	return l.add(thread.Message{Role: thread.Tool, Parts: []thread.Part{r}})
}

// ok, bad and plain run a command: with a tool that flags failures, and with one
// that tells nothing.
func (l *logOf) ok(cmd, out string) *logOf {
	return l.call("Bash", map[string]any{"command": cmd}).result("Bash", thread.Success, out)
}

func (l *logOf) bad(cmd, out string) *logOf {
	return l.call("Bash", map[string]any{"command": cmd}).result("Bash", thread.Failure, "Exit code 1\n"+out)
}

func (l *logOf) plain(cmd, out string) *logOf {
	return l.call("bash", map[string]any{"command": cmd}).result("bash", thread.Success, out)
}

func (l *logOf) edit(path string) *logOf {
	return l.call("Edit", map[string]any{"file_path": path, "old_string": "a", "new_string": "b"}).result("Edit", thread.Success, "The file "+path+" has been updated successfully.")
}

func (l *logOf) op(tool string, args map[string]any, out string) *logOf {
	return l.call(tool, args).result(tool, thread.Success, out)
}

func (l *logOf) fold(t testing.TB, before state.Work) state.Work {
	t.Helper()
	th, err := thread.New("work").Append(l.messages...)
	if err != nil {
		t.Fatal(err)
	}
	return work.Fold(effort.New(context.Background(), 1<<20), before, th.Messages(), workOf(read))
}

// workOf returns what a reader of messages says of the work.
func workOf(read func(*thread.Message) *facts) func(*thread.Message) work.Message {
	return func(m *thread.Message) work.Message { return read(m).work() }
}

func commits(w state.Work) string {
	var out []string
	for _, c := range w.Commits {
		s := c.Hash + " " + c.Subject
		if c.Pushed {
			s += " pushed"
		}
		out = append(out, strings.TrimSpace(s))
	}
	return strings.Join(out, "; ")
}

func editedPaths(w state.Work) string {
	var out []string
	for _, e := range w.Edited {
		out = append(out, e.Operation+" "+e.Path)
	}
	return strings.Join(out, "; ")
}

func checks(w state.Work) string {
	var out []string
	for _, c := range w.Checks {
		if c.Dir != "" {
			c.Command += " (in " + c.Dir + ")"
		}
		out = append(out, fmt.Sprintf("%s `%s` %s|%s|%s", c.Kind, c.Command, c.Outcome, c.Line, strings.Join(c.Since, ",")))
	}
	return strings.Join(out, "; ")
}

func seen(list []state.Seen) string {
	var out []string
	for _, s := range list {
		out = append(out, s.Text)
	}
	return strings.Join(out, "; ")
}

const heredocCommit = "git add a.go && git commit -m \"$(cat <<'EOF'\nfix(a): don't parse (yet)\n\nA body with ) and 'quotes'.\n\nCo-Authored-By: X\nEOF\n)\""

func TestWorkCommits(t *testing.T) {
	tests := []struct {
		name string
		log  func(*logOf)
		want string
	}{
		{"printed", func(l *logOf) { l.ok(`git commit -m "one"`, "[main 1234567] one\n 1 file changed") }, "1234567 one"},
		{"root", func(l *logOf) { l.ok(`git commit -m "one"`, "[main (root-commit) 1234567] one\n 1 file changed") }, "1234567 one"},
		{"detached", func(l *logOf) { l.ok(`git commit -m "one"`, "[detached HEAD 1234567] one\n 1 file changed") }, "1234567 one"},
		{"here-document", func(l *logOf) { l.ok(heredocCommit, "[main 1234567] fix(a): don't parse (yet)\n 1 file changed") }, "1234567 fix(a): don't parse (yet)"},
		{"here-document, quiet", func(l *logOf) { l.ok(strings.Replace(heredocCommit, "commit", "commit -q", 1), "") }, ""},
		{"message from a pipe of its own", func(l *logOf) {
			l.ok("git commit -F - <<'EOF'\nthe subject\n\nbody\nEOF", "[main 1234567] the subject")
		}, "1234567 the subject"},
		{"words in one", func(l *logOf) { l.ok(`git commit -qam "all of it"`, "") }, ""},
		{"a message like an option", func(l *logOf) { l.ok(`git commit -qm "-q is for quiet"`, "") }, ""},
		{"a message like an amendment", func(l *logOf) { l.ok(`git commit -q --message "--amend it"`, "") }, ""},
		{"the first message is the subject", func(l *logOf) { l.ok(`git commit -q -m "one" -m "more"`, "") }, ""},
		{"a line that no shell can read", func(l *logOf) { l.ok(`git commit -m "one`, "[main 1234567] one") }, ""},
		{"nothing to commit", func(l *logOf) { l.bad(`git commit -m "one"`, "On branch main\nnothing to commit, working tree clean") }, ""},
		{"nothing to commit, piped", func(l *logOf) { l.ok(`git commit -m "one" | tail -1`, "nothing to commit, working tree clean") }, ""},
		{"piped and printed", func(l *logOf) { l.ok(`git commit -m "one" 2>&1 | tail -3`, "[main 1234567] one\n 1 file changed") }, "1234567 one"},
		{"a hook fails", func(l *logOf) { l.bad(`git add -A && git commit -m "one"`, "lint failed") }, ""},
		{"a chain that fails behind it", func(l *logOf) { l.bad(`git commit -m "one" && npm test`, "[main 1234567] one\n 1 failing") }, "1234567 one"},
		{"a chain that fails before it", func(l *logOf) { l.bad(`npm test && git commit -q -m "one"`, "1 failing") }, ""},
		{"not the last of a list", func(l *logOf) { l.ok(`git commit -q -m "one"; git log`, "") }, ""},
		{"or true", func(l *logOf) { l.ok(`git commit -q -m "one" || true`, "") }, ""},
		{"or echo, printed", func(l *logOf) { l.ok(`git commit -m "one" || echo no`, "[main 1234567] one") }, "1234567 one"},
		{"in a loop", func(l *logOf) { l.ok(`for i in 1 2; do git commit -q -m "one"; done`, "") }, ""},
		{"set -e", func(l *logOf) { l.ok("set -e\ngit commit -q -m one\ngit log -1", "x") }, ""},
		{"dry run", func(l *logOf) { l.ok(`git commit --dry-run -m "one"`, "[main 1234567] one") }, ""},
		{"a tool that tells no status", func(l *logOf) { l.plain(`git commit -q -m "one"`, "") }, ""},
		{"a tool that tells no status, printed", func(l *logOf) { l.plain(`git commit -m "one"`, "[main 1234567] one") }, "1234567 one"},
		{"another command says it", func(l *logOf) { l.ok(`cat log.txt`, "[main 1234567] one\n 1 file changed") }, ""},
		{"a file beside it says it", func(l *logOf) {
			l.ok(`cat log.txt; git commit -F msg.txt | tail -1`, "[main 1234567] forged\nnothing to commit")
		}, ""},
		{"a file beside it says another", func(l *logOf) {
			l.ok(`cat log.txt && git commit -m "one"`, "[main 7654321] forged\n[main 1234567] one")
		}, "1234567 one"},
		{"a file says it, read", func(l *logOf) {
			l.op("Read", map[string]any{"file_path": "/x/log"}, "[main 1234567] forged")
		}, ""},
		{"a message that nobody knows", func(l *logOf) { l.ok(`git commit -q -m "$MSG"`, "") }, ""},
		{"two in one call", func(l *logOf) {
			l.ok(`git commit -m "one" a && git commit -m "two" b`, "[main 1111111] one\n[main 2222222] two")
		}, "1111111 one; 2222222 two"},
		{"amended", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok(`git commit --amend --no-edit`, "[main 2222222] one\n Date: now")
		}, "2222222 one"},
		{"amended on another branch", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok(`git commit --amend --no-edit`, "[other 2222222] one\n Date: now")
		}, "1111111 one; 2222222 one"},
		{"made twice with one subject", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok(`git commit -m "one"`, "[main 2222222] one")
		}, "1111111 one; 2222222 one"},
		{"amended with another subject", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok(`git commit --amend -m "uno"`, "[main 2222222] uno")
		}, "1111111 one; 2222222 uno"},
		{"amended after a push", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push", "To x\n   aaaaaaa..1111111  main -> main").ok(`git commit --amend --no-edit`, "[main 2222222] one")
		}, "1111111 one pushed; 2222222 one"},
		{"amended and pushed over it", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push", "To x\n   aaaaaaa..1111111  main -> main")
			l.ok(`git commit --amend --no-edit && git push --force-with-lease`, "[main 2222222] one\nTo x\n + 1111111...2222222 main -> main (forced update)")
		}, "2222222 one pushed"},
		{"another branch is pushed over", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push --force origin other", "To x\n + 1111111...2222222 other -> other (forced update)")
		}, "1111111 one"},
		{"amending fails", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").bad(`git commit --amend -m "uno"`, "hook failed")
		}, "1111111 one"},
		{"pushed", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push 2>&1", "To x\n   aaaaaaa..1111111  main -> main")
		}, "1111111 one pushed"},
		{"pushed in one chain", func(l *logOf) {
			l.ok(`git commit -m "one" && git push`, "[main 1111111] one\nTo x\n   aaaaaaa..1111111  main -> main")
		}, "1111111 one pushed"},
		{"pushed, piped", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push -u origin main 2>&1 | tail -2", " * [new branch]      main -> main\nbranch 'main' set up to track 'origin/main'.")
		}, "1111111 one pushed"},
		{"rejected", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").bad("git push", "To x\n ! [rejected]        main -> main (non-fast-forward)\nerror: failed to push some refs to 'x'")
		}, "1111111 one"},
		{"rejected, piped", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push 2>&1 | tail -3", " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'x'")
		}, "1111111 one"},
		{"piped, and nothing is said", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push 2>&1 | tail -1", "branch 'main' set up to track 'origin/main'.")
		}, "1111111 one"},
		{"another branch is pushed", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push origin other", "To x\n   aaaaaaa..bbbbbbb  other -> other")
		}, "1111111 one"},
		{"a tag is pushed", func(l *logOf) { l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push --tags", "") }, "1111111 one"},
		{"a branch is taken away", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push origin --delete main", "")
		}, "1111111 one"},
		{"pushed only for show", func(l *logOf) { l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git push --dry-run", "") }, "1111111 one"},
		{"pushed from another branch", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git switch other", "Switched to branch 'other'").ok("git push", "   aaaaaaa..bbbbbbb  other -> other")
		}, "1111111 one"},
		{"pushed from a new branch", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git checkout -b new", "Switched to a new branch 'new'").ok("git push -u origin new", " * [new branch]      new -> new")
		}, "1111111 one"},
		{"rebased before it is pushed", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git pull --rebase && git push", "Successfully rebased\n   aaaaaaa..bbbbbbb  main -> main")
		}, "1111111 one"},
		{"picked", func(l *logOf) { l.ok("git cherry-pick 1234567", "[main 2222222] two\n Date: x") }, "2222222 two"},
		{"picked, said by a file", func(l *logOf) { l.ok("cat x; git cherry-pick 1234567", "[main 2222222] two") }, ""},
		{"taken back", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok(`git commit -m "two"`, "[main 2222222] two").ok("git reset --soft HEAD~1", "")
		}, "1111111 one; 2222222 two"},
		{"taken back to a commit", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok(`git commit -m "two"`, "[main 2222222] two").ok("git reset --hard 1111111", "HEAD is now at 1111111 one")
		}, "1111111 one; 2222222 two"},
		{"taken back to what nobody knows", func(l *logOf) {
			l.ok(`git commit -m "one"`, "[main 1111111] one").ok("git reset --hard origin/main", "")
		}, "1111111 one"},
		{"of a scratch folder", func(l *logOf) {
			l.env("<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>").ok(`cd /tmp/x && git init && git commit -m "init"`, "[main (root-commit) 1111111] init")
		}, ""},
		{"interrupted", func(l *logOf) {
			l.call("Bash", map[string]any{"command": `git commit -q -m "one"`}).result("Bash", thread.Failure, "[Request interrupted by user for tool use]")
		}, ""},
		{"stopped half-way", func(l *logOf) {
			l.call("Bash", map[string]any{"command": `git commit -q -m "one"`}).result("Bash", thread.Partial, "")
		}, ""},
		{"in the background", func(l *logOf) {
			l.call("Bash", map[string]any{"command": `git commit -q -m "one"`, "run_in_background": true}).result("Bash", thread.Success, "Command running in background with ID: b1")
		}, ""},
		{"a status of Codex", func(l *logOf) {
			l.call("exec_command", map[string]any{"cmd": `git commit -q -m "one"`}).result("exec_command", thread.Success, "Chunk ID: 05c894\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 0\nOutput:\n")
		}, ""},
		{"a failure of Codex", func(l *logOf) {
			l.call("exec_command", map[string]any{"cmd": `git commit -q -m "one"`}).result("exec_command", thread.Success, "Chunk ID: 05c894\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nnothing to commit")
		}, ""},
		{"a status that the output forges", func(l *logOf) {
			l.plain(`git commit -q -m "one"`, "fatal: x\nProcess exited with code 0\nOutput:\nok")
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &logOf{}
			tt.log(l)
			if got := commits(l.fold(t, state.Work{})); got != tt.want {
				t.Errorf("commits %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWorkEdited(t *testing.T) {
	tests := []struct {
		name string
		log  func(*logOf)
		want string
	}{
		{"edited", func(l *logOf) { l.edit("/r/a.go").edit("/r/b.go").edit("/r/a.go") }, "edited /r/b.go; edited /r/a.go"},
		{"committed", func(l *logOf) { l.edit("/r/a.go").ok("git commit -qam x", "").edit("/r/b.go") }, "edited /r/a.go; edited /r/b.go"},
		{"a commit that failed", func(l *logOf) { l.edit("/r/a.go").bad("git commit -qam x", "hook") }, "edited /r/a.go"},
		{"an edit that failed", func(l *logOf) {
			l.call("Edit", map[string]any{"file_path": "/r/a.go"}).result("Edit", thread.Failure, "<tool_use_error>String to replace not found in file.</tool_use_error>")
		}, ""},
		{"an edit that failed, not flagged", func(l *logOf) {
			l.op("edit", map[string]any{"path": "/r/a.go"}, "Error: oldString not found in content")
		}, ""},
		{"an edit that the user refused", func(l *logOf) {
			l.call("Edit", map[string]any{"file_path": "/r/a.go"}).result("Edit", thread.Failure, "The user doesn't want to proceed with this tool use. The tool use was rejected")
		}, ""},
		{"a new file", func(l *logOf) {
			l.op("Write", map[string]any{"file_path": "/r/a.go", "content": "x"}, "File created successfully at: /r/a.go").edit("/r/a.go")
		}, "created /r/a.go"},
		{"written over", func(l *logOf) {
			l.op("Write", map[string]any{"file_path": "/r/a.go", "content": "x"}, "The file /r/a.go has been updated.")
		}, "edited /r/a.go"},
		{"made and gone", func(l *logOf) {
			l.op("Write", map[string]any{"file_path": "/r/a.go", "content": "x"}, "File created successfully at: /r/a.go").ok("rm /r/a.go", "")
		}, ""},
		{"patched", func(l *logOf) {
			l.op("apply_patch", map[string]any{"input": "*** Begin Patch\n*** Add File: a.go\n+x\n*** Update File: b.go\n-x\n+y\n*** End Patch"}, "Success. Updated the following files:\nA a.go\nM b.go")
		}, "created a.go; edited b.go"},
		{"moved", func(l *logOf) { l.ok("cd /r && git mv a.go b.go", "") }, "deleted /r/a.go; created /r/b.go"},
		{"moved, failed", func(l *logOf) { l.bad("mv a.go b.go", "mv: cannot stat 'a.go'") }, ""},
		{"moved, or it would say so", func(l *logOf) { l.ok("mv a.go b.go || true", "") }, "deleted a.go; created b.go"},
		{"moved, or not", func(l *logOf) { l.ok("mv a.go b.go 2>/dev/null || true", "") }, ""},
		{"in any case, before a failure", func(l *logOf) { l.bad("cd /r\nsed -i 's/a/b/' a.go\ngo test ./...", "FAIL x") }, "edited /r/a.go"},
		{"only if a search finds nothing", func(l *logOf) { l.ok("grep -q dist a.txt || echo dist >> a.txt", "") }, ""},
		{"several at once", func(l *logOf) { l.ok("sed -i 's/a/b/' /r/a.go /r/b.go", "") }, "edited /r/a.go; edited /r/b.go"},
		{"lines of a script", func(l *logOf) { l.ok("cd /r\nsed -i 's/a/b/' a.go\nsed -i 's/a/b/' b.go", "") }, "edited /r/a.go; edited /r/b.go"},
		{"lines of a script, one fails", func(l *logOf) {
			l.ok("sed -i 's/a/b/' /r/a.go\nsed -i 's/a/b/' /r/b.go", "sed: can't read /r/a.go: No such file or directory")
		}, "edited /r/b.go"},
		{"taken back", func(l *logOf) { l.edit("/r/a.go").edit("/r/b.go").ok("cd /r && git checkout -- a.go", "") }, "edited /r/b.go"},
		{"all taken back", func(l *logOf) { l.edit("/r/a.go").ok("git checkout .", "Updated 1 path from the index") }, "edited /r/a.go"},
		{"put aside and back", func(l *logOf) { l.edit("/r/a.go").ok("git stash", "Saved").ok("git stash pop", "On branch main") }, "edited /r/a.go"},
		{"nothing left", func(l *logOf) {
			l.edit("/r/a.go").ok("git status", "On branch main\nnothing to commit, working tree clean")
		}, ""},
		{"nothing left, in a folder", func(l *logOf) {
			l.edit("/r/a.go").edit("/r/sub/b.go").ok("cd /r/sub && git status", "On branch main\nnothing to commit, working tree clean")
		}, "edited /r/a.go"},
		{"nothing left, in a file", func(l *logOf) {
			l.edit("/r/a.go").ok("cat x; git status", "nothing to commit, working tree clean")
		}, "edited /r/a.go"},
		{"put aside", func(l *logOf) { l.edit("/r/a.go").ok("git stash", "Saved") }, "edited /r/a.go"},
		{"a scratch file", func(l *logOf) { l.ok("cd /r && pwd", "/r").ok("echo x > /tmp/x.txt", "") }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &logOf{}
			tt.log(l)
			if got := editedPaths(l.fold(t, state.Work{})); got != tt.want {
				t.Errorf("edited %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWorkChecks(t *testing.T) {
	tests := []struct {
		name string
		log  func(*logOf)
		want string
	}{
		{"passed", func(l *logOf) { l.ok("go test ./...", "ok  \tx/y\t0.1s").edit("/r/a.go") }, "test `go test ./...` success|ok x/y 0.1s|/r/a.go"},
		{"failed", func(l *logOf) {
			l.bad("go test ./...", "--- FAIL: TestX (0.0s)\n    x_test.go:3: got 1\nFAIL\nFAIL\tx/y\t0.1s")
		}, "test `go test ./...` failure|--- FAIL: TestX (0.0s)|"},
		{"piped and failed", func(l *logOf) {
			l.ok("cd /r && go test ./... 2>&1 | tail -20", "--- FAIL: TestX (0.0s)\nFAIL\nFAIL\tx/y\t0.1s\nFAIL")
		}, "test `go test ./... (in /r)` failure|--- FAIL: TestX (0.0s)|"},
		{"piped and passed", func(l *logOf) { l.ok("go test ./... | tail -3", "ok  \tx/y\t0.1s") }, "test `go test ./...` success|ok x/y 0.1s|"},
		{"cut at the head", func(l *logOf) { l.ok("go test ./... | head -1", "ok  \tx/y\t0.1s") }, "test `go test ./...` ||"},
		{"cut at the head, and perhaps more", func(l *logOf) { l.ok("go test ./... | head -n 1", "ok  \tx/y\t0.1s") }, "test `go test ./...` ||"},
		{"cut at the head, and all is there", func(l *logOf) { l.ok("go test ./... | head -5", "ok  \tx/y\t0.1s") }, "test `go test ./...` success|ok x/y 0.1s|"},
		{"searched", func(l *logOf) { l.ok("go test ./... | grep ok", "ok  \tx/y\t0.1s") }, "test `go test ./...` ||"},
		{"searched for failures", func(l *logOf) { l.ok("go test ./... | grep -E '^(ok|FAIL)'", "ok  \tx/y\t0.1s") }, "test `go test ./...` ||"},
		{"or true", func(l *logOf) { l.ok("npm test || true", "something") }, "test `npm test` ||"},
		{"or true, and it says so", func(l *logOf) { l.ok("npm test || true", "Tests:       1 failed, 2 passed, 3 total") }, "test `npm test` failure|Tests: 1 failed, 2 passed, 3 total|"},
		{"followed by another", func(l *logOf) { l.ok("npm run lint; echo done", "done") }, "lint `npm run lint` ||"},
		{"much is edited since a failure, and another check runs", func(l *logOf) {
			l.bad("npm test", "x")
			for i := range 12 {
				l.edit(fmt.Sprintf("/r/%d.ts", i))
			}
			l.ok("npm run test:unit", "")
		}, "test `npm run test:unit` success||"},
		{"much is edited since a failure, and a check of another kind runs", func(l *logOf) {
			l.bad("go test ./billing", "x")
			for i := range 12 {
				l.edit(fmt.Sprintf("/r/%02d.md", i))
			}
			l.ok("go vet ./docs", "")
		}, "test `go test ./billing` failure|x|/r/00.md,/r/01.md,/r/02.md,/r/03.md,/r/04.md,/r/05.md,/r/06.md,/r/07.md,/r/08.md,/r/09.md,/r/10.md,/r/11.md; lint `go vet ./docs` success||"},
		{"little is edited since a failure", func(l *logOf) { l.bad("npm test", "x").edit("/r/a.ts").ok("npm run lint", "") }, "test `npm test` failure|x|/r/a.ts; lint `npm run lint` success||"},
		{"the last counts", func(l *logOf) { l.bad("npm test", "x").ok("npm test", "") }, "test `npm test` success||"},
		{"a chain fails at the end", func(l *logOf) { l.bad("go build ./... && go test ./...", "FAIL\tx/y\t0.1s\nFAIL") }, "build `go build ./...` ||; test `go test ./...` failure|FAIL x/y 0.1s|"},
		{"a chain fails before the end", func(l *logOf) { l.bad("go build ./... && go test ./...", "# x/y\na.go:3:2: undefined: z") }, "build `go build ./...` ||"},
		{"a chain, piped and passed", func(l *logOf) { l.ok("cd /r && go build ./... && go test ./... 2>&1 | tail -5", "ok  \tx/y\t0.1s") }, "build `go build ./... (in /r)` success||; test `go test ./... (in /r)` success|ok x/y 0.1s|"},
		{"a chain, piped and failed", func(l *logOf) { l.ok("go vet ./... && go test ./... 2>&1 | tail -5", "FAIL\tx/y\t0.1s\nFAIL") }, "lint `go vet ./...` success||; test `go test ./...` failure|FAIL x/y 0.1s|"},
		{"a chain of one kind, piped", func(l *logOf) { l.ok("go test ./a && go test ./b 2>&1 | tail -5", "ok  \tx/a\t0.1s\nok  \tx/b\t0.1s") }, "test `go test ./a` success||; test `go test ./b` |ok x/b 0.1s|"},
		{"two linters, piped", func(l *logOf) {
			l.ok("go vet ./... && staticcheck ./... 2>&1 | tail -5", "a.go:3:2: x is unused (U1000)")
		}, "lint `go vet ./...` success||; lint `staticcheck ./...` |a.go:3:2: x is unused (U1000)|"},
		{"cargo, piped", func(l *logOf) {
			l.ok("cargo build && cargo test 2>&1 | tail -5", "test result: ok. 3 passed; 0 failed; 0 ignored")
		}, "build `cargo build` success||; test `cargo test` success|test result: ok. 3 passed; 0 failed; 0 ignored|"},
		{"cargo, whose word it is unknown", func(l *logOf) { l.ok("cargo build; cargo test 2>&1 | tail -5", "error: could not compile `x`") }, "build `cargo build` ||; test `cargo test` ||"},
		{"ruff, piped", func(l *logOf) {
			l.ok("ruff check . && ruff format --check . 2>&1 | tail -5", "All checks passed!\n2 files would be reformatted")
		}, "lint `ruff check .` success||; format `ruff format --check .` failure|2 files would be reformatted|"},
		{"a task of mise", func(l *logOf) {
			l.ok("mise run fmt && mise run lint 2>&1 | tail -20", "[lint:go] 0 issues.\n[lint:go] Finished in 2.42s\n[lint] $ tasks/lint\n[lint] Finished in 3.4ms\nFinished in 2.43s\n[fmt] $ gofmt -w .")
		}, "format `mise run fmt` success||; lint `mise run lint` success|[lint:go] 0 issues.|"},
		{"a task of mise, told apart", func(l *logOf) {
			l.ok("mise run test && mise run test:ci 2>&1 | tail -20", "ok  \tx/y\t0.1s\n[test:ci] ok  \tx/y\t0.1s\n[test:ci] Finished in 1.20s")
		}, "test `mise run test` success||; test `mise run test:ci` success||"},
		{"a part of a task of mise", func(l *logOf) {
			l.ok("mise run lint 2>&1 | tail -20", "[lint:go] Finished in 2.42s\nFinished in 2.43s")
		}, "lint `mise run lint` |[lint:go] Finished in 2.42s|"},
		{"a task of mise that fails after a part", func(l *logOf) {
			l.ok("mise run lint 2>&1 | tail -20", "[lint:gomod] Finished in 102.8ms\nFinished in 12.33s\n[lint:go] ERROR task failed")
		}, "lint `mise run lint` failure|[lint:go] ERROR task failed|"},
		{"a task of mise that fails although a program in it says that it has finished", func(l *logOf) {
			l.ok("mise run test 2>&1 | tail -20", "[test] Finished in 0.52s\n[test] ERROR task failed")
		}, "test `mise run test` failure|[test] ERROR task failed|"},
		{"the words of another program in a task of mise", func(l *logOf) {
			l.ok("mise run test 2>&1 | tail -20", "[test] Finished in 0.52 seconds (files took 0.1 seconds to load)")
		}, "test `mise run test` |[test] Finished in 0.52 seconds (files took 0.1 seconds to load)|"},
		{"a chain fails at the end, told apart", func(l *logOf) { l.bad("mise run fmt && mise run lint", "[fmt] $ gofmt\n2 issues:\n* x: 2") }, "format `mise run fmt` ||; lint `mise run lint` failure|2 issues:|"},
		{"a chain succeeds", func(l *logOf) { l.ok("npm run build && npm test", "3 passing\n") }, "build `npm run build` success||; test `npm test` success|3 passing|"},
		{"a file that says so", func(l *logOf) { l.ok("cat log; pytest -q | tail -1", "3 passed in 0.1s") }, "test `pytest -q` ||"},
		{"silence of a compiler", func(l *logOf) { l.ok("go build ./... 2>&1 | head -30", "") }, "build `go build ./...` success||"},
		{"silence with the errors away", func(l *logOf) { l.ok("go build ./... 2>/dev/null | head -30", "") }, "build `go build ./...` ||"},
		{"a compiler's errors, piped", func(l *logOf) { l.ok("go build ./... 2>&1 | head -30", "# x/y\na.go:3:2: undefined: z") }, "build `go build ./...` failure|a.go:3:2: undefined: z|"},
		{"no status told", func(l *logOf) { l.plain("npm run build", "done in 2s") }, "build `npm run build` |done in 2s|"},
		{"no status told, failures", func(l *logOf) {
			l.plain("pytest", "FAILED tests/test_a.py::test_x - assert 1 == 2\n1 failed, 2 passed in 0.12s")
		}, "test `pytest` failure|FAILED tests/test_a.py::test_x - assert 1 == 2|"},
		{"no status told, passed", func(l *logOf) { l.plain("python -m pytest tests", "===== 3 passed in 0.12s =====") }, "test `python -m pytest tests` success|===== 3 passed in 0.12s =====|"},
		{"not found", func(l *logOf) {
			l.call("Bash", map[string]any{"command": "pytest"}).result("Bash", thread.Failure, "Exit code 127\npytest: command not found")
		}, "test `pytest` |pytest: command not found|"},
		{"too long", func(l *logOf) {
			l.call("Bash", map[string]any{"command": "npm test"}).result("Bash", thread.Failure, "Command timed out after 2m 0.0s")
		}, "test `npm test` |Command timed out after 2m 0.0s|"},
		{"only listed", func(l *logOf) { l.ok("gofmt -l .", "a.go") }, "format `gofmt -l .` |a.go|"},
		{"no folder", func(l *logOf) { l.bad("cd nowhere && npm test", "cd: no such file or directory: nowhere") }, ""},
		{"no run", func(l *logOf) { l.ok("go test --help && npm run && make -n", "x") }, ""},
		{"flagged, and no status", func(l *logOf) {
			l.call("Bash", map[string]any{"command": "go test ./..."}).result("Bash", thread.Failure, "panic: index out of range\nparse.go:42")
		}, "test `go test ./...` failure|panic: index out of range|"},
		{"a place in a file is no compiler's word", func(l *logOf) { l.bad("go test ./...", "panic: x\nparse.go:42\nFAIL\tx/y\t1s") }, "test `go test ./...` failure|FAIL x/y 1s|"},
		{"a log of a test that passes", func(l *logOf) {
			l.ok("go test -v ./... 2>&1 | tail -9", "panic: as it should\n    --- FAIL: inner\nPASS\nok  \tx/y\t0.1s")
		}, "test `go test -v ./...` success|ok x/y 0.1s|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &logOf{}
			tt.log(l)
			if got := checks(l.fold(t, state.Work{})); got != tt.want {
				t.Errorf("checks\n %s\nwant\n %s", got, tt.want)
			}
		})
	}
}

func TestWorkPlace(t *testing.T) {
	type place struct{ dir, branch, pull string }
	tests := []struct {
		name string
		log  func(*logOf)
		want place
	}{
		{"environment", func(l *logOf) { l.env("<environment_context>\n  <cwd>/r</cwd>\n</environment_context>") }, place{dir: "/r"}},
		{"a user's words", func(l *logOf) { l.user("<environment_context>\n  <cwd>/r</cwd>\n</environment_context>") }, place{}},
		{"cd", func(l *logOf) { l.ok("cd /r/x && ls", "a") }, place{dir: "/r/x"}},
		{"cd below", func(l *logOf) { l.ok("cd /r/x && ls", "a").ok("cd y && ls", "a") }, place{dir: "/r/x/y"}},
		{"cd below what nobody knows", func(l *logOf) { l.ok("cd y && ls", "a") }, place{}},
		{"cd failed", func(l *logOf) { l.bad("cd /nowhere && ls", "cd: no such file or directory: /nowhere") }, place{}},
		{"a folder that is gone", func(l *logOf) {
			l.ok("cd /tmp && git init --bare x && cd x && git branch -D y 2>&1; echo \"exit: $?\"; rm -rf /tmp/x", "error: branch 'y' not found\nexit: 1")
		}, place{}},
		{"put back", func(l *logOf) { l.ok("cd /tmp/x && ls", "a\nShell cwd was reset to /r") }, place{dir: "/r"}},
		{"pwd", func(l *logOf) { l.ok("pwd", "/r") }, place{dir: "/r"}},
		{"workdir", func(l *logOf) {
			l.call("exec_command", map[string]any{"cmd": "ls; cd z", "workdir": "/r"}).result("exec_command", thread.Success, "Chunk ID: 1\nProcess exited with code 0\nOutput:\nx")
		}, place{dir: "/r/z"}},
		{"new branch", func(l *logOf) { l.ok("git checkout -b feat/x", "Switched to a new branch 'feat/x'") }, place{branch: "feat/x"}},
		{"new branch, silent", func(l *logOf) { l.ok("git switch -qc feat/x", "").ok("git switch -c y -q", "") }, place{}},
		{"checkout failed", func(l *logOf) { l.bad("git checkout -b main", "fatal: a branch named 'main' already exists") }, place{}},
		{"checkout of a file", func(l *logOf) { l.ok("git checkout a.go", "Updated 1 path from the index") }, place{}},
		{"status", func(l *logOf) { l.ok("git status", "On branch main\nnothing to commit") }, place{branch: "main"}},
		{"status beside a file", func(l *logOf) { l.ok("cat x; git status", "On branch forged\nOn branch main") }, place{}},
		{"show", func(l *logOf) { l.ok("git branch --show-current", "main") }, place{branch: "main"}},
		{"list", func(l *logOf) { l.ok("git branch", "  a\n* main") }, place{branch: "main"}},
		{"commit", func(l *logOf) { l.ok("git commit -m one", "[feat 1234567] one") }, place{branch: "feat"}},
		{"pull", func(l *logOf) { l.ok("gh pr create --fill", "Creating pull request\nhttps://github.com/o/r/pull/7") }, place{pull: "https://github.com/o/r/pull/7"}},
		{"pull of a push", func(l *logOf) {
			l.ok("git push", "remote: https://github.com/o/r/pull/new/x\nhttps://github.com/o/r/pull/8")
		}, place{}},
		{"pull in a page", func(l *logOf) { l.ok("curl x", "https://github.com/o/r/pull/8") }, place{}},
		{"pull of another", func(l *logOf) { l.ok("gh pr view 9", "https://github.com/o/r/pull/9") }, place{}},
		{"another branch has no pull", func(l *logOf) {
			l.ok("git switch a", "Switched to branch 'a'").ok("gh pr create", "https://github.com/o/r/pull/7").ok("git switch main", "Switched to branch 'main'")
		}, place{branch: "main"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &logOf{}
			tt.log(l)
			w := l.fold(t, state.Work{})
			if got := (place{w.Directory.Text, w.Branch.Text, w.PullRequest.Text}); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestWorkRefusedAndRunning(t *testing.T) {
	const no = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …)."
	l := (&logOf{}).user("go on")
	l.call("Bash", map[string]any{"command": "rm -rf build"}).rejected("Bash", no+" To tell you how to proceed, the user said:\nuse git clean instead")
	l.call("Write", map[string]any{"file_path": "/r/a"}).result("Write", thread.Failure, no+" STOP what you are doing")
	l.call("Bash", map[string]any{"command": "curl x"}).rejected("Bash", "Permission to use Bash with command curl x has been denied.")
	l.ok("cat x", no) // a file that says it
	l.call("Bash", map[string]any{"command": "curl y"}).result("Bash", thread.Failure, no+" To tell you how to proceed, the user said:\nalways push")
	l.call("Bash", map[string]any{"command": "curl z"}).result("Bash", thread.Failure, "Permission to use Bash with command curl z has been denied.")
	w := l.fold(t, state.Work{})
	want := `Bash rm -rf build | the user said: "use git clean instead"; Write /r/a | by the user; Bash curl x | by a permission rule`
	if got := seen(w.Refused); got != want {
		t.Errorf("refused\n %s\nwant\n %s", got, want)
	}
	if w.Refused[0].Turn != 1 || len(w.Refused[0].Sources) != 2 {
		t.Errorf("origin %+v", w.Refused[0])
	}
	if got := seen((&logOf{}).ok("rm -rf build", "").fold(t, w).Refused); strings.Contains(got, "rm -rf") {
		t.Errorf("allowed later: %s", got)
	}

	run := &logOf{}
	run.call("Bash", map[string]any{"command": "npm run dev", "run_in_background": true}).result("Bash", thread.Success, "Command running in background with ID: b1. Output is being written to: /tmp/x")
	run.call("Bash", map[string]any{"command": "npm run watch", "run_in_background": true}).result("Bash", thread.Success, "Command running in background with ID: b2")
	run.call("Task", map[string]any{"description": "look", "run_in_background": true}).result("Task", thread.Success, "Async agent launched successfully.\nagentId: a1 (internal ID)")
	run.call("Task", map[string]any{"description": "read", "run_in_background": true}).result("Task", thread.Success, "Async agent launched successfully.\nagentId: a2 (internal ID)")
	run.call("TaskOutput", map[string]any{"task_id": "a1"}).result("TaskOutput", thread.Success, "<retrieval_status>success</retrieval_status>\n<status>completed</status>")
	run.call("KillShell", map[string]any{"shell_id": "b2"}).result("KillShell", thread.Success, "Successfully killed shell: b2")
	before := run.fold(t, state.Work{})
	if got, want := seen(before.Running), "Bash npm run dev (id b1); Task description=look run_in_background=true (id a1)"; got == want {
		t.Error("what ended runs")
	}
	if got := seen(before.Running); !strings.Contains(got, "(id b1)") || !strings.Contains(got, "(id a2)") || strings.Contains(got, "b2") || strings.Contains(got, "a1") {
		t.Errorf("running %s", got)
	}
	after := (&logOf{}).env("<task-notification>\n<task-id>a2</task-id>\n<status>completed</status>\n</task-notification>")
	after.call("BashOutput", map[string]any{"bash_id": "b1"}).result("BashOutput", thread.Success, "<status>running</status>")
	if got := seen(after.fold(t, before).Running); got != "Bash npm run dev (id b1)" {
		t.Errorf("running after %s", got)
	}
}

func TestWorkNext(t *testing.T) {
	tests := []struct {
		log  func(*logOf)
		want string
	}{
		{func(l *logOf) { l.say("The parser is done. Now let me run the tests.") }, "Now let me run the tests."},
		{func(l *logOf) { l.say("Next, I'll write the docs.") }, "Next, I'll write the docs."},
		{func(l *logOf) { l.say("Now let me run the tests.").ok("go test", "ok") }, ""},
		{func(l *logOf) { l.say("I'll run the tests if you like.") }, ""},
		{func(l *logOf) { l.say("Shall I run the tests?") }, ""},
		{func(l *logOf) { l.say("Let me know what to do.") }, ""},
		{func(l *logOf) { l.say("I'll run the tests. All of them passed.") }, ""},
		{func(l *logOf) { l.say("Now let me run the tests.").user("no, stop") }, ""},
		{func(l *logOf) { l.say("Now let me run the tests.").say("All done.") }, ""},
		{func(l *logOf) { l.say("```\nNow let me run the tests.\n```") }, ""},
	}
	for _, tt := range tests {
		l := &logOf{}
		tt.log(l)
		if got := l.fold(t, state.Work{}).Next.Text; got != tt.want {
			t.Errorf("%+v: next %q, want %q", l.messages[0].Text(), got, tt.want)
		}
	}
	said := (&logOf{}).say("Now let me run the tests.").fold(t, state.Work{})
	if got := (&logOf{}).ok("go test", "ok").fold(t, said).Next.Text; got != "" {
		t.Errorf("it was done in the next span: %q", got)
	}
}

// TestWorkFoldsOn: what was known holds on, and changes as if it were one span.
func TestWorkFoldsOn(t *testing.T) {
	first := (&logOf{}).user("go").edit("/r/a.go").ok("git commit -am one", "[feat 1111111] one").ok("go test ./...", "ok  \tx\t1s").edit("/r/b.go")
	second := func(l *logOf) *logOf {
		return l.edit("/r/c.go").ok("git push", "   aaaaaaa..1111111  feat -> feat").bad("go vet ./...", "a.go:1:1: x")
	}
	apart := second(&logOf{}).fold(t, first.fold(t, state.Work{}))
	if got, want := commits(apart), "1111111 one pushed"; got != want {
		t.Errorf("commits %s, want %s", got, want)
	}
	if got, want := editedPaths(apart), "edited /r/b.go; edited /r/c.go"; got != want {
		t.Errorf("edited %s, want %s", got, want)
	}
	if got, want := checks(apart), "test `go test ./...` success|ok x 1s|/r/b.go,/r/c.go; lint `go vet ./...` failure|a.go:1:1: x|"; got != want {
		t.Errorf("checks %s, want %s", got, want)
	}
	if apart.Branch.Text != "feat" {
		t.Errorf("branch %q", apart.Branch.Text)
	}
}

// FuzzSteps: whatever a model writes as a command line and whatever comes back,
// reading it does not panic, and what is said of a commit stands in one of them.
func FuzzSteps(f *testing.F) {
	for _, s := range []string{heredocCommit, `a && b || c; d | e & f 2>&1 >x <<EOF` + "\nb\nEOF", `git commit -m "x$(y '"` + "`)`" + `'`, "$((", "cat <<-'E' | tee x\n\tE\n", "git -C", "cd", "npx", ">", "a>", "uv run"} {
		f.Add(s, "[main 1234567] one\n   aaaaaaa..1111111  main -> main\n1 failed, 2 passed in 0.1s")
	}
	f.Fuzz(func(t *testing.T, command, output string) {
		for _, outcome := range []thread.Outcome{thread.Success, thread.Failure} {
			l := (&logOf{}).call("Bash", map[string]any{"command": command}).result("Bash", outcome, output)
			w := l.fold(t, state.Work{})
			for _, c := range w.Commits {
				if c.Hash != "" && !strings.Contains(scan.Clean(output), c.Hash) {
					t.Errorf("hash %q of %q", c.Hash, output)
				}
			}
		}
	})
}

func BenchmarkFoldWork(b *testing.B) {
	messages := synthetic(b, 2<<20)
	messages = messages[:min(len(messages), 1000)]
	memo := NewMemory(0)
	all := make(map[thread.ID]*facts, len(messages))
	for i := range messages {
		all[messages[i].ID] = memo.facts(nil, &messages[i])
	}
	of := func(m *thread.Message) *facts { return all[m.ID] }
	b.ReportAllocs()
	for b.Loop() {
		work.Fold(effort.New(context.Background(), 1<<20), state.Work{}, messages, workOf(of))
	}
	b.ReportMetric(float64(len(messages)), "messages")
}

// TestJudgeRefusal: what a system refused is a failure, whether or not a provider
// flags it; a page that only begins with the word is none of its business.
func TestJudgeRefusal(t *testing.T) {
	for text, want := range map[string]thread.Outcome{
		"Error: gift card balance is not enough":            thread.Failure,
		`{"error": "order is not pending"}`:                 thread.Failure,
		`{"error": {"code": 7, "message": "no such user"}}`: thread.Failure,
		`{"success": false, "message": "insufficient"}`:     thread.Failure,
		`{"status": "failed"}`:                              thread.Failure,
		`{"error": "", "response": "fine"}`:                 thread.Success,
		`{"error": null, "errors": [], "id": 7}`:            thread.Success,
		"Errors are counted in metrics":                     thread.Success,
		"Transfer successful":                               thread.Success,
	} {
		l := (&logOf{}).op("modify_order", map[string]any{"id": 1}, text)
		call, result := read(&l.messages[0]).calls[0], read(&l.messages[1]).result
		if got := judge(result, &call, call.Class); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
