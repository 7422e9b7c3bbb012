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
	"strings"
	"time"

	_ "modernc.org/sqlite" // reads opencode's database

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// openCode keeps its sessions in a database: a row for each session, message and
// part, their data as JSON. Its own export is a document of the same pieces.
const openCode = string(transcript.OpenCode)

// openCodeFiles are its databases, one for each channel of releases.
func openCodeFiles() ([]string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		data = filepath.Join(home, ".local", "share") // on every system
	}
	dir := filepath.Join(data, "opencode")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var files []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "opencode") && filepath.Ext(e.Name()) == ".db" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// findOpenCode lists the sessions of its databases, without those of sub-agents.
func findOpenCode() (found []Session, err error) {
	files, err := openCodeFiles()
	for _, file := range files {
		err = errors.Join(err, withDatabase(file, func(db *sql.DB) error {
			// octet_length reads no content.
			rows, err := db.Query(`SELECT id, directory, time_updated,
				(SELECT coalesce(sum(octet_length(data)), 0) FROM part WHERE session_id = session.id)
				FROM session WHERE parent_id IS NULL AND EXISTS (SELECT 1 FROM message WHERE session_id = session.id)`)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				s := Session{Agent: openCode}
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

// splitDatabasePath takes the path of a session apart: the database and the id in it.
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

// withDatabase reads a database while its owner may be writing to it.
func withDatabase(path string, read func(*sql.DB) error) error {
	at := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(2000)"}
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

// defaultMost is the largest session where the options say nothing, in bytes.
const defaultMost = 128 << 20

// readDocument makes of the first messages of a session what opencode exports, and reads
// that; all of them where messages is negative.
func readDocument(path, id string, o *transcript.Options, messages int) (*transcript.File, error) {
	most := defaultMost
	if o != nil {
		most = cmp.Or(o.MaxLine, most)
	}
	var doc bytes.Buffer
	err := withDatabase(path, func(db *sql.DB) error {
		info := struct {
			ID        string          `json:"id"`
			Title     string          `json:"title"`
			Directory string          `json:"directory"`
			Model     json.RawMessage `json:"model,omitempty"`
		}{ID: id}
		var model sql.NullString // older versions have no such column
		err := db.QueryRow(`SELECT title, directory FROM session WHERE id = ?`, id).Scan(&info.Title, &info.Directory)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: there is no session %q", ErrName, id)
		}
		if err != nil {
			return err
		}
		if err := db.QueryRow(`SELECT model FROM session WHERE id = ?`, id).Scan(&model); err == nil && rawjson.Valid(model.String) {
			info.Model = json.RawMessage(model.String)
		}
		head, err := json.Marshal(info)
		if err != nil {
			return err
		}
		fmt.Fprintf(&doc, `{"info":%s,"messages":[`, head)
		rows, err := db.Query(`SELECT m.id, m.data, coalesce(p.data, '') FROM
			(SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?) m
			LEFT JOIN part p ON p.message_id = m.id ORDER BY m.time_created, m.id, p.id`, id, messages)
		if err != nil {
			return err
		}
		defer rows.Close()
		last := ""
		for rows.Next() {
			var message, data, part string
			if err := rows.Scan(&message, &data, &part); err != nil {
				return err
			}
			switch {
			case message == last:
				doc.WriteString(",")
			case last != "":
				doc.WriteString("]},")
			}
			if message != last {
				fmt.Fprintf(&doc, `{"info":%s,"parts":[`, data)
			}
			doc.WriteString(part)
			last = message
			if doc.Len() > most {
				return fmt.Errorf("session %s: %w", id, transcript.ErrTooLong)
			}
		}
		if last != "" {
			doc.WriteString("]}")
		}
		doc.WriteString("]}")
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	read, err := transcript.Read(&doc, &transcript.Options{Format: transcript.OpenCode, Name: id, MaxLine: most})
	if err != nil {
		return nil, fmt.Errorf("%s#%s: %w", path, id, err)
	}
	return read, nil
}
