// Package sessions finds and reads the sessions of coding agents on this machine: the files and
// databases in the places that package transcript knows of them. It writes nothing. All
// functions are safe for concurrent use.
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

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/thread"
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

// Find lists the sessions of an agent, or of all agents if it is empty, the newest first. A
// folder that cannot be read is an error only if nothing was found elsewhere.
func Find(agent string) ([]Session, error) {
	all, unread, err := Search(agent)
	if err == nil && len(all) == 0 {
		err = errors.Join(unread...)
	}
	return all, err
}

// Search is Find with the errors about what could not be read.
func Search(agent string) (all []Session, unread []error, err error) {
	if agent != "" && !slices.Contains(Agents(), agent) {
		return nil, nil, fmt.Errorf("%w: agent %q: known are %s", ErrName, agent, strings.Join(Agents(), ", "))
	}
	add := func(found []Session, err error) {
		all = append(all, found...)
		if err != nil {
			unread = append(unread, err)
		}
	}
	for _, name := range Agents() {
		switch f := transcript.Format(name); {
		case agent != "" && agent != name:
		case f.Place().Database:
			add(findInDatabases(f))
		default:
			add(findFiles(f))
		}
	}
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Path, b.Path))
	})
	return all, unread, nil
}

// AgentFolder returns the folder of an agent's settings.
func AgentFolder(agent string) (string, error) {
	if at, ok := settingsFolders[agent]; ok {
		return ownFolder(at.variable, at.home)
	}
	at := transcript.Format(agent).Place()
	return ownFolder(at.Variable, at.Home)
}

// settingsFolders are those of agents that keep their sessions elsewhere, or none.
var settingsFolders = map[string]struct{ variable, home string }{
	"opencode": {"OPENCODE_CONFIG_DIR", ".config/opencode"},
	"openclaw": {"OPENCLAW_STATE_DIR", ".openclaw"},
	"hermes":   {"HERMES_HOME", ".hermes"},
}

// ownFolder is a folder that a variable names, or else one below the user's home.
func ownFolder(variable, home string) (string, error) {
	own := os.Getenv(variable)
	if own != "" && (filepath.IsAbs(own) || !strings.HasPrefix(variable, "XDG_")) {
		return own, nil
	}
	if below, ok := strings.CutPrefix(home, ".config/"); ok && os.Getenv("XDG_CONFIG_HOME") != "" {
		return filepath.Join(os.Getenv("XDG_CONFIG_HOME"), below), nil
	}
	user, err := os.UserHomeDir()
	return filepath.Join(user, filepath.FromSlash(home)), err
}

func findFiles(f transcript.Format) (found []Session, err error) {
	root, err := Folder(f)
	if err != nil {
		return nil, err
	}
	parts, err := findParts(f, root)
	for _, name := range f.Place().Also {
		more, failed := findParts(f, filepath.Join(filepath.Dir(root), name))
		parts, err = append(parts, more...), errors.Join(err, failed)
	}
	found, missing := fold(parts)
	return found, errors.Join(err, missingError(f, missing))
}

// missingError says that sub-agents work for sessions that are not there; nil without any.
func missingError(f transcript.Format, subagents []string) error {
	if len(subagents) == 0 {
		return nil
	}
	return fmt.Errorf("sessions of %s: %d of sub-agents are not listed, since the session that they work for is not there; the first is %s", f, len(subagents), subagents[0])
}

// part is a file of a session, as Format.PartOf tells of it.
type part struct {
	Session
	of, number string
	subagent   bool
}

// findParts lists the files of sessions below a folder.
func findParts(f transcript.Format, root string) (found []part, err error) {
	at := f.Place()
	root, err = filepath.EvalSymlinks(root) // a walk does not follow a link
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sessions of %s: %w", f, err)
	}
	var failures error
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil && e != nil && e.IsDir() { // the others may be readable
			failures = errors.Join(failures, err)
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		if e.IsDir() && path != root && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir // such as Amp's of deleted threads
		}
		id, ok := idOf(e.Name(), at)
		if !e.Type().IsRegular() || !ok {
			return nil
		}
		info, err := e.Info()
		if err != nil || info.Size() == 0 {
			return nil // deleted meanwhile, or empty
		}
		s := Session{Agent: string(f), ID: id, Changed: info.ModTime(), Bytes: info.Size(), Path: path}
		if at.Project > 0 {
			s.Project = folderAbove(path, at.Project)
		}
		if at.ID > 0 {
			s.ID = folderAbove(path, at.ID)
		}
		p := part{Session: s}
		p.of, p.number, p.subagent = f.PartOf(path)
		found = append(found, p)
		return nil
	})
	return found, errors.Join(failures, err)
}

// folderAbove is the name of the folder so many levels above a file.
func folderAbove(path string, levels int) string {
	for range levels {
		path = filepath.Dir(path)
	}
	return filepath.Base(path)
}

// fold makes one session of the files of each, without those of sub-agents. A session that lies in
// several files goes on in the newest of them. missing are the files of sub-agents that name a
// session which is not there.
func fold(parts []part) (found []Session, missing []string) {
	newest, oldest := map[string]*part{}, map[string]*part{}
	worksFor := map[string]string{} // a sub-agent, and its session
	for i := range parts {
		p := &parts[i]
		if p.subagent {
			worksFor[p.ID] = p.of
			continue
		}
		if p.number == "" {
			p.of = p.Path // alone
		} else {
			p.ID = p.of
		}
		if n := newest[p.of]; n == nil || p.number > n.number {
			newest[p.of] = p
		}
		if o := oldest[p.of]; o == nil || p.number < o.number {
			oldest[p.of] = p
		}
	}
	count, ids := map[string]int{}, map[string]bool{}
	for _, p := range newest {
		ids[p.ID] = true
	}
	for i := range parts {
		if p := &parts[i]; p.subagent {
			session := p.of
			for range maxNested {
				if up, ok := worksFor[session]; ok {
					session = up
				}
			}
			if count[session]++; session != "" && !ids[session] {
				missing = append(missing, p.Path)
			}
		}
	}
	for i := range parts {
		p := &parts[i]
		if p.subagent || newest[p.of] != p {
			continue
		}
		p.Subagents = count[p.ID]
		p.first = oldest[p.of].Path
		found = append(found, p.Session)
	}
	return found, missing
}

// maxNested is how deep sub-agents have their own at most; beyond, they are not counted.
const maxNested = 8

// uuid matches the id at the end of a file's name.
var uuid = lazyregexp.New(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// idOf returns the id in the name of a session's file; ok is false if no session has such a name.
func idOf(name string, at transcript.Place) (id string, ok bool) {
	for _, suffix := range at.Suffixes {
		if id, ok = strings.CutSuffix(name, suffix); ok {
			break
		}
	}
	id, has := strings.CutPrefix(id, at.Prefix)
	if whole := uuid().FindString(id); whole != "" {
		id = whole
	}
	return id, ok && has
}

// Pick finds a session by its id, the beginning of its id, or its number in the list, from 1.
// Only a name too short for the beginning of an id is a number.
func Pick(all []Session, name string) (Session, error) {
	n, err := strconv.Atoi(name)
	switch number := err == nil && len(name) < suggest.MinID; {
	case number && n >= 1 && n <= len(all):
		return all[n-1], nil
	case number && n > len(all):
		return Session{}, fmt.Errorf("%w: there is no session number %d; `palimpsest sessions` lists %d", ErrName, n, len(all))
	}
	found := suggest.ByID(all, name, func(s Session) string { return s.ID })
	switch len(found) {
	case 0:
		return Session{}, fmt.Errorf("%w: %q is neither the number nor the id of a session; `palimpsest sessions` lists them", ErrName, name)
	case 1:
		return found[0], nil
	}
	return Session{}, fmt.Errorf("%w: %d ids begin with %q; give more of it", ErrName, len(found), name)
}

// Path returns the path for Open: the name itself if that file exists, else the path of the
// session with this id. Any other name is returned unchanged.
func Path(name string) string {
	if _, err := os.Lstat(name); err == nil || len(name) < suggest.MinID || strings.ContainsAny(name, `/\`) {
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

// Open is transcript.Open for sessions in databases too.
func Open(path string, o *transcript.Options) (*transcript.File, error) {
	if file, id, ok := splitDatabasePath(path); ok {
		return readSession(file, id, o, -1)
	}
	return transcript.Open(path, o)
}

// How much is read to find the first request: bytes of a file, messages of a database.
const (
	beginningBytes   = 1 << 20
	maxFirstMessages = 4
)

// FirstRequest returns the user's first message; empty if it cannot be found. It reads a file
// that is one document up to the limit, in bytes.
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

func (s Session) readBeginning(limit int) (*transcript.File, error) {
	if file, id, ok := splitDatabasePath(s.Path); ok {
		return readSession(file, id, nil, maxFirstMessages)
	}
	file, err := os.Open(cmp.Or(s.first, s.Path))
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
	if end := bytes.LastIndexByte(data, '\n'); int64(len(data)) == most && end > 0 && filepath.Ext(file.Name()) == ".jsonl" {
		data = data[:end+1]
	}
	return transcript.Read(bytes.NewReader(data), &transcript.Options{Format: transcript.Format(s.Agent), Name: s.ID, MaxLine: limit})
}

// FirstRequest returns the user's first message on one line; empty if there is none.
func FirstRequest(t *thread.Thread) string {
	for _, m := range t.All() {
		if words := strings.Fields(m.Text()); m.StartsTurn() && len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return ""
}
