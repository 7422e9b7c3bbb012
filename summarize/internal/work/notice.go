package work

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Message is a message, as far as the state of the work is concerned.
type Message struct {
	*Notice
	Said   bool   // the assistant says something
	Next   string // what it says it will do next, where no call follows
	Calls  []*Call
	Result *Result
}

// Notice is what a harness says in a message about the state of the work.
type Notice struct {
	directory   string
	interrupted bool
	ended       []string // ids of background processes
}

// maxEnded is how many processes one message may say to have ended.
const maxEnded = 16

// ReadNotice reads an environment block, a notice of an ended process, or a mark of an
// interruption.
func ReadNotice(m *thread.Message) *Notice {
	if m.Role != thread.System && (m.Role != thread.User || m.Kind == thread.Recap) {
		return nil
	}
	w := &Notice{}
	for _, p := range m.Parts {
		t, ok := p.(thread.Text)
		if !ok {
			continue
		}
		s := strings.TrimSpace(t.Text)
		if m.Role == thread.System {
			w.environment(s)
			continue
		}
		if m.IsAdded() {
			dir, ok := enclosed(s, "<cwd>", "</cwd>")
			if ok && strings.HasPrefix(s, "<environment_context>") && strings.HasPrefix(dir, "/") && !strings.Contains(dir, "\n") {
				w.directory = dir
			}
			w.interrupted = w.interrupted || strings.HasPrefix(s, "[Request interrupted by user")
		}
		for id, ok := enclosed(s, "<task-id>", "</task-id>"); ok && len(w.ended) < maxEnded; id, ok = enclosed(s, "<task-id>", "</task-id>") {
			w.ended = append(w.ended, id[:min(len(id), maxID)])
			_, s, _ = strings.Cut(s, "</task-id>")
		}
	}
	if w.directory == "" && !w.interrupted && len(w.ended) == 0 {
		return nil
	}
	return w
}

// environment reads the folder from the <env> block of a system prompt.
func (w *Notice) environment(s string) {
	block, _ := enclosed(s, "\n<env>", "</env>")
	for line := range strings.Lines(block) {
		what, dir, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if (what == "Working directory" || what == "Primary working directory") && strings.HasPrefix(dir, "/") {
			w.directory = dir
		}
	}
}
