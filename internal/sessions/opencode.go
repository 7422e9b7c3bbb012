package sessions

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// opencode, and Kilo, keep sessions in a database, with a row of JSON for each session, message and, before
// version 2, part. Version 2 has tables of its own; those before stay as they were at the upgrade.

// openCodeMessages are the queries for the first messages of a session, by the table of sessions: the id of each,
// its type, its data, and the id and data of each of its parts.
var openCodeMessages = map[string]string{
	"session_v2": `SELECT id, type, data, '', '' FROM session_message WHERE session_id = ? ORDER BY seq, id LIMIT ?`,
	"session": `SELECT m.id, '', m.data, coalesce(p.id, ''), coalesce(p.data, '') FROM
		(SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?) m
		LEFT JOIN part p ON p.message_id = m.id ORDER BY m.time_created, m.id, p.id`,
}

// openCodeRows are the members of a session's row.
var openCodeRows = rowDocument{raw: []string{"model", "revert"}, names: map[string]string{"parent_id": "parentID"}}

func exportDocument(db *sql.DB, g *generation, id string, maxMessages, maxBytes int) ([]byte, error) {
	var doc struct {
		Info     map[string]json.RawMessage `json:"info"`
		Messages []any                      `json:"messages"`
	}
	var err error
	if doc.Info, err = g.about(db, id, maxBytes); err != nil {
		return nil, err
	}
	type message struct {
		Info  json.RawMessage   `json:"info"`
		Parts []json.RawMessage `json:"parts"`
	}
	var last *message
	lastID, size := "", 0
	err = eachRow(db, func(rows *sql.Rows) error {
		var messageID, kind, data, partID, part string
		if err := rows.Scan(&messageID, &kind, &data, &partID, &part); err != nil {
			return err
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
			return fmt.Errorf("session %s: %w", id, transcript.ErrTooLong)
		}
		return nil
	}, openCodeMessages[g.session], id, maxMessages)
	if err != nil {
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
