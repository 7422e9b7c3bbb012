package cli

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/internal/install"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// resumedSession reports a session that was written for an agent to resume.
type resumedSession struct {
	Agent string `json:"agent"`
	ID    string `json:"id"`
	Path  string `json:"path"`
	// Resume is the shell command that resumes it.
	Resume string `json:"resume"`
	// Lost counts the parts that the session's format cannot hold.
	Lost  map[string]int `json:"lost,omitempty"`
	Notes []string       `json:"notes,omitempty"`
}

// writeSession writes the prompt of a compaction as a session of the agent, and counts what it lacks.
func (c *conversation) writeSession(res *palimpsest.Result, out string) (*resumedSession, error) {
	made, err := c.writePrompt(*res.Prompt, out)
	if err != nil {
		return made, err
	}
	for what, n := range countUnsent(c.in.Thread, res) {
		made.Lost[what] += n
	}
	if agent := c.in.file.Format; agent != c.into && agent != "" {
		made.Notes = append(made.Notes, fmt.Sprintf("this was a session of %s: the history keeps the tool names of %s", agent, agent))
	}
	return made, nil
}

// writePrompt writes a prompt as a session of the agent, into the agent's folder or to out. It never
// overwrites a file.
func (c *conversation) writePrompt(p prompt.Prompt, out string) (*resumedSession, error) {
	p.Messages = slices.DeleteFunc(withNoteOnce(&p), isHarnessMessage)
	for _, s := range p.System { // the agent has a system prompt of its own
		if strings.HasPrefix(s.Text, render.RemovedNote) {
			note := thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: s.Text}}}
			p.Messages = append([]thread.Message{note}, p.Messages...)
		}
	}
	dir := c.in.Dir
	if info, err := os.Stat(dir); dir == "" || err != nil || !info.IsDir() { // not on this machine
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	about := cmp.Or(strings.TrimSpace(strings.TrimPrefix(c.in.Title, sessions.WrittenTitle)), shorten(sessions.FirstRequest(c.in.Thread), maxFirstWords))
	title, notes, err := maskSession(&p, strings.TrimSpace(sessions.WrittenTitle+" "+about))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s := transcript.Session{ID: newSessionID(now), Dir: dir, Time: now, Model: p.Model, Title: title}
	if c.modelName == "" && c.in.Model != "" && c.into.API() == "" {
		s.Model = c.in.Model
	}
	sameAgent := c.into == c.in.file.Format
	if sameAgent {
		s.Provider = c.in.Provider
	}
	w, err := transcript.Write(c.into, &p, s)
	if err != nil {
		return nil, err
	}
	if err := checkRequest(c.api, &p); err != nil {
		return nil, err
	}
	home, err := sessions.Folder(c.into)
	if home == "" && err == nil { // the agent has to import it
		home, err = os.Getwd()
	}
	if err != nil {
		return nil, err
	}
	expected := filepath.Join(home, filepath.FromSlash(w.Path)) // where the agent looks for it
	if sameAgent && (c.into == install.ClaudeCode || c.into == "gemini-cli") && dir == c.in.Dir && sessions.Within(c.in.path, home) {
		expected = filepath.Join(filepath.Dir(c.in.path), filepath.Base(expected)) // beside the original
	}
	made := &resumedSession{Agent: string(c.into), ID: w.ID, Path: cmp.Or(out, expected), Lost: w.Lost}
	files := []sessionFile{{made.Path, expected, w.Data}}
	for _, name := range slices.Sorted(maps.Keys(w.Beside)) {
		at := filepath.Join(home, filepath.FromSlash(name))
		file := sessionFile{at, at, w.Beside[name]}
		if out != "" {
			file.path = out + "." + path.Base(name)
		}
		files = append(files, file)
	}
	made.Resume = resumeLine(c.into, w.ID, dir, files)
	if c.in.Dir != "" && dir != c.in.Dir {
		notes = append(notes, fmt.Sprintf("the folder of the session, %s, is not on this machine: it goes on in %s", c.in.Dir, dir))
	}
	made.Notes = notes
	for _, f := range slices.Backward(files) { // the agent finds no half session
		err = errors.Join(err, writeNewFile(f.path, f.data))
	}
	return made, err
}

// sessionFile is a file of a session that is written, and where the agent expects it.
type sessionFile struct {
	path, expected string
	data           []byte
}

// isHarnessMessage reports whether the agent itself adds a message to each session: its
// environment, its rules, the time. A file that the user attached is in a reminder too, and stays.
func isHarnessMessage(m thread.Message) bool {
	if m.Author() != thread.ByHarness {
		return false
	}
	text := strings.TrimSpace(m.Text())
	return slices.ContainsFunc(eachSession, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// eachSession begin the messages that agents add to each session.
var eachSession = []string{
	"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", // Codex
	"<system-reminder>\n# Environment", "<system-reminder>\nYou are powered by ", "<system-reminder>\nToday's date is ",
	"<system-reminder>\nAuto permission mode is active", // Kimi Code
	"<system-reminder>\nCodebase and user instructions are ", "<system-reminder>\nAs you answer the user's questions, ",
}

// checkRequest returns an error if the API would refuse the messages.
func checkRequest(api string, p *prompt.Prompt) error {
	_, broken, err := encodeAndValidate(api, p)
	if len(broken) > 0 {
		return fmt.Errorf("the %s API would refuse the session: %w", api, broken[0])
	}
	return err
}

// resumeLine is the shell command that resumes a session. Files that are not where the agent
// expects them it copies there first.
func resumeLine(agent transcript.Format, id, dir string, files []sessionFile) string {
	line := strings.NewReplacer("DIR", shellQuote(dir), "FILE", shellQuote(files[0].path), "ID", id, "MODEL", shellQuote(ownModel(agent))).Replace(agent.Resume())
	if strings.Contains(agent.Resume(), "FILE") {
		return line
	}
	for _, f := range files {
		if f.path != f.expected {
			line = "mkdir -p " + shellQuote(filepath.Dir(f.expected)) + " && cp " + shellQuote(f.path) + " " + shellQuote(f.expected) + " && " + line
		}
	}
	return line
}

// ownModel is the model that the settings of an agent name for its sessions; MODEL if they name none.
func ownModel(agent transcript.Format) string {
	folders, _ := sessions.SettingsFolders(string(agent)) // what cannot be read names none
	settings, _ := readRegular(filepath.Join(append(folders, "")[0], "config.toml"))
	if found := defaultModel().FindSubmatch(settings); found != nil {
		return string(found[1])
	}
	return "MODEL"
}

// readRegular reads a file of an agent, unless it is a pipe, which may never end.
func readRegular(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.ReadFile(path)
}

// defaultModel matches the model of Kimi Code's settings.
var defaultModel = lazyregexp.New(`(?m)^default_model\s*=\s*["']([^"'\n]+)["']`)

// writeNewFile writes a file that only its owner can read, and creates its folder.
func writeNewFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot write the session: %w", err)
	}
	if err := checkNew(path); err != nil {
		return err
	}
	if err := durable.Replace(path, 0o600, writeBytes(data)); err != nil {
		return fmt.Errorf("cannot write the session: %w", err)
	}
	return nil
}

// newSessionID returns a UUID of version 7, which holds the time: Codex and pi sort their
// sessions by id.
func newSessionID(now time.Time) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16|uint64(binary.BigEndian.Uint16(b[6:8])))
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// print says where the session is and how to resume it.
func (r *resumedSession) print(p *printer) {
	if r == nil {
		return
	}
	for _, what := range slices.Sorted(maps.Keys(r.Lost)) {
		why := "sessions of " + r.Agent + " cannot hold it"
		if what == "reasoning" {
			why = "its provider encrypted it for the original history, or it is another provider's"
		}
		p.text("not carried over: %s (%d): %s", what, r.Lost[what], why)
	}
	for _, note := range r.Notes {
		p.text("note: %s", note)
	}
	p.line("session: %s", r.Path)
	p.line("resume:  %s", r.Resume)
}
