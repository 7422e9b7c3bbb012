package sessions

import (
	"bytes"
	"cmp"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// About is what a session is about, as far as its beginning and its end tell. The zero value is a session
// that has not been read, or that tells nothing.
type About struct {
	// Title is the name that the agent or its user gave.
	Title string `json:"title,omitempty"`
	// First is the beginning of the user's first message, on one line.
	First string `json:"first,omitempty"`
	// Dir is the folder that the agent worked in.
	Dir string `json:"directory,omitempty"`
	// Tokens is the size of the newest request with its answer, as the agent counted; 0 if it does not say.
	Tokens int `json:"tokens,omitempty"`
}

// WrittenTitle begins the title of a session that Palimpsest wrote.
const WrittenTitle = "[palimpsest]"

// Unused reports whether Palimpsest wrote the session, and no agent has gone on with it.
func (a About) Unused() bool { return a.Tokens == 0 && strings.HasPrefix(a.Title, WrittenTitle) }

// How much of a file is read to find out, in bytes: of its beginning, more of it if that shows no request,
// and of its end. One document is read whole, up to maxDocument.
const (
	beginningBytes = 256 << 10
	longBeginning  = 2 << 20
	packedBytes    = 64 << 10
	endingBytes    = 256 << 10
	maxDocument    = 64 << 20
	// maxFirstMessages is how many messages of a database are read for the first request.
	maxFirstMessages = 4
	// maxFirst limits About.First, in bytes.
	maxFirst = 1000
)

// describe sets About of the sessions that have none, and says how many those were.
func describe(list []Session) int {
	var unread []*Session
	for i := range list {
		if !list[i].Read {
			unread = append(unread, &list[i])
		}
	}
	effort.Each(len(unread), 2, func(i int) { unread[i].About, unread[i].Read = unread[i].about(), true })
	return len(unread)
}

// FirstRequest returns the user's first message, or its beginning; empty if it cannot be found.
func (s Session) FirstRequest() string {
	if s.Read {
		return s.First
	}
	return s.about().First
}

func (s Session) about() (a About) {
	file, id, inDatabase := splitDatabasePath(s.Path)
	if inDatabase {
		if read, err := readSession(file, id, nil, maxFirstMessages); err == nil {
			a.add(read)
		}
		var record string                               // of the newest request
		_ = withDatabase(file, func(db *sql.DB) error { // other versions may have no such column
			return db.QueryRow(generationOf(db, id).usage, id).Scan(&record)
		})
		a.Tokens = usageOf(gjson.Parse(record))
		a.Dir = cmp.Or(a.Dir, s.Project)
		return a
	}
	a.Title, a.Dir = transcript.Format(s.Agent).Place().About(s.Path)
	a.Title = clip.Line(a.Title, maxFirst)
	for _, most := range []int64{beginningBytes, longBeginning} {
		data, end, whole := s.ends(most)
		read, err := transcript.Read(bytes.NewReader(data), &transcript.Options{Format: transcript.Format(s.Agent), Name: s.ID, MaxLine: maxDocument})
		if err == nil {
			a.add(read)
		}
		a.Tokens = usageIn(end, filepath.Ext(s.Path) == ".json")
		if whole || a.First != "" {
			break
		}
	}
	return a
}

// add takes what a file tells.
func (a *About) add(file *transcript.File) {
	for _, t := range file.Transcripts {
		a.Title, a.Dir = cmp.Or(a.Title, clip.Line(t.Title, maxFirst)), cmp.Or(a.Dir, t.Dir)
		a.First = cmp.Or(a.First, FirstRequest(t.Thread))
	}
}

// ends reads the beginning of a session, up to so many bytes, with its end, which is given alone too: in
// whole lines. whole reports whether that is all.
func (s Session) ends(most int64) (data, end []byte, whole bool) {
	first := cmp.Or(s.first, s.Path)
	kind := filepath.Ext(first)
	switch kind {
	case ".json":
		most = maxDocument
	case ".zst":
		most = most / beginningBytes * packedBytes
	}
	data, size := readPart(first, 0, most)
	switch whole = int64(len(data)) >= size; {
	case kind == ".zst":
		return data, nil, whole
	case kind == ".json" || whole && first == s.Path:
		return data, data, true
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	from := s.Bytes - endingBytes
	if first == s.Path {
		from = max(from, int64(len(data)))
	}
	end, _ = readPart(s.Path, max(0, from), endingBytes)
	if from > int64(len(data)) {
		_, end, _ = bytes.Cut(end, []byte{'\n'})
	}
	return append(data, end...), end, false
}

// readPart reads a part of a file, as far as it is there, and says how large the file is.
func readPart(path string, from, most int64) (data []byte, size int64) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	data = make([]byte, max(0, min(most, size-from)))
	n, _ := io.ReadFull(io.NewSectionReader(f, from, most), data)
	return data[:n], size
}

// usages are how agents note the size of a request and its answer: the sum of the members add of what is
// at a path of a record.
var usages = []struct {
	at      string
	add     []string
	example string // of 12 tokens
}{
	{"message.usage", []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}, `{"message":{"usage":{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":4,"output_tokens":5}}}`}, // Claude Code
	{"payload.info.last_token_usage", []string{"total_tokens"}, `{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"total_tokens":12}}}}`},                                                                             // Codex
	{"message.usage", []string{"input", "cacheRead", "cacheWrite", "output"}, `{"type":"message","message":{"usage":{"input":1,"cacheRead":2,"cacheWrite":4,"output":5}}}`},                                                                          // pi
	{"tokens", []string{"total"}, `{"type":"gemini","tokens":{"input":4,"output":8,"total":12}}`},                                                                                                                                                    // Gemini CLI
	{"tokens", []string{"input", "output", "reasoning", "cache.read", "cache.write"}, `{"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":2}}}`},                                                                                // opencode, Kilo
	{"usageMetadata", []string{"totalTokenCount"}, `{"type":"assistant","usageMetadata":{"totalTokenCount":12}}`},                                                                                                                                    // Qwen Code
	{"usage", []string{"inputOther", "inputCacheRead", "inputCacheCreation", "output"}, `{"type":"usage.record","usage":{"inputOther":1,"output":2,"inputCacheRead":4,"inputCacheCreation":5}}`},                                                     // Kimi Code
	{"session", []string{"total_tokens", "prompt_tokens", "completion_tokens"}, `{"session":{"prompt_tokens":9,"completion_tokens":3}}`},                                                                                                             // Goose, Crush
}

// usageIn is the newest size that records note, in lines or in the messages of one document.
func usageIn(text []byte, document bool) (tokens int) {
	if document {
		for m := range rawjson.Items(gjson.GetBytes(text, "messages")) {
			tokens = cmp.Or(usageOf(m), tokens)
		}
		return tokens
	}
	for len(text) > 0 && tokens == 0 {
		text = bytes.TrimRight(text, "\r\n")
		at := bytes.LastIndexByte(text, '\n') + 1
		if line := text[at:]; bytes.Contains(line, []byte("oken")) || bytes.Contains(line, []byte(`"usage"`)) {
			tokens = usageOf(gjson.ParseBytes(line))
		}
		text = text[:at]
	}
	return tokens
}

// usageOf is the size that a record notes; 0 if it notes none, or that of a sub-agent's request.
func usageOf(record gjson.Result) int {
	if record.Get("isSidechain").Bool() {
		return 0
	}
	for _, u := range usages {
		sum := 0
		if at := record.Get(u.at); at.IsObject() {
			for _, member := range u.add {
				sum += int(at.Get(member).Int())
			}
		}
		if sum > 0 {
			return sum
		}
	}
	return 0
}

// commandTags leaves of a command its name and its arguments, as they were typed.
var commandTags = strings.NewReplacer("<command-name>", "", "</command-name>", " ", "<command-args>", "", "</command-args>", "")

// FirstRequest returns the beginning of the user's first message, on one line; empty if there is none.
func FirstRequest(t *thread.Thread) string {
	for _, m := range t.All() {
		if !m.StartsTurn() {
			continue
		}
		text := m.Text()
		if injected.Command(text) != "" {
			text = commandTags.Replace(injected.UserWords(m))
		}
		if words := strings.Fields(clip.Short(text, 4*maxFirst)); len(words) > 0 {
			return clip.Short(strings.Join(words, " "), maxFirst)
		}
	}
	return ""
}
