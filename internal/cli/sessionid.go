package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// uuid is the id at the end of a file's name, behind what else stands in it.
var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// sessionID is the id in the name of a session's file.
func sessionID(name, prefix string) string {
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if id := uuid.FindString(name); id != "" {
		return id
	}
	return strings.TrimPrefix(name, prefix)
}

// leastID is how many characters of an id are enough to ask for it, where no other
// id begins so.
const leastID = 6

// pickSession finds the session of a number in the list, or of an id. What is too
// short for the beginning of an id is a number.
func pickSession(all []session, name string) (session, error) {
	n, err := strconv.Atoi(name)
	switch number := err == nil && len(name) < leastID; {
	case number && n >= 1 && n <= len(all):
		return all[n-1], nil
	case number && n > len(all):
		return session{}, fmt.Errorf("there are %s", plural(len(all), "session"))
	}
	var found []session
	for _, f := range all {
		if f.ID == name {
			return f, nil
		}
		if len(name) >= leastID && strings.HasPrefix(f.ID, name) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return session{}, fmt.Errorf("%w: %q is no number and no id of a session; `palimpsest sessions` lists them", errUsage, name)
	case 1:
		return found[0], nil
	}
	return session{}, fmt.Errorf("%w: %q is the beginning of %d ids; write more of it", errUsage, name, len(found))
}

// sessionFile is the path that a FILE means: the file, or where there is none of
// the name, the session with this id.
func sessionFile(name string) string {
	if _, err := os.Lstat(name); err == nil || len(name) < leastID || strings.ContainsAny(name, `/\`) {
		return name
	}
	all, err := findSessions("")
	if err != nil {
		return name
	}
	if found, err := pickSession(all, name); err == nil {
		return found.Path
	}
	return name
}

// beginning is how much of a session is read for its first words, in bytes.
const beginning = 1 << 20

// firstWords is what the user said first; empty where it cannot be found.
func (f *session) firstWords() string {
	file, err := os.Open(f.Path)
	if err != nil {
		return ""
	}
	defer file.Close()
	limit := int64(beginning)
	if filepath.Ext(f.Path) == ".json" {
		limit = maxInput // one document
	}
	data, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return ""
	}
	if end := bytes.LastIndexByte(data, '\n'); f.Bytes > limit && end > 0 {
		data = data[:end+1]
	}
	read, err := transcript.Read(bytes.NewReader(data), &transcript.Options{Format: transcript.Format(f.Agent), Name: f.ID, MaxLine: maxInput})
	if err != nil {
		return ""
	}
	for _, t := range read.Transcripts {
		if words := firstRequest(t.Thread); words != "" {
			return words
		}
	}
	return ""
}

// firstRequest is the beginning of what a person said first.
func firstRequest(t *thread.Thread) string {
	for _, m := range uncopied.All(t) {
		if m.StartsTurn() && strings.TrimSpace(m.Text()) != "" {
			return shorten(strings.Join(strings.Fields(m.Text()), " "), 200)
		}
	}
	return ""
}

// age is how long ago something was, in the largest unit that it fills.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
