package cli

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// resumedSession is a session that was written for an agent to go on with.
type resumedSession struct {
	Agent string `json:"agent"`
	ID    string `json:"id"`
	Path  string `json:"path"`
	// Resume is the line for a shell that goes on with it.
	Resume string `json:"resume"`
	// Lost counts what the agent is not shown although no record hides it.
	Lost map[string]int `json:"lost,omitempty"`
	Note string         `json:"note,omitempty"`
}

// writerNames are the values of --into.
func writerNames() string { return joinFormats(transcript.Writers()) }

// targetAgent sets the target up for an agent that goes on: the API whose shape its
// sessions have, and a budget, where none is given, that leaves most of the window free.
func (j *conversationJob) targetAgent(agent transcript.Format) error {
	if !slices.Contains(transcript.Writers(), agent) {
		return fmt.Errorf("%w: --into %s: known are %s", errUsage, agent, writerNames())
	}
	if j.target.to != "" {
		return fmt.Errorf("%w: --into says what is written: leave --to %s out", errUsage, j.target.to)
	}
	switch agent {
	case transcript.ClaudeCode:
		j.target.to = wire.Anthropic
	case transcript.Codex:
		j.target.to = wire.Responses
	default: // speak several
		if j.target.to = j.in.api(); j.target.to == wire.Gemini {
			j.target.to = wire.Chat
		}
	}
	if j.target.budget != 0 || j.target.model != "" {
		return nil
	}
	set, err := j.target.modelTable()
	if err != nil {
		return err
	}
	m, err := set.Find(j.in.Model)
	if err != nil || m.Window == 0 {
		return fmt.Errorf("%w: the context window of %q is not known: say how large the conversation may be, with --budget TOKENS", errUsage, j.in.Model)
	}
	j.target.budget = m.Window / resumeWindowShare
	return nil
}

// resumeWindowShare is the part of a model's window that a session to go on with may fill,
// where nobody says: the agent's own instructions and tools come on top of it.
const resumeWindowShare = 4

// writeSession writes the prompt of a result as a session of the agent, into its own folder
// or to out, and never over a file that is there.
func (j *conversationJob) writeSession(agent transcript.Format, r *resolvedTarget, res *palimpsest.Result, out string) (*resumedSession, error) {
	p := *res.Prompt
	p.Messages = slices.DeleteFunc(slices.Clone(p.Messages), isHarnessMessage)
	for _, s := range p.System { // the agent has a system prompt of its own
		if strings.HasPrefix(s.Text, recallNotePrefix) {
			note := thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: s.Text}}}
			p.Messages = append([]thread.Message{note}, p.Messages...)
		}
	}
	dir, err := j.in.workingDir()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s := transcript.Session{ID: newSessionID(now), Dir: dir, Time: now, Model: p.Model, Title: j.in.Title}
	if j.target.model == "" && j.in.Model != "" && (agent == transcript.Pi || agent == transcript.OpenCode) {
		s.Model = j.in.Model
	}
	if agent == j.in.file.Format {
		s.Provider = j.in.Provider
	}
	w, err := transcript.Write(agent, &p, s)
	if err != nil {
		return nil, err
	}
	if err := checkRequest(r.api, &p); err != nil {
		return nil, err
	}
	home, err := sessionFolder(agent)
	if err != nil {
		return nil, err
	}
	place := filepath.Join(home, filepath.FromSlash(w.Path))
	if agent == transcript.ClaudeCode && agent == j.in.file.Format && isWithin(home, j.in.path) {
		place = filepath.Join(filepath.Dir(j.in.path), filepath.Base(place)) // beside the original
	}
	made := &resumedSession{Agent: string(agent), ID: w.ID, Path: place, Lost: w.Lost}
	if out != "" {
		made.Path = out
	}
	made.Resume = resumeLine(agent, w.ID, dir, made.Path, place)
	if agent != j.in.file.Format {
		made.Note = fmt.Sprintf("the session was of %s: its calls stand there under the names of those tools, as history", j.in.file.Format)
	}
	for what, n := range countUnsent(j.in.Thread, res) {
		made.Lost[what] += n
	}
	return made, writeNewFile(made.Path, w.Data)
}

// isHarnessMessage reports whether a message is one that an agent's harness puts before its
// next request again: where it works, its rules, what time it is.
func isHarnessMessage(m thread.Message) bool {
	if m.Role != thread.User || m.Kind != thread.Injected {
		return false
	}
	text := strings.TrimSpace(m.Text())
	return slices.ContainsFunc([]string{"<system-reminder>", "<environment_context>", "<user_instructions>", "# AGENTS.md instructions"}, func(begin string) bool {
		return strings.HasPrefix(text, begin)
	})
}

// checkRequest is an error where the provider would refuse the messages.
func checkRequest(api string, p *prompt.Prompt) error {
	_, broken, err := encodeAndValidate(api, p)
	if broken != nil {
		return fmt.Errorf("the session would be refused by the %s API: %w", api, broken)
	}
	return err
}

// countUnsent counts the parts of the messages that stand in the prompt which the target's
// API does not take, such as another provider's sealed reasoning.
func countUnsent(t *thread.Thread, res *palimpsest.Result) map[string]int {
	lost := map[string]int{}
	for i := range res.Prompt.Messages {
		at, ok := t.Index(res.Manifest.Messages[i].ID)
		if !ok || res.Manifest.Messages[i].Synthetic {
			continue
		}
		count := func(m *thread.Message, by int) {
			for _, p := range m.Parts {
				switch p := p.(type) {
				case thread.Reasoning:
					lost["reasoning"] += by
				case thread.Opaque:
					lost["block of type "+p.Kind] += by
				}
			}
		}
		count(uncopied.At(t, at), 1)
		count(&res.Prompt.Messages[i], -1)
	}
	maps.DeleteFunc(lost, func(_ string, n int) bool { return n <= 0 })
	return lost
}

// workingDir is where the agent worked, or where we are if that is not on this machine.
func (in *input) workingDir() (string, error) {
	if info, err := os.Stat(in.Dir); in.Dir != "" && err == nil && info.IsDir() {
		return in.Dir, nil
	}
	return os.Getwd()
}

// sessionFolder is where an agent keeps its sessions, or where we are for what it is to import.
func sessionFolder(agent transcript.Format) (string, error) {
	dir, err := sessions.Folder(string(agent))
	if dir == "" && err == nil {
		return os.Getwd()
	}
	return dir, err
}

// isWithin reports whether a file stands below a folder.
func isWithin(folder, file string) bool {
	rel, err := filepath.Rel(folder, file)
	return err == nil && filepath.IsLocal(rel)
}

// resumeLine goes on with the session. A file that is not where the agent looks for it
// is copied there first.
func resumeLine(agent transcript.Format, id, dir, path, place string) string {
	line := ""
	switch agent {
	case transcript.ClaudeCode: // finds the sessions of the directory that it is in
		line = "cd " + shellQuote(dir) + " && claude --resume " + id
	case transcript.Codex:
		line = "codex resume " + id
	case transcript.Pi:
		return "pi --session " + shellQuote(path)
	case transcript.OpenCode:
		return "cd " + shellQuote(dir) + " && opencode import " + shellQuote(path) + " && opencode --session " + id
	}
	if path != place {
		line = "mkdir -p " + shellQuote(filepath.Dir(place)) + " && cp " + shellQuote(path) + " " + shellQuote(place) + " && " + line
	}
	return line
}

// writeNewFile writes a file that only its owner reads, and makes the folders above it.
func writeNewFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot write the session: %w", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot write %s: it is there already, and a session is never written over one; name another file", path)
	}
	if err := replaceFile(path, 0o600, writeBytes(data)); err != nil {
		return fmt.Errorf("cannot write the session: %w", err)
	}
	return nil
}

// newSessionID is a UUID of version 7, which says when it was made: Codex and pi put
// their sessions in the order of them.
func newSessionID(now time.Time) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16|uint64(binary.BigEndian.Uint16(b[6:8])))
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// print says where the session is and how it is resumed.
func (r *resumedSession) print(p *printer) {
	if r == nil {
		return
	}
	for _, what := range slices.Sorted(maps.Keys(r.Lost)) {
		why := "there is no place for it in a session of " + r.Agent
		if what == "reasoning" {
			why = "its provider sealed it for what stood before it, or another provider did"
		}
		p.text("not carried over: %s (%d): %s", what, r.Lost[what], why)
	}
	if r.Note != "" {
		p.text("note: %s", r.Note)
	}
	p.line("session: %s", r.Path)
	p.line("resume:  %s", r.Resume)
}
