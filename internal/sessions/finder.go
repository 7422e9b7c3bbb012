package sessions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Finder finds sessions: in the folders that the agents' variables name, in their usual ones, and in others.
// The zero value looks in no others, leaves nothing out and keeps nothing. All methods are safe for
// concurrent use.
type Finder struct {
	// Folders are more folders of agents, by the name of the agent. They hold what its usual one holds, such
	// as ~/.claude.
	Folders map[string][]string
	// Exclude are folders of projects, as whole paths. Sessions of agents that worked in them, or in a folder
	// below, are not found, and what was kept of them goes.
	Exclude []string
	// Keep is a folder for an index of what was read, which makes a list quick, and for the list last shown.
	// Empty keeps neither.
	Keep string
}

// folders are those of an agent, each once.
func (f *Finder) folders(agent transcript.Format) (all []string, err error) {
	at := agent.Place()
	own, err := ownFolder(at.Variable, at.Home)
	usual, failed := ownFolder("", at.Home)
	for _, folder := range f.Folders[string(agent)] {
		if _, missing := os.Stat(folder); missing != nil {
			err = errors.Join(err, fmt.Errorf("a folder of the settings for %s: %w", agent, missing))
		}
	}
	seen := map[string]bool{}
	for _, folder := range append([]string{own, usual}, f.Folders[string(agent)]...) {
		real := realPath(folder) // what cannot be read is told where it is looked at
		if folder != "" && !seen[real] {
			seen[real] = true
			all = append(all, folder)
		}
	}
	return all, errors.Join(err, failed)
}

// Find lists the sessions of an agent, or of all agents if it is empty, the newest first. A
// folder that cannot be read is an error only if nothing was found elsewhere.
func (f *Finder) Find(agent string) ([]Session, error) {
	all, unread, err := f.Search(agent)
	if err == nil && len(all) == 0 {
		err = errors.Join(unread...)
	}
	return all, err
}

// Search is Find with the errors about what could not be read. A session's About is set if the index
// knows it; Describe sets it for others.
func (f *Finder) Search(agent string) (all []Session, unread []error, err error) {
	if agent != "" && !slices.Contains(Agents(), agent) {
		return nil, nil, fmt.Errorf("%w: agent %q: known are %s", ErrName, agent, strings.Join(Agents(), ", "))
	}
	ix := f.openIndex()
	add := func(found []Session, err error) {
		all = append(all, found...)
		if err != nil {
			unread = append(unread, err)
		}
	}
	for _, name := range Agents() {
		switch format := transcript.Format(name); {
		case agent != "" && agent != name:
		case format.Place().Database:
			add(f.findInDatabases(format))
		default:
			add(f.findFiles(format, ix))
		}
	}
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Path, b.Path))
	})
	all = f.recall(ix, all)
	if agent == "" {
		ix.forget()
	}
	ix.save()
	return all, unread, nil
}

// recall sets what the index knows of the sessions, and takes out those of excluded projects.
func (f *Finder) recall(ix *index, all []Session) []Session {
	found := all
	all = all[:0]
	for _, s := range found {
		known, ok := ix.get(&s)
		if ok && known.About != nil {
			s.About, s.Read = *known.About, true
		} else if known.Excluded {
			continue
		}
		all = append(all, s)
	}
	if len(f.Exclude) == 0 {
		return all
	}
	describe(all) // only then it is known where the agent worked
	ix.keep(all, f.excludes)
	return slices.DeleteFunc(all, func(s Session) bool { return f.excludes(&s) })
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

func (f *Finder) findFiles(agent transcript.Format, ix *index) (found []Session, err error) {
	var parts []part
	at := agent.Place()
	folders, err := f.folders(agent)
	for _, folder := range folders {
		for _, name := range append([]string{at.Sub}, at.Also...) {
			more, failed := findParts(agent, filepath.Join(folder, name), ix)
			parts, err = append(parts, more...), errors.Join(err, failed)
		}
	}
	found, missing := fold(parts)
	return found, errors.Join(err, missingError(agent, missing))
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
func findParts(f transcript.Format, root string, ix *index) (found []part, err error) {
	at := f.Place()
	if root, err = filepath.EvalSymlinks(root); err != nil && !errors.Is(err, fs.ErrNotExist) { // a walk does not follow a link
		return nil, fmt.Errorf("sessions of %s: %w", f, err)
	}
	var failures error
	var visit fs.WalkDirFunc
	visit = func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil && e != nil && e.IsDir() { // the others may be readable
			failures = errors.Join(failures, err)
			return fs.SkipDir
		}
		if err != nil {
			return fmt.Errorf("sessions of %s: %w", f, err)
		}
		if e.IsDir() && path != root && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir // such as Amp's of deleted threads
		}
		if e.Type()&fs.ModeSymlink != 0 && filepath.Dir(path) == root { // a project may lie elsewhere
			if info, err := os.Stat(path); err == nil && info.IsDir() && !Within(realPath(path), root) && !Within(root, realPath(path)) {
				return filepath.WalkDir(path+string(filepath.Separator), visit)
			}
		}
		id, ok := idOf(e.Name(), at)
		project, own := at.Names(path)
		if !e.Type().IsRegular() || !ok || at.Below != "" && project == "" {
			return nil
		}
		info, err := e.Info()
		if err != nil || info.Size() == 0 {
			return nil // deleted meanwhile, or empty
		}
		s := Session{Agent: string(f), ID: cmp.Or(own, id), Project: project, Changed: info.ModTime(), Bytes: info.Size(), Path: path}
		known, ok := ix.get(&s)
		if !ok {
			known = indexed{}
			known.Of, known.Part, known.Subagent = f.PartOf(path)
			ix.note(&s, known)
		}
		if folder := filepath.Dir(path); !at.Flat || known.Subagent || folder == root || filepath.Dir(folder) == root {
			found = append(found, part{s, known.Of, known.Part, known.Subagent})
		}
		return nil
	}
	err = filepath.WalkDir(root, visit)
	return found, errors.Join(failures, err)
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

// Describe sets About of the sessions that have none, and keeps it in the index.
func (f *Finder) Describe(list []Session) {
	if describe(list) == 0 || f.Keep == "" {
		return
	}
	ix := f.openIndex()
	ix.keep(list, f.excludes)
	ix.save()
}

// InUse are up to n of the sessions, in their order, without those that are unused.
func (f *Finder) InUse(all []Session, n int) (used []Session) {
	for i := 0; i < len(all) && len(used) < n; i++ {
		if f.Describe(all[i : i+1]); !all[i].Unused() {
			used = append(used, all[i])
		}
	}
	return used
}

// Shown notes the list that was shown, for the numbers in it.
func (f *Finder) Shown(list []Session) {
	if f.Keep != "" {
		writeOwn(filepath.Join(f.Keep, shownName), list)
	}
}

// Resolve finds the session that a name means: its number in the list last shown, from 1, its id, or the
// beginning of that. found is false for the name of a file, and for what names no session. The error wraps
// ErrName: there is no such number, or several ids begin so.
func (f *Finder) Resolve(name string) (s Session, found bool, err error) {
	if _, err := os.Lstat(name); err == nil || name == "" || name == "-" || strings.ContainsAny(name, `/\`) {
		return Session{}, false, nil
	}
	if number, err := strconv.Atoi(name); err == nil && len(name) < suggest.MinID && f.Keep != "" {
		var list []Session // the one that was shown last
		if data, err := os.ReadFile(filepath.Join(f.Keep, shownName)); err == nil && json.Unmarshal(data, &list) == nil {
			return pickNumber(list, number)
		}
	}
	all, err := f.Find("")
	if err != nil {
		return Session{}, false, nil // the name is told
	}
	s, found, err = Pick(all, name)
	return s, found, err
}

func pickNumber(list []Session, n int) (s Session, found bool, err error) {
	if n < 1 || n > len(list) {
		return Session{}, false, fmt.Errorf("%w: there is no session number %d; the list last shown has %d, and `palimpsest sessions` shows all", ErrName, n, len(list))
	}
	return list[n-1], true, nil
}

// Pick finds a session by its id, the beginning of its id, or its number in the list, from 1. found is
// false if there is none; the error wraps ErrName.
func Pick(all []Session, name string) (s Session, found bool, err error) {
	ids := suggest.ByID(all, name, func(s Session) string { return s.ID })
	if n, err := strconv.Atoi(name); len(ids) == 0 && err == nil && len(name) < suggest.MinID {
		return pickNumber(all, n)
	}
	if len(ids) <= 1 {
		s = append(ids, Session{})[0]
		for _, other := range all {
			if len(ids) == 1 && other.ID == s.ID && other.Path != s.Path {
				s.Twins = append(s.Twins, other.Path)
			}
		}
		return s, len(ids) == 1, nil
	}
	var told []string
	for _, one := range ids[:min(len(ids), maxTold)] {
		told = append(told, one.ID+" of "+one.Agent+" ("+one.Path+")")
	}
	return Session{}, false, fmt.Errorf("%w: %d ids of sessions begin with %q: %s; give more of it, a path or a number of the list", ErrName, len(ids), name, strings.Join(told, ", "))
}

// maxTold is how many ids an error names.
const maxTold = 5
