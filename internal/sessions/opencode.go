package sessions

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // reads opencode's database

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// opencode keeps its sessions in a database, with a row of JSON for each session, message and, before
// version 2, part. Version 2 has tables of its own; those before stay as they were at the upgrade.

// generation are the tables of a generation of opencode, and the query for the first messages of a session:
// the id of each, its type, its data, and the id and data of each of its parts.
type generation struct{ session, message, content, messages string }

// generations begin with the newest: of a session in several that one is alive.
var generations = []generation{
	{"session_v2", "session_message", "session_message", `SELECT id, type, data, '', '' FROM session_message WHERE session_id = ? ORDER BY seq, id LIMIT ?`},
	{"session", "message", "part", `SELECT m.id, '', m.data, coalesce(p.id, ''), coalesce(p.data, '') FROM
		(SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?) m
		LEFT JOIN part p ON p.message_id = m.id ORDER BY m.time_created, m.id, p.id`},
}

// has reports whether a session of the generation is there, with a message; any if id is empty.
func (g generation) has(db *sql.DB, id string) bool {
	var n int
	if db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN (?, ?)`, g.session, g.message).Scan(&n) != nil || n < 2 {
		return false
	}
	return id == "" || db.QueryRow(`SELECT 1 FROM `+g.session+` s WHERE id = ? AND EXISTS (SELECT 1 FROM `+g.message+` WHERE session_id = s.id)`, id).Scan(&n) == nil
}

// list lists the sessions of a generation, without those of sub-agents.
func (g generation) list(db *sql.DB, add func(s Session)) error {
	// octet_length does not read the content.
	rows, err := db.Query(fmt.Sprintf(`SELECT id, directory, time_updated, (SELECT coalesce(sum(octet_length(data)), 0) FROM %s WHERE session_id = s.id),
		(SELECT count(*) FROM %[2]s WHERE parent_id = s.id) FROM %[2]s s WHERE parent_id IS NULL AND EXISTS (SELECT 1 FROM %s WHERE session_id = s.id)`, g.content, g.session, g.message))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s Session
		var changed int64
		if err := rows.Scan(&s.ID, &s.Project, &changed, &s.Bytes, &s.Subagents); err != nil {
			return err
		}
		s.Changed = time.UnixMilli(changed)
		add(s)
	}
	return rows.Err()
}

// findInDatabases lists the sessions of all databases of an agent, without those of sub-agents.
func findInDatabases(f transcript.Format) (found []Session, err error) {
	at := f.Place()
	own, err := ownFolder(at.Variable, at.Home)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(own, at.Sub)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), at.Prefix) || !slices.Contains(at.Suffixes, filepath.Ext(e.Name())) {
			continue
		}
		file := filepath.Join(dir, e.Name())
		err = errors.Join(err, withDatabase(file, func(db *sql.DB) (err error) {
			newer := map[string]bool{}
			for _, g := range generations {
				if !g.has(db, "") {
					continue
				}
				err = errors.Join(err, g.list(db, func(s Session) {
					if s.Agent, s.Path = string(f), file+"#"+s.ID; !newer[s.ID] {
						found = append(found, s)
					}
					newer[s.ID] = true
				}))
			}
			if err == nil { // no database at all is told
				_, err = db.Exec(`SELECT 1 FROM sqlite_master LIMIT 1`)
			}
			return err
		}))
	}
	return found, err
}

// splitDatabasePath splits the path of a session into the database and the id.
func splitDatabasePath(path string) (file, id string, ok bool) {
	if _, err := os.Lstat(path); err == nil {
		return "", "", false
	}
	at := strings.LastIndex(path, ".db#")
	if at < 0 {
		return "", "", false
	}
	return path[:at+len(".db")], path[at+len(".db#"):], true
}

// withDatabase opens a database read-only. Its owner may write to it meanwhile.
func withDatabase(path string, read func(*sql.DB) error) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	at := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(whole), RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(2000)"}
	if !strings.HasPrefix(at.Path, "/") {
		at.Path = "/" + at.Path // with a drive
	}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return err
	}
	if err := errors.Join(read(db), db.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// defaultMaxBytes limits a session if the options do not, in bytes.
const defaultMaxBytes = 128 << 20

// readSession reads the first messages of a session, all of them if maxMessages is negative. It
// builds the document that opencode would export.
func readSession(path, id string, o *transcript.Options, maxMessages int) (*transcript.File, error) {
	maxBytes := defaultMaxBytes
	if o != nil {
		maxBytes = cmp.Or(o.MaxLine, maxBytes)
	}
	var doc []byte
	err := withDatabase(path, func(db *sql.DB) (err error) {
		doc, err = exportDocument(db, id, maxMessages, maxBytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	read, err := transcript.Read(bytes.NewReader(doc), &transcript.Options{Format: "opencode", Name: id, MaxLine: maxBytes})
	if err != nil {
		return nil, fmt.Errorf("%s#%s: %w", path, id, err)
	}
	return read, nil
}

func exportDocument(db *sql.DB, id string, maxMessages, maxBytes int) ([]byte, error) {
	var doc struct {
		Info struct {
			ID        string          `json:"id"`
			Title     string          `json:"title"`
			Directory string          `json:"directory"`
			Model     json.RawMessage `json:"model,omitempty"`
			Revert    json.RawMessage `json:"revert,omitempty"`
			Parent    string          `json:"parentID,omitempty"`
			Fork      string          `json:"fork_session_id,omitempty"`
		} `json:"info"`
		Messages []any `json:"messages"`
	}
	at := slices.IndexFunc(generations, func(g generation) bool { return g.has(db, id) })
	if at < 0 {
		at = len(generations) - 1
	}
	g, info := generations[at], &doc.Info
	info.ID = id
	var title sql.NullString
	err := db.QueryRow(`SELECT title, directory FROM `+g.session+` WHERE id = ?`, id).Scan(&title, &info.Directory)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: there is no session %q", ErrName, id)
	}
	if err != nil {
		return nil, err
	}
	info.Title = title.String
	column := func(name string) string { // some versions lack it
		var value sql.NullString
		_ = db.QueryRow(`SELECT `+name+` FROM `+g.session+` WHERE id = ?`, id).Scan(&value)
		return value.String
	}
	for name, to := range map[string]*json.RawMessage{"model": &info.Model, "revert": &info.Revert} {
		if value := column(name); rawjson.Valid(value) {
			*to = json.RawMessage(value)
		}
	}
	info.Parent, info.Fork = column("parent_id"), column("fork_session_id")
	rows, err := db.Query(g.messages, id, maxMessages)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type message struct {
		Info  json.RawMessage   `json:"info"`
		Parts []json.RawMessage `json:"parts"`
	}
	var last *message
	lastID, size := "", 0
	for rows.Next() {
		var messageID, kind, data, partID, part string
		if err := rows.Scan(&messageID, &kind, &data, &partID, &part); err != nil {
			return nil, err
		}
		switch {
		case kind != "":
			doc.Messages = append(doc.Messages, withMembers(data, "id", messageID, "type", kind))
			size += len(data)
		case messageID != lastID:
			last = &message{Info: withMembers(data, "id", messageID), Parts: []json.RawMessage{}}
			doc.Messages = append(doc.Messages, last)
			size += len(data)
		}
		if lastID = messageID; part != "" {
			last.Parts = append(last.Parts, withMembers(part, "id", partID))
		}
		if size += len(part); size > maxBytes {
			return nil, fmt.Errorf("session %s: %w", id, transcript.ErrTooLong)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// withMembers adds members to the data of a row, which the database keeps in columns of their own.
func withMembers(data string, members ...string) json.RawMessage {
	d, ok := rawjson.Open(data, nil)
	if !ok || !rawjson.Valid(data) {
		return json.RawMessage("null")
	}
	for i := 0; i < len(members); i += 2 {
		d.Set(members[i], rawjson.Quote(members[i+1]))
	}
	return d.Bytes()
}
