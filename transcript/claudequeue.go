package transcript

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ccQueue follows what a person writes while the model works. A text that is removed has
// reached the model beside the results of a step; one that is dequeued stands in a message of
// its own; those popped are back in the editor. Later versions also keep what has reached the
// model as an attachment.
type ccQueue struct {
	waiting  []string
	attached map[string]bool // texts of attachments
}

// apply returns the text that an operation gives to the model.
func (q *ccQueue) apply(operation, content string) (text string, given bool) {
	at := 0 // mostly there is no content: the first is meant
	if content != "" {
		at = slices.Index(q.waiting, content)
	}
	switch operation {
	case "enqueue":
		q.waiting = append(q.waiting, content)
	case "popAll":
		q.waiting = nil
	case "dequeue", "remove":
		if at >= 0 && at < len(q.waiting) {
			text = q.waiting[at]
			q.waiting = slices.Delete(q.waiting, at, at+1)
		}
		return text, operation == "remove" && text != ""
	}
	return "", false
}

// queued reads an operation on the queue. It reports whether it gave the model a text.
func (s *ccSession) queued(l *ccLine, operation, content string) bool {
	text, given := s.queue.apply(operation, content)
	if given {
		l.role, l.parent, l.queued, l.content = "attachment", s.newest, text, rawjson.Quote(text)
	}
	return given
}

// queuedCommand reads an attachment that holds a text from the queue.
func (s *ccSession) queuedCommand(l *ccLine, attachment gjson.Result) {
	prompt := attachment.Get("prompt")
	l.role, l.content, l.kind = "attachment", strings.Clone(prompt.Raw), ccOrigins[attachment.Get("origin.kind").Str]
	if mode := attachment.Get("commandMode").Str; mode != "" && mode != "prompt" {
		l.kind = thread.Injected
	}
	if prompt.Type == gjson.String {
		s.queue.attached[strings.Clone(prompt.Str)] = true
	}
}
