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
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	_ "modernc.org/sqlite" // reads the agents' databases

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// generation are the tables in which an agent keeps its sessions, or one of its generations does.
type generation struct {
	format           transcript.Format
	session, message string // a table for each
	needs            string // a column of the messages by which the tables are known; empty for any
	content          string // the table of what is in messages, and
	data             string // its column for that
	// How the table of sessions says the working folder, when it was changed (in Unix milliseconds), which
	// sessions are a person's, and, in a column, which one a sub-agent works for; empty if it does not.
	directory, changed, own, parent string
	// usage asks for a record of JSON that says the size of a session's newest request.
	usage string
	// export makes the document that the agent would export.
	export func(db *sql.DB, g *generation, id string, maxMessages, maxBytes int) ([]byte, error)
	rows   rowDocument
}

// milliseconds is a time in SQL, from a column that holds seconds, or milliseconds as its comment says.
const milliseconds = `CASE WHEN updated_at < 100000000000 THEN updated_at * 1000 ELSE updated_at END`

// generations are all tables that are known. Of those of one agent the newest come first: of a session in
// several that one is alive.
var generations = []generation{
	{format: "opencode", session: "session_v2", message: "session_message", content: "session_message", data: "data",
		directory: "directory", changed: "time_updated", own: "parent_id IS NULL", parent: "parent_id", export: exportDocument, rows: openCodeRows,
		usage: `SELECT data FROM session_message WHERE session_id = ? AND json_extract(data, '$.tokens.input') > 0 ORDER BY seq DESC LIMIT 1`},
	{format: "opencode", session: "session", message: "message", content: "part", data: "data",
		directory: "directory", changed: "time_updated", own: "parent_id IS NULL", parent: "parent_id", export: exportDocument, rows: openCodeRows,
		usage: `SELECT data FROM message WHERE session_id = ? AND json_extract(data, '$.tokens.input') > 0 ORDER BY time_created DESC, id DESC LIMIT 1`},
	{format: "crush", session: "sessions", message: "messages", needs: "parts", content: "messages", data: "parts",
		directory: "''", changed: milliseconds, own: "parent_session_id IS NULL", parent: "parent_session_id", export: exportRows,
		usage: `SELECT json_object('session', json_object('prompt_tokens', prompt_tokens, 'completion_tokens', completion_tokens)) FROM sessions WHERE id = ?`,
		rows:  rowDocument{list: "messages", order: "created_at, rowid", raw: []string{"parts"}}},
	{format: "goose", session: "sessions", message: "messages", needs: "content_json", content: "messages", data: "content_json",
		directory: "working_dir", changed: `CAST(strftime('%s', updated_at) AS INTEGER) * 1000`, own: "session_type IN ('user', 'scheduled')", export: exportRows,
		usage: `SELECT json_object('session', json_object('total_tokens', total_tokens)) FROM sessions WHERE id = ?`,
		rows: rowDocument{list: "conversation", order: "created_timestamp, id", raw: []string{"content_json", "metadata_json"},
			names: map[string]string{"content_json": "content", "metadata_json": "metadata", "created_timestamp": "created"}}},
}

// has reports whether a session of the generation is there, with a message; any if id is empty.
func (g *generation) has(db *sql.DB, id string) bool {
	var n int
	if db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN (?, ?)`, g.session, g.message).Scan(&n) != nil || n < 2 {
		return false
	}
	if g.needs != "" && !hasColumn(db, g.message, g.needs) {
		return false
	}
	return id == "" || db.QueryRow(`SELECT 1 FROM `+g.session+` s WHERE id = ? AND EXISTS (SELECT 1 FROM `+g.message+` WHERE session_id = s.id)`, id).Scan(&n) == nil
}

func hasColumn(db *sql.DB, table, column string) bool {
	var n int
	return db.QueryRow(`SELECT 1 FROM pragma_table_info(?) WHERE name = ?`, table, column).Scan(&n) == nil
}

// list lists the sessions of a generation, without those of sub-agents.
func (g *generation) list(db *sql.DB, add func(s Session)) error {
	own := g.own
	if column, _, _ := strings.Cut(own, " "); !hasColumn(db, g.session, column) { // of an older version
		own = "1"
	}
	subagents := "0"
	if g.parent != "" {
		subagents = fmt.Sprintf(`(WITH RECURSIVE below(id) AS (SELECT id FROM %[1]s WHERE %[2]s = s.id UNION SELECT c.id FROM %[1]s c JOIN below b ON c.%[2]s = b.id) SELECT count(*) FROM below)`, g.session, g.parent)
	}
	// octet_length does not read the content.
	query := fmt.Sprintf(`SELECT id, %s, coalesce(%s, 0), (SELECT coalesce(sum(octet_length(%s)), 0) FROM %s WHERE session_id = s.id), %s
		FROM %s s WHERE %s AND EXISTS (SELECT 1 FROM %s WHERE session_id = s.id)`, g.directory, g.changed, g.data, g.content, subagents, g.session, own, g.message)
	return eachRow(db, func(rows *sql.Rows) error {
		var s Session
		var changed int64
		if err := rows.Scan(&s.ID, &s.Project, &changed, &s.Bytes, &s.Subagents); err != nil {
			return err
		}
		s.Changed = time.UnixMilli(changed)
		add(s)
		return nil
	}, query)
}

// eachRow calls read with each row of what a query finds.
func eachRow(db *sql.DB, read func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// missing are the sub-agents of a generation whose session is not there, by their ids.
func (g *generation) missing(db *sql.DB) (ids []string, err error) {
	if g.parent == "" {
		return nil, nil
	}
	query := fmt.Sprintf(`SELECT id FROM %s s WHERE %s <> '' AND %[2]s NOT IN (SELECT id FROM %[1]s) AND EXISTS (SELECT 1 FROM %[3]s WHERE session_id = s.id)`, g.session, g.parent, g.message)
	return ids, eachRow(db, func(rows *sql.Rows) error {
		ids = append(ids, "")
		return rows.Scan(&ids[len(ids)-1])
	}, query)
}

// database is a file of sessions, of a project or of all.
type database struct{ path, project string }

// databases are those of an agent.
func (f *Finder) databases(agent transcript.Format) (found []database, err error) {
	at := agent.Place()
	own, err := f.folders(agent)
	var folders []database
	for _, folder := range own {
		folder = filepath.Join(folder, at.Sub)
		if at.Projects == "" {
			folders = append(folders, database{path: folder})
			continue
		}
		var list []byte
		info, failed := os.Stat(filepath.Join(folder, at.Projects))
		if failed == nil && info.Mode().IsRegular() { // a pipe may never end
			list, failed = os.ReadFile(filepath.Join(folder, at.Projects))
		}
		if failed != nil && !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		for p := range rawjson.Items(gjson.GetBytes(list, "projects")) {
			folders = append(folders, database{p.Get("data_dir").Str, p.Get("path").Str})
		}
	}
	for _, folder := range folders {
		entries, failed := os.ReadDir(folder.path)
		if failed != nil && !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		for _, e := range entries {
			path := filepath.Join(folder.path, e.Name())
			if !strings.HasPrefix(e.Name(), at.Prefix) || !slices.Contains(at.Suffixes, filepath.Ext(e.Name())) {
				continue
			}
			if info, failed := os.Stat(path); failed != nil || info.Mode().IsRegular() { // what is not there is told
				found = append(found, database{path, folder.project})
			}
		}
	}
	return found, err
}

// findInDatabases lists the sessions of all databases of an agent, without those of sub-agents.
func (f *Finder) findInDatabases(agent transcript.Format) (found []Session, err error) {
	all, err := f.databases(agent)
	for _, file := range all {
		err = errors.Join(err, withDatabase(file.path, func(db *sql.DB) (err error) {
			newer, known, tables := map[string]bool{}, false, 0
			for i := range generations {
				g := &generations[i]
				if !g.has(db, "") {
					continue
				}
				known = true
				err = errors.Join(err, g.list(db, func(s Session) {
					s.Agent, s.Path, s.Project = string(agent), file.path+"#"+s.ID, cmp.Or(s.Project, file.project)
					if !newer[s.ID] {
						found = append(found, s)
					}
					newer[s.ID] = true
				}))
				missing, failed := g.missing(db)
				err = errors.Join(err, failed, missingError(agent, missing))
			}
			if err == nil { // no database at all is told
				err = db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table'`).Scan(&tables)
			}
			if err == nil && tables > 0 && !known {
				err = errors.New("none of its tables is known")
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
// builds the document that the agent would export.
func readSession(path, id string, o *transcript.Options, maxMessages int) (*transcript.File, error) {
	maxBytes := cmp.Or(cmp.Or(o, &transcript.Options{}).MaxLine, defaultMaxBytes)
	var doc []byte
	var format transcript.Format
	err := withDatabase(path, func(db *sql.DB) (err error) {
		g := generationOf(db, id)
		if format = g.format; format == "opencode" && strings.HasPrefix(filepath.Base(path), transcript.Format("kilo").Place().Prefix) {
			format = "kilo" // which has the same tables
		}
		doc, err = g.export(db, g, id, maxMessages, maxBytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	read, err := transcript.Read(bytes.NewReader(doc), &transcript.Options{Format: format, Name: id, MaxLine: maxBytes})
	if err != nil {
		return nil, fmt.Errorf("%s#%s: %w", path, id, err)
	}
	if dir := filepath.Dir(path); filepath.Base(dir) == ".crush" { // in its project
		read.Transcripts[0].Dir = cmp.Or(read.Transcripts[0].Dir, filepath.Dir(dir))
	}
	return read, nil
}

// generationOf are the tables in which a session is; without any those that the database has, and else
// the last of opencode's.
func generationOf(db *sql.DB, id string) *generation {
	for _, id := range []string{id, ""} {
		for i := range generations {
			if g := &generations[i]; g.has(db, id) {
				return g
			}
		}
	}
	return &generations[1]
}

// rowDocument says how rows become a document: the columns of the session with a list of its messages.
type rowDocument struct {
	list, order string            // the list's name, and the order of the messages
	raw         []string          // columns that hold JSON
	names       map[string]string // of columns that have another in the document
}

// exportRows makes the document of an agent whose tables have a column for each member.
func exportRows(db *sql.DB, g *generation, id string, maxMessages, maxBytes int) ([]byte, error) {
	doc, err := g.about(db, id, maxBytes)
	if err != nil {
		return nil, err
	}
	messages, err := g.rows.read(db, maxBytes, `SELECT * FROM `+g.message+` WHERE session_id = ? ORDER BY `+g.rows.order+` LIMIT ?`, id, maxMessages)
	if err != nil {
		return nil, err
	}
	if doc[g.rows.list], err = json.Marshal(messages); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// about is the row of a session as an object. Some versions lack some columns.
func (g *generation) about(db *sql.DB, id string, maxBytes int) (map[string]json.RawMessage, error) {
	rows, err := g.rows.read(db, maxBytes, `SELECT * FROM `+g.session+` WHERE id = ?`, id)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%w: there is no session %q", ErrName, id)
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// read makes an object of each row.
func (d *rowDocument) read(db *sql.DB, maxBytes int, query string, args ...any) (all []map[string]json.RawMessage, err error) {
	size := 0
	err = eachRow(db, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return err
		}
		row := map[string]json.RawMessage{}
		for i, column := range columns {
			value := d.member(column, *values[i].(*any))
			row[cmp.Or(d.names[column], column)] = value
			if size += len(value); size > maxBytes {
				return fmt.Errorf("the session: %w", transcript.ErrTooLong)
			}
		}
		all = append(all, row)
		return nil
	}, query, args...)
	return all, err
}

// member is the value of a column in JSON.
func (d *rowDocument) member(column string, value any) json.RawMessage {
	switch v := value.(type) {
	case int64:
		return json.RawMessage(strconv.FormatInt(v, 10))
	case string:
		if !slices.Contains(d.raw, column) {
			return json.RawMessage(rawjson.Quote(v))
		}
		if rawjson.Valid(v) {
			return json.RawMessage(v)
		}
	}
	return json.RawMessage("null") // no reader asks for others
}
