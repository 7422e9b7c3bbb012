package exam

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
)

// The files of an exam. The key and the labels are for the user alone: readers and
// graders get folders of their own.
const (
	keyFile    = "key.json"
	labelFile  = "labels.json"
	readersDir = "readers"
	gradersDir = "graders"

	promptFile       = "prompt.txt"
	questionFile     = "questions.txt"
	instructionsFile = "INSTRUCTIONS.txt"
	answersFile      = "answers.json"
	sheetFile        = "sheet.json"
	gradesFile       = "grades.json"
)

// Key says which contender made which prompt.
type Key struct {
	Counter  string       `json:"counter"`
	Seed     uint64       `json:"seed"`
	Readings int          `json:"readings"`
	Sessions []KeySession `json:"sessions"`
	Readers  []Reader     `json:"readers"`
	// Missing are the prompts that were not made.
	Missing []Missing `json:"not_made,omitempty"`
}

// KeySession is a session of an exam, Tokens the size of its history.
type KeySession struct {
	Name      string     `json:"name"`
	Tokens    int        `json:"tokens"`
	Questions []Question `json:"questions"`
}

// Reader is one prompt for one reader.
type Reader struct {
	// Number names the folder.
	Number    string `json:"number"`
	Session   string `json:"session"`
	Contender string `json:"contender"`
	// Budget is as the user wrote it, Limit the same in tokens, Size the size of the prompt.
	// A contender with a size of its own may be over the budget.
	Budget string `json:"budget"`
	Limit  int    `json:"limit"`
	Size   int    `json:"size"`
	Over   bool   `json:"over,omitempty"`
	// Reading counts the readers of the same prompt, from 1.
	Reading int `json:"reading"`
	// Note is what the contender says about the prompt.
	Note string `json:"note,omitempty"`
}

// Missing is a prompt that was not made, and why.
type Missing struct {
	Session   string `json:"session"`
	Contender string `json:"contender"`
	Budget    string `json:"budget"`
	Why       string `json:"why"`
}

// readKey reads the key of an exam that was written.
func readKey(out string) (*Key, error) {
	var k Key
	err := readJSON(filepath.Join(out, keyFile), &k)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; write the exam first: palimpsest-eval --exam DIR... -o %s", err, out)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range k.Readers {
		if r.Reading < 1 || r.Reading > k.Readings || k.session(r.Session).Questions == nil {
			return nil, fmt.Errorf("%w: %s: reader %s has reading %d of session %q, which is none of this exam", cli.ErrInvalid, filepath.Join(out, keyFile), r.Number, r.Reading, r.Session)
		}
	}
	return &k, nil
}

func (k *Key) session(name string) *KeySession {
	for i := range k.Sessions {
		if k.Sessions[i].Name == name {
			return &k.Sessions[i]
		}
	}
	return &KeySession{Name: name}
}

// readersOf are the readers of a session.
func (k *Key) readersOf(session string) []Reader {
	var all []Reader
	for _, r := range k.Readers {
		if r.Session == session {
			all = append(all, r)
		}
	}
	return all
}

// readJSON reads a file. Models like to put JSON into a Markdown fence, which is cut off.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(data))
	if fenced, ok := strings.CutPrefix(text, "```json"); ok {
		text = strings.TrimSuffix(fenced, "```")
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("%w: %s: %w", cli.ErrInvalid, path, err)
	}
	return nil
}

// writeJSON writes a file, indented for people.
func writeJSON(path string, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return writeFile(path, b.String())
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o666)
}
