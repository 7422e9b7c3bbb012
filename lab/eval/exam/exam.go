// Package exam measures what a reader still knows from a compacted prompt. Write
// makes a prompt for each session, contender and budget, each in a numbered folder; a
// reader (a language model, or a person) answers the questions of a session from one of
// them. Sheets puts the answers to each question side by side without names, for graders
// who compare them with the key. Fold adds the grades up.
//
// The package asks no model: the user chooses readers and graders.
package exam

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Question asks about the session.
type Question struct {
	ID string `json:"id"`
	// Type groups questions in reports, such as intent, decision, state, failure,
	// fact or current.
	Type     string `json:"type"`
	Question string `json:"question"`
	// Key says what a full answer must hold, and what half of one. Readers never see it.
	Key string `json:"key"`
}

// Session is a conversation up to the place where it is compacted, and an exam
// about it.
type Session struct {
	// Name is that of the folder.
	Name      string
	Questions []Question
	// Own is the summary that the agent's own model wrote at the end; empty for none.
	Own        string
	Transcript *transcript.Transcript
}

// Open reads a folder: the history (history.*, plain or gzip, in any format of package
// transcript), exam.json, and perhaps own-summary.txt.
func Open(dir string) (*Session, error) {
	s := &Session{Name: filepath.Base(filepath.Clean(dir))}
	var err error
	if s.Questions, err = questions(filepath.Join(dir, "exam.json")); err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(dir, "own-summary.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s.Own = strings.TrimSpace(string(own))
	histories, err := filepath.Glob(filepath.Join(escapeGlob(dir), "history.*"))
	if err != nil {
		return nil, err
	}
	if len(histories) != 1 {
		return nil, fmt.Errorf("%w: %s: want one file history.json, history.jsonl or history.json.gz, there are %d", cli.ErrInvalid, dir, len(histories))
	}
	file, err := transcript.Open(histories[0], nil)
	if err != nil {
		return nil, err
	}
	if n := len(file.Transcripts); n != 1 {
		return nil, fmt.Errorf("%w: %s holds %d conversations; an exam is about one, so put one alone into the file", cli.ErrInvalid, histories[0], n)
	}
	s.Transcript = &file.Transcripts[0]
	return s, nil
}

// escapeGlob is the pattern of filepath.Glob that matches just this folder.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(dir)
}

// questions reads an exam.
func questions(path string) ([]Question, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w (an exam is a list of {id, type, question, key})", err)
	}
	var all []Question
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%w: %s: want a list of {id, type, question, key}: %w", cli.ErrInvalid, path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s holds no question", cli.ErrInvalid, path)
	}
	seen := map[string]bool{}
	for i := range all {
		q := &all[i]
		switch {
		case q.ID == "" || q.Question == "" || q.Key == "":
			return nil, fmt.Errorf("%w: %s: question %d has no id, no question or no key", cli.ErrInvalid, path, i+1)
		case seen[q.ID]:
			return nil, fmt.Errorf("%w: %s: two questions have the id %q", cli.ErrInvalid, path, q.ID)
		case q.Type == "":
			q.Type = "other"
		}
		seen[q.ID] = true
	}
	return all, nil
}

// lastExchange is where the last step of the model begins, with its results.
func (s *Session) lastExchange() int {
	t := s.Transcript.Thread
	i := t.Len()
	for i > 0 && t.At(i-1).Role != thread.Assistant {
		i--
	}
	for i > 0 && t.At(i-1).Role == thread.Assistant {
		i--
	}
	return i
}

// ownPrompt is the agent's own summary, followed by the last exchange.
func (s *Session) ownPrompt() *prompt.Prompt {
	messages := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: s.Own}}}}
	return &prompt.Prompt{Messages: append(messages, s.Transcript.Thread.Messages()[s.lastExchange():]...)}
}

// wholePrompt is the conversation as it was said.
func (s *Session) wholePrompt() *prompt.Prompt {
	return &prompt.Prompt{Messages: s.Transcript.Thread.Messages()}
}
