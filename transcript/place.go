package transcript

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"
)

// Place is where an agent keeps its sessions on disk. The zero value is none.
type Place struct {
	// Variable names the agent's folder in the environment. Home is the folder without it, in
	// that of the user, with slashes.
	Variable, Home string
	// Sub is the folder of the sessions in that of the agent, and Also are others beside it. The files
	// below them, at any depth, have names with Prefix and one of Suffixes.
	Sub      string
	Also     []string
	Prefix   string
	Suffixes []string
	// Project is how many levels up the folder is that is named after the project, and ID how many
	// the one that is named after the session; 0 for none.
	Project, ID int
	// Flat: what lies deeper than the folders of projects are sub-agents, or no sessions.
	Flat bool
	// Below is the folder in that of the project, instead, which has the files at any depth; no others are
	// sessions. Empty for none.
	Below string
	// Projects is a file in Sub that lists the projects, which have the databases: in "projects" the
	// "path" of each, and the "data_dir" where its database is. Empty if Sub has them.
	Projects string
	// State is a file of JSON in the folder of a session, with its title and, in "cwd", its working folder.
	// Empty if the session's own file says them.
	State string
	// Database: each file, in Sub itself, is a database of many sessions.
	Database bool
}

// Place is where the agent keeps its sessions on disk.
func (f Format) Place() Place { return f.row().place }

// Names are the folders above a session's file that are named after its project and after the session; empty for
// none.
func (p Place) Names(file string) (project, id string) {
	for dir := filepath.Dir(file); p.Below != "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == p.Below {
			return filepath.Base(filepath.Dir(dir)), ""
		}
	}
	for level := range max(p.Project, p.ID) {
		file = filepath.Dir(file)
		if level+1 == p.Project {
			project = filepath.Base(file)
		}
		if level+1 == p.ID {
			id = filepath.Base(file)
		}
	}
	return project, id
}

// About is what a session's file of State says of it; empty without one.
func (p Place) About(session string) (title, dir string) {
	if p.State == "" || session == "" {
		return "", ""
	}
	for range p.ID {
		session = filepath.Dir(session)
	}
	v := gjson.ParseBytes(regularFile(filepath.Join(session, p.State), readSize))
	return v.Get("title").Str, firstText(v, "cwd", "workDir")
}

// regularFile is what stands in a file, which is no link; nil if it is longer, or cannot be read.
func regularFile(path string, limit int64) []byte {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil
	}
	data, _ := os.ReadFile(path) // or it is gone meanwhile
	return data
}

// PartOf says what the name of a session's file of the agent, and its beginning, tell of the session.
// The id is the agent's of the session, or empty if only the file names it; for the file of a
// sub-agent it is that of the session that it works for, or empty if it does not say. part is
// set where a session lies in several files: the newest has the highest.
func (f Format) PartOf(path string) (id, part string, subagent bool) {
	dir := filepath.Dir(path)
	switch {
	case (f == "claude-code" || f == "cursor") && filepath.Base(dir) == subagentFolder:
		return filepath.Base(filepath.Dir(dir)), "", true
	case f == "kimi-code" && filepath.Base(dir) != kimiMain:
		return filepath.Base(filepath.Dir(filepath.Dir(dir))), "", true
	}
	if first := firstLine(path); isSubagent(f, first) {
		for _, row := range subagents {
			if row.format == f && row.parent != "" {
				id = first.Get(row.parent).String()
			}
		}
		return id, "", true
	}
	if r, ok := rolloutOf(path); ok && f == "codex" {
		return r.thread, r.id, false
	}
	return "", "", false
}

// subagentFolder is where Claude Code and Cursor keep the sub-agents of a session.
const subagentFolder = "subagents"

// kimiMain is the folder of the agent with which a person speaks, beside those of its sub-agents.
const kimiMain = "main"

// firstLine is the first line of a file, or its beginning: gjson finds what stands in that.
func firstLine(path string) gjson.Result {
	f, err := os.Open(path)
	if err != nil {
		return gjson.Result{}
	}
	defer f.Close()
	r, err := unpack(bufio.NewReaderSize(f, readSize), defaultMaxLine)
	if err != nil {
		return gjson.Result{}
	}
	line, _ := r.ReadSlice('\n') // as far as the buffer goes
	return gjson.Parse(strings.TrimPrefix(string(line), "\ufeff"))
}
