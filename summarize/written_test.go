package summarize

import (
	"context"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestWrittenForPeople: what the assistant wrote in a commit, a pull request, an issue or a comment
// stands among its words, and says where it wrote it.
func TestWrittenForPeople(t *testing.T) {
	heredoc := func(command, body string) string {
		return command + " \"$(cat <<'EOF'\n" + body + "\n\nCo-Authored-By: Someone <a@example.com>\nEOF\n)\""
	}
	tests := []struct {
		name string
		log  func(*logOf)
		want string // a part of the summary; "-" for none of the words
	}{
		{"pull request", func(l *logOf) {
			l.ok(heredoc("gh pr create --title x --body", "The parser drops the byte-order mark.\n\n- [ ] try it with `orders.csv`"), "https://github.com/o/r/pull/7")
		}, "assistant: in the pull request:\n    The parser drops the byte-order mark.\n    - [ ] try it with `orders.csv`"},
		{"pull request, =", func(l *logOf) { l.ok(`gh pr edit 7 --body="The parser drops the byte-order mark."`, "done") }, "in the pull request:\n    The parser drops the byte-order mark."},
		{"body of a commit", func(l *logOf) {
			l.ok(heredoc("git add -A && git commit -m", "fix: the mark\n\nThe parser drops the byte-order mark."), "[main 1234567] fix: the mark")
		}, "in the commit message:\n    The parser drops the byte-order mark."},
		{"two messages of a commit", func(l *logOf) {
			l.ok(`git commit -am "fix: the mark" -m "The parser drops the byte-order mark."`, "[main 1234567] fix: the mark")
		}, "in the commit message:\n    The parser drops the byte-order mark."},
		{"subject alone", func(l *logOf) { l.ok(`git commit -m "The parser drops the byte-order mark."`, "[main 1234567] x") }, "-in the commit message"},
		{"comment", func(l *logOf) { l.ok("gh pr comment 7 -b 'The parser drops the byte-order mark.'", "done") }, "in a comment:\n    The parser drops the byte-order mark."},
		{"reply", func(l *logOf) {
			l.ok(`gh api repos/o/r/pulls/7/comments/1/replies -X POST -f in_reply=1 -f body="The parser drops the byte-order mark."`, "{}")
		}, "in a comment:\n    The parser drops the byte-order mark."},
		{"from standard input", func(l *logOf) {
			l.ok("gh issue create -t x -F - <<'EOF'\nThe parser drops the byte-order mark of `$NAME`.\nEOF", "https://github.com/o/r/issues/8")
		}, "in the issue:\n    The parser drops the byte-order mark of `$NAME`."},
		{"from standard input, expanded", func(l *logOf) {
			l.ok("gh issue create -t x -F - <<EOF\nThe parser drops the byte-order mark of $NAME.\nEOF", "https://github.com/o/r/issues/8")
		}, "-in the issue"},
		{"tool of a server", func(l *logOf) {
			l.op("mcp__github__create_pull_request", map[string]any{"title": "x", "body": "The parser drops the byte-order mark."}, `{"id":1}`)
		}, "in the pull request:\n    The parser drops the byte-order mark."},
		{"failed", func(l *logOf) { l.bad("gh pr comment 7 -b 'The parser drops the byte-order mark.'", "HTTP 403") }, "-in a comment"},
		{"a file", func(l *logOf) { l.ok("gh pr create -t x -F body.md", "https://github.com/o/r/pull/7") }, "-in the pull request"},
		{"an expansion", func(l *logOf) { l.ok(`gh pr comment 7 -b "The parser of $NAME drops the mark."`, "done") }, "-in a comment"},
		{"no text for people", func(l *logOf) { l.ok(`gh pr view 7 -b "The parser drops the byte-order mark."`, "done") }, "-:\n    The parser"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &logOf{}
			l.user("Please mend the import of files that begin with a byte-order mark.")
			tt.log(l)
			l.say("All is done now, and pushed.")
			th, err := thread.New("t").Append(l.messages...)
			if err != nil {
				t.Fatal(err)
			}
			var e Extractive
			s, err := e.Summarize(context.Background(), Input{Messages: th.Messages(), Budget: 1000})
			if err != nil {
				t.Fatal(err)
			}
			text := s.Summary.Render()
			if without, ok := strings.CutPrefix(tt.want, "-"); ok && strings.Contains(text, without) || !ok && !strings.Contains(text, tt.want) {
				t.Errorf("want %q in\n%s", tt.want, text)
			}
			if strings.Contains(text, "    Co-Authored-By") {
				t.Errorf("a trailer is quoted:\n%s", text)
			}
		})
	}
}
