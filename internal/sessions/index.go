package sessions

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// index keeps what was read of sessions, so that only what changed is read again. It is a file of its
// owner. One that is broken or of another version is made anew, and one that cannot be written is not kept.
type index struct {
	Version int `json:"version"`
	// Exclude are the projects that are left out: nothing is kept of them.
	Exclude []string `json:"exclude,omitempty"`
	// Files are by path; a session in a database has a path of its own.
	Files map[string]indexed `json:"files"`

	path    string   // empty for none
	read    []string // Exclude of the file that was read
	changed bool
	seen    map[string]bool // files that were asked for
	put     map[string]bool // files that were noted
	gone    map[string]indexed
}

// indexVersion is that of the file's form, and of what is read of sessions.
const indexVersion = 2

// indexed is what was read of a file, when it had that size and was changed at that time.
type indexed struct {
	Bytes    int64  `json:"bytes"`
	Changed  int64  `json:"changed"` // in Unix nanoseconds
	Of       string `json:"of,omitempty"`
	Part     string `json:"part,omitempty"`
	Subagent bool   `json:"subagent,omitempty"`
	About    *About `json:"about,omitempty"` // nil if that was not read
	Excluded bool   `json:"excluded,omitempty"`
	// Note is what somebody else found out of it.
	Note json.RawMessage `json:"note,omitempty"`
}

// indexName and shownName are the files in Finder.Keep.
const indexName, shownName = "sessions.json", "sessions-shown.json"

// maxIndex limits the index, in bytes.
const maxIndex = 256 << 20

// openIndex reads the index. What it holds of projects that are left out now goes.
func (f *Finder) openIndex() *index {
	ix := &index{Version: indexVersion, Exclude: f.Exclude, Files: map[string]indexed{}, seen: map[string]bool{}, put: map[string]bool{}, gone: map[string]indexed{}}
	if f.Keep == "" {
		return ix
	}
	ix.path = filepath.Join(f.Keep, indexName)
	old, ok := readIndex(ix.path)
	if !ok {
		return ix
	}
	ix.Files, ix.read = old.Files, old.Exclude
	if !slices.Equal(old.Exclude, f.Exclude) {
		ix.changed = true
		_ = os.Remove(filepath.Join(f.Keep, shownName))
		for path, file := range ix.Files {
			if file.Excluded || file.About != nil && f.excludesDir(file.About.Dir) {
				file.About, file.Note, file.Excluded = nil, nil, false // it is looked at again
				ix.Files[path] = file
			}
		}
	}
	return ix
}

// readIndex reads the file of an index. It is false if that is none, or of another version.
func readIndex(path string) (ix index, ok bool) {
	if info, err := os.Stat(path); err != nil || info.Size() > maxIndex {
		return ix, false
	}
	data, err := os.ReadFile(path)
	return ix, err == nil && json.Unmarshal(data, &ix) == nil && ix.Version == indexVersion && ix.Files != nil
}

// get returns what was read of a session's file, if it has not changed since.
func (ix *index) get(s *Session) (file indexed, ok bool) {
	file, ok = ix.Files[s.Path]
	ix.seen[s.Path] = true
	return file, ok && file.Bytes == s.Bytes && file.Changed == s.Changed.UnixNano()
}

func (ix *index) note(s *Session, file indexed) {
	file.Bytes, file.Changed = s.Bytes, s.Changed.UnixNano()
	ix.Files[s.Path] = file
	ix.put[s.Path], ix.changed = true, true
}

// Noted returns what was noted of a session, as long as it has not changed since; nil for nothing.
func (f *Finder) Noted(s *Session) json.RawMessage {
	file, ok := f.openIndex().get(s)
	if !ok {
		return nil
	}
	return file.Note
}

// Note keeps what was found out of a session, as JSON, until the session changes. Nothing is kept without Keep, and
// nothing of a session that Search has not found.
func (f *Finder) Note(s *Session, what json.RawMessage) {
	ix := f.openIndex()
	if file, ok := ix.get(s); ok {
		file.Note = what
		ix.note(s, file)
		ix.save()
	}
}

// keep notes what the sessions are about, and which are left out.
func (ix *index) keep(list []Session, excluded func(*Session) bool) {
	for i := range list {
		s := &list[i]
		file, ok := ix.get(s)
		if !s.Read || ok && (file.About != nil || file.Excluded) {
			continue
		}
		if file.Excluded = excluded(s); !file.Excluded {
			about := s.About
			file.About = &about
		}
		ix.note(s, file)
	}
}

// forget takes out the files that are no more, when all were asked for.
func (ix *index) forget() {
	for path := range ix.Files {
		if !ix.seen[path] {
			ix.gone[path] = ix.Files[path]
			delete(ix.Files, path)
			ix.changed = true
		}
	}
}

// save writes the index if it changed. What another command noted meanwhile stays; where it left out other
// projects, its index is the newer one, and nothing of this one comes back.
func (ix *index) save() {
	if !ix.changed || ix.path == "" {
		return
	}
	if now, ok := readIndex(ix.path); ok && slices.Equal(now.Exclude, ix.Exclude) {
		for path, file := range now.Files {
			if was, gone := ix.gone[path]; !ix.put[path] && !(gone && was.Bytes == file.Bytes && was.Changed == file.Changed) {
				ix.Files[path] = file
			}
		}
	} else if ok && !slices.Equal(now.Exclude, ix.read) {
		return
	}
	writeOwn(ix.path, ix)
}

// writeOwn writes a value to a file that only its owner can read. What cannot be kept is read again.
func writeOwn(path string, value any) {
	data, err := json.Marshal(value)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // only its owner can read it
	if err != nil {
		return
	}
	_, err = made.Write(data)
	if made.Close() != nil || err != nil || os.Rename(made.Name(), path) != nil {
		os.Remove(made.Name())
	}
}

// excludes reports whether a session's project is left out. Where the session does not say in which folder
// it was, the agent's own name for the folder counts.
func (f *Finder) excludes(s *Session) bool {
	if s.Dir != "" {
		return f.excludesDir(s.Dir)
	}
	return slices.ContainsFunc(f.Exclude, func(folder string) bool {
		sum := sha256.Sum256([]byte(folder))
		flat := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return '-'
		}, folder)
		if s.Agent == "cursor" {
			flat = strings.TrimLeft(flat, "-")
		}
		return s.Project == flat || strings.HasPrefix(s.Project, flat+"-") || s.Project == hex.EncodeToString(sum[:]) || s.Project == filepath.Base(folder)
	})
}

func (f *Finder) excludesDir(dir string) bool {
	return slices.ContainsFunc(f.Exclude, func(folder string) bool { return Within(dir, folder) || Within(realPath(dir), realPath(folder)) })
}

// Within reports whether a file or folder is a folder, or lies in it.
func Within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// realPath is a path without links; what cannot be followed stays.
func realPath(path string) string {
	real, _ := filepath.EvalSymlinks(path)
	return cmp.Or(real, filepath.Clean(path))
}
