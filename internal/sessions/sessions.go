// Package sessions finds and reads the sessions of coding agents on this machine: the files and
// databases in the places that package transcript knows of them. It writes nothing. All
// functions are safe for concurrent use.
package sessions

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// ErrName is wrapped by errors about unknown or ambiguous names of agents and sessions.
var ErrName = errors.New("unknown name")

// Session is a saved conversation of an agent.
type Session struct {
	ID    string `json:"id"` // from the name of the file
	Agent string `json:"agent"`
	// Project is the agent's working folder, in the agent's own notation.
	Project string    `json:"project,omitempty"`
	Changed time.Time `json:"changed"`
	Bytes   int64     `json:"bytes"`
	// Path is for Open: a file, or a database followed by "#" and the id. Of a session in several
	// files it is the one to which the agent adds.
	Path string `json:"path"`
	// Subagents counts the files of sub-agents that work for it, which are not listed.
	Subagents int `json:"subagents,omitempty"`
	About
	// Read reports whether About is known.
	Read bool `json:"-"`

	// Twins are the paths of older sessions with the same id, where Pick took this one by it.
	Twins []string `json:"-"`

	first string // the file that the session begins in, if that is another
}

// Agents returns the agents whose sessions are found, by the names of their formats.
func Agents() (names []string) {
	for _, f := range transcript.Formats() {
		if f.Place().Sub != "" {
			names = append(names, string(f))
		}
	}
	return names
}

// Folder returns where an agent keeps its session files; empty if it has none.
func Folder(agent transcript.Format) (string, error) {
	at := agent.Place()
	if at.Sub == "" || at.Database {
		return "", nil
	}
	own, err := ownFolder(at.Variable, at.Home)
	return filepath.Join(own, at.Sub), err
}

// SettingsFolders returns the folders of an agent's settings, whether they are there or not: first
// the one that it uses now, then the usual one if its variable names another.
func SettingsFolders(agent string) ([]string, error) {
	at, elsewhere := settingsFolders[agent]
	if !elsewhere {
		place := transcript.Format(agent).Place()
		at.variable, at.home = place.Variable, place.Home
	}
	own, err := ownFolder(at.variable, at.home)
	if err != nil {
		return nil, err
	}
	usual, err := ownFolder("", at.home)
	if err != nil || usual == own {
		return []string{own}, err
	}
	return []string{own, usual}, nil
}

// settingsFolders are those of agents that keep their sessions elsewhere, or none.
var settingsFolders = map[string]struct{ variable, home string }{
	"opencode": {"OPENCODE_CONFIG_DIR", ".config/opencode"},
	"openclaw": {"OPENCLAW_STATE_DIR", ".openclaw"},
	"hermes":   {"HERMES_HOME", ".hermes"},
	"kilo":     {"", ".config/kilo"},
	"crush":    {"", ".config/crush"},
	"amp":      {"", ".config/amp"},
}

// Open is transcript.Open for sessions in databases too.
func Open(path string, o *transcript.Options) (*transcript.File, error) {
	if file, id, ok := splitDatabasePath(path); ok {
		return readSession(file, id, o, -1)
	}
	return transcript.Open(path, o)
}
