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

// opencode keeps its sessions in a database, with a row of JSON for each session, message and
// part.

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
		err = errors.Join(err, withDatabase(file, func(db *sql.DB) error {
			// octet_length does not read the content.
			rows, err := db.Query(`SELECT id, directory, time_updated,
				(SELECT coalesce(sum(octet_length(data)), 0) FROM part WHERE session_id = session.id)
				FROM session WHERE parent_id IS NULL AND EXISTS (SELECT 1 FROM message WHERE session_id = session.id)`)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				s := Session{Agent: string(f)}
				var changed int64
				if err := rows.Scan(&s.ID, &s.Project, &changed, &s.Bytes); err != nil {
					return err
				}
				s.Changed, s.Path = time.UnixMilli(changed), file+"#"+s.ID
				found = append(found, s)
			}
			return rows.Err()
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
	type message struct {
		Info  json.RawMessage   `json:"info"`
		Parts []json.RawMessage `json:"parts"`
	}
	var doc struct {
		Info struct {
			ID        string          `json:"id"`
			Title     string          `json:"title"`
			Directory string          `json:"directory"`
			Model     json.RawMessage `json:"model,omitempty"`
			Revert    json.RawMessage `json:"revert,omitempty"`
		} `json:"info"`
		Messages []*message `json:"messages"`
	}
	info := &doc.Info
	info.ID = id
	err := db.QueryRow(`SELECT title, directory FROM session WHERE id = ?`, id).Scan(&info.Title, &info.Directory)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: there is no session %q", ErrName, id)
	}
	if err != nil {
		return nil, err
	}
	for column, to := range map[string]*json.RawMessage{"model": &info.Model, "revert": &info.Revert} {
		var value sql.NullString // older versions have no such columns
		if err := db.QueryRow(`SELECT `+column+` FROM session WHERE id = ?`, id).Scan(&value); err == nil && rawjson.Valid(value.String) {
			*to = json.RawMessage(value.String)
		}
	}
	rows, err := db.Query(`SELECT m.id, m.data, coalesce(p.id, ''), coalesce(p.data, '') FROM
		(SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?) m
		LEFT JOIN part p ON p.message_id = m.id ORDER BY m.time_created, m.id, p.id`, id, maxMessages)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	last, size := "", 0
	for rows.Next() {
		var messageID, data, partID, part string
		if err := rows.Scan(&messageID, &data, &partID, &part); err != nil {
			return nil, err
		}
		if messageID != last {
			doc.Messages = append(doc.Messages, &message{Info: withID(data, messageID), Parts: []json.RawMessage{}})
			last, size = messageID, size+len(data)
		}
		if part != "" {
			m := doc.Messages[len(doc.Messages)-1]
			m.Parts = append(m.Parts, withID(part, partID))
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

// withID adds the id to the data of a row, which the database keeps in a column of its own.
func withID(data, id string) json.RawMessage {
	d, ok := rawjson.Open(data, nil)
	if !ok {
		return json.RawMessage(data)
	}
	d.Set("id", rawjson.Quote(id))
	return d.Bytes()
}
