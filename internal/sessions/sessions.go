// Package sessions finds the sessions that coding agents left on this machine, and
// reads them: files of Claude Code, Codex, pi and Gemini CLI, and the database of
// opencode. It writes nothing. All functions are safe for concurrent use.
package sessions

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/closest"
	"github.com/palimpsest-ai/palimpsest/internal/pattern"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// ErrName is wrapped by errors about names that no agent or session has, or several.
var ErrName = errors.New("unknown name")

// Session is a conversation that an agent keeps.
type Session struct {
	// ID is what the agent calls it, as far as the name of the file says so.
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// Project is the folder that the agent worked in, as the agent writes it.
	Project string    `json:"project,omitempty"`
	Changed time.Time `json:"changed"`
	Bytes   int64     `json:"bytes"`
	// Path is what Open takes: a file, or a database with the id behind "#".
	Path string `json:"path"`
}

// folder is where an agent keeps its sessions as files.
type folder struct {
	agent string
	// sub is the folder of sessions in it; the files are those whose name begins
	// and ends so, at any depth.
	sub, prefix string
	suffixes    []string
	// project is how many folders above the file the project is named; 0 is
	// nowhere.
	project int
}

// folders are those of the agents whose session files can be read.
var folders = []folder{
	{"claude-code", "projects", "", []string{".jsonl"}, 1},
	{"codex", "sessions", "rollout-", []string{".jsonl"}, 0},
	{"pi", "sessions", "", []string{".jsonl"}, 1},
	{"gemini-cli", "tmp", "session-", []string{".json", ".jsonl"}, 2},
}

// Agents are those whose sessions are found, by the names of their formats.
func Agents() []string {
	var names []string
	for _, f := range folders {
		names = append(names, f.agent)
	}
	return append(names, openCode)
}

// Folder is where an agent keeps its sessions; empty where it keeps no files.
func Folder(agent string) (string, error) {
	for _, f := range folders {
		if f.agent == agent {
			return f.root()
		}
	}
	return "", nil
}

// Find lists the sessions of one agent, or of all where it is empty, the newest
// first. A place that is not there has none; one that cannot be read is an error only
// when nothing else was found.
func Find(agent string) ([]Session, error) {
	if agent != "" && !slices.Contains(Agents(), agent) {
		return nil, fmt.Errorf("%w: agent %q: known are %s", ErrName, agent, strings.Join(Agents(), ", "))
	}
	var all []Session
	var failures error
	add := func(found []Session, err error) {
		all, failures = append(all, found...), errors.Join(failures, err)
	}
	for _, f := range folders {
		if agent == "" || agent == f.agent {
			add(f.find())
		}
	}
	if agent == "" || agent == openCode {
		add(findOpenCode())
	}
	if len(all) == 0 && failures != nil {
		return nil, failures
	}
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Path, b.Path))
	})
	return all, nil
}

// AgentFolder is where an agent keeps what is its own, its settings too.
func AgentFolder(agent string) (string, error) {
	at := agentFolders[agent]
	if own := os.Getenv(at.variable); own != "" {
		return own, nil
	}
	if below, ok := strings.CutPrefix(at.home, ".config/"); ok && os.Getenv("XDG_CONFIG_HOME") != "" {
		return filepath.Join(os.Getenv("XDG_CONFIG_HOME"), below), nil
	}
	user, err := os.UserHomeDir()
	return filepath.Join(user, filepath.FromSlash(at.home)), err
}

// agentFolders are the folders that a variable of the environment names, or else those
// below the user's own.
var agentFolders = map[string]struct{ variable, home string }{
	"claude-code": {"CLAUDE_CONFIG_DIR", ".claude"},
	"codex":       {"CODEX_HOME", ".codex"},
	"pi":          {"PI_CODING_AGENT_DIR", ".pi/agent"},
	"gemini-cli":  {"", ".gemini"},
	openCode:      {"OPENCODE_CONFIG_DIR", ".config/opencode"},
	"openclaw":    {"OPENCLAW_STATE_DIR", ".openclaw"},
	"hermes":      {"HERMES_HOME", ".hermes"},
}

// root is the folder that the agent's sessions stand in.
func (f folder) root() (string, error) {
	own, err := AgentFolder(f.agent)
	return filepath.Join(own, f.sub), err
}

func (f folder) find() (found []Session, err error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), f.prefix) || !slices.Contains(f.suffixes, filepath.Ext(e.Name())) {
			return nil
		}
		info, err := e.Info()
		if err != nil || info.Size() == 0 {
			return nil // it went away meanwhile, or holds no message
		}
		s := Session{Agent: f.agent, ID: idOf(e.Name(), f.prefix), Changed: info.ModTime(), Bytes: info.Size(), Path: path}
		above := path
		for range f.project {
			above = filepath.Dir(above)
		}
		if f.project > 0 {
			s.Project = filepath.Base(above)
		}
		found = append(found, s)
		return nil
	})
	return found, err
}

// uuid is the id at the end of a file's name, behind what else stands in it.
var uuid = pattern.New(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// idOf is the id in the name of a session's file.
func idOf(name, prefix string) string {
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if id := uuid().FindString(name); id != "" {
		return id
	}
	return strings.TrimPrefix(name, prefix)
}

// Pick finds the session of a number in the list, from 1, of an id, or of the
// beginning of an id. What is too short for a beginning is a number.
func Pick(all []Session, name string) (Session, error) {
	n, err := strconv.Atoi(name)
	switch number := err == nil && len(name) < closest.MinID; {
	case number && n >= 1 && n <= len(all):
		return all[n-1], nil
	case number && n > len(all):
		return Session{}, fmt.Errorf("there are %d sessions", len(all))
	}
	found := closest.ByID(all, name, func(s Session) string { return s.ID })
	switch len(found) {
	case 0:
		return Session{}, fmt.Errorf("%w: %q is no number and no id of a session; `palimpsest sessions` lists them", ErrName, name)
	case 1:
		return found[0], nil
	}
	return Session{}, fmt.Errorf("%w: %q is the beginning of %d ids; write more of it", ErrName, name, len(found))
}

// Path is what Open takes for a name: the name of a file that is there, or else the
// path of the session with this id. Any other name comes back as it is.
func Path(name string) string {
	if _, err := os.Lstat(name); err == nil || len(name) < closest.MinID || strings.ContainsAny(name, `/\`) {
		return name
	}
	all, err := Find("")
	if err != nil {
		return name
	}
	if found, err := Pick(all, name); err == nil {
		return found.Path
	}
	return name
}

// Open reads a file, or a session of a database, as transcript.Open does.
func Open(path string, o *transcript.Options) (*transcript.File, error) {
	if file, id, ok := splitDatabasePath(path); ok {
		return readDocument(file, id, o, -1)
	}
	return transcript.Open(path, o)
}

// beginningBytes is how much of a session's file is read for its first request, in bytes,
// and firstMessages how many messages of a database.
const (
	beginningBytes   = 1 << 20
	maxFirstMessages = 4
)

// FirstRequest is what the user said first in a session; empty where it cannot be found. A
// file that is one document is read up to the limit, in bytes.
func (s Session) FirstRequest(limit int) string {
	read, err := s.readBeginning(limit)
	if err != nil {
		return ""
	}
	for _, t := range read.Transcripts {
		if words := FirstRequest(t.Thread); words != "" {
			return words
		}
	}
	return ""
}

// readBeginning reads the beginning of a session.
func (s Session) readBeginning(limit int) (*transcript.File, error) {
	if file, id, ok := splitDatabasePath(s.Path); ok {
		return readDocument(file, id, nil, maxFirstMessages)
	}
	file, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	most := int64(beginningBytes)
	if filepath.Ext(s.Path) == ".json" {
		most = int64(limit) // one document
	}
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, err
	}
	if end := bytes.LastIndexByte(data, '\n'); s.Bytes > most && end > 0 {
		data = data[:end+1]
	}
	return transcript.Read(bytes.NewReader(data), &transcript.Options{Format: transcript.Format(s.Agent), Name: s.ID, MaxLine: limit})
}

// FirstRequest is the text with which a person opened a conversation, on one line;
// empty where nobody did.
func FirstRequest(t *thread.Thread) string {
	for _, m := range uncopied.All(t) {
		if words := strings.Fields(m.Text()); m.StartsTurn() && len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return ""
}
