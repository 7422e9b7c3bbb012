package work

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
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

// How harnesses tell the folder, in a system prompt (Claude Code, opencode) and in a message (Codex), and which
// process has ended.
var (
	envFolder     = lazyregexp.New(`(?s)\n<env>(?:[^<]*\n)?\s*(?:Primary w|W)orking directory: (/[^\n<]*)\n[^<]*</env>`)
	contextFolder = lazyregexp.New(`(?s)^\s*<environment_context>.*?<cwd>(/[^\n]*?)</cwd>`)
	endedID       = lazyregexp.New(`(?s)<task-id>(.{0,100}?)</task-id>`)
)

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
		t, _ := p.(thread.Text)
		folder := contextFolder
		if m.Role == thread.System {
			folder = envFolder
		} else {
			for _, found := range endedID().FindAllStringSubmatch(t.Text, maxEnded-len(w.ended)) {
				w.ended = append(w.ended, found[1])
			}
		}
		if found := folder().FindStringSubmatch(t.Text); found != nil && (m.Role == thread.System || m.IsAdded()) {
			w.directory = strings.TrimSpace(found[1])
		}
		w.interrupted = w.interrupted || m.IsAdded() && strings.HasPrefix(strings.TrimSpace(t.Text), "[Request interrupted by user")
	}
	if w.directory == "" && !w.interrupted && len(w.ended) == 0 {
		return nil
	}
	return w
}
