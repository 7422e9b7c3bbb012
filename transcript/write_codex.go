package transcript

import (
	"encoding/json"
	"time"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// codexVersion is the version that these files were tried with.
const codexVersion = "0.169.0"

// codexLine is a line of a rollout.
type codexLine struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   any    `json:"payload"`
}

// codex writes a rollout: the session, and the items of the conversation. Codex adds instructions
// and environment to its next request itself, as it does after its own compaction.
func (w *writer) codex(messages []thread.Message) {
	begun := w.session.Time.UTC()
	w.out.Path = begun.Format("2006/01/02/") + "rollout-" + begun.Format("2006-01-02T15-04-05") + "-" + w.session.ID + ".jsonl"
	type meta struct {
		ID         string `json:"id"`
		Timestamp  string `json:"timestamp"`
		Dir        string `json:"cwd"`
		Originator string `json:"originator"`
		Version    string `json:"cli_version"`
		Source     string `json:"source"`
		Provider   string `json:"model_provider,omitempty"`
	}
	write := func(at time.Time, kind string, payload any) { w.line(codexLine{timestamp(at), kind, payload}) }
	write(w.first, "session_meta", meta{w.session.ID, timestamp(begun), w.session.Dir, "palimpsest", codexVersion, "cli", w.session.Provider})
	for i := range messages {
		m := &messages[i]
		at := w.timeOf(m)
		for _, item := range w.elements(openai.Responses{}, "input", m) {
			write(at, "response_item", json.RawMessage(item.Raw))
		}
		if m.StartsTurn() { // the agent's list of sessions shows the first of them
			write(at, "event_msg", map[string]string{"type": "user_message", "message": m.Text()})
		}
	}
}
