package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store"
)

// inline is the size of the largest content that is kept in a row, in bytes,
// where there is a place for larger ones: SQLite reads such blobs about as fast
// as files, and larger ones slower.
const inline = 100_000

// backend implements artifact.Backend. Content that is not in its row is in a
// file with a name of its own, written before the row says so and removed after
// no row does: a crash leaves at most a file that nobody needs.
type backend struct{ db *DB }

var _ artifact.Backend = backend{}

func checkArtifact(tenant, thread, id string) error {
	return errors.Join(store.CheckName("tenant", tenant), store.CheckName("thread", thread), store.CheckName("artifact", id))
}

// Put implements artifact.Backend.
func (b backend) Put(ctx context.Context, m artifact.Metadata, content []byte, may func(held artifact.Metadata, there bool) bool) (bool, error) {
	done, err := b.put(ctx, m, content, may)
	return done, b.db.fail(err, "PutArtifact", m.ID)
}

// held reads what is known of an artifact, and keeps others from changing it. row
// says that there is one, there that it can be read.
func (b backend) held(ctx context.Context, tx *sql.Tx, tenant, id string) (m artifact.Metadata, there, row bool, err error) {
	var metadata []byte
	err = tx.QueryRowContext(ctx, `SELECT metadata FROM artifacts WHERE tenant = $1 AND id = $2`+b.db.dialect.ForUpdate, tenant, id).Scan(&metadata)
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, false, nil
	}
	if err != nil {
		return m, false, false, err
	}
	m, err = parseMetadata(metadata)
	// What cannot be read is nothing that anybody has seen.
	return m, err == nil, true, nil
}

func (b backend) put(ctx context.Context, m artifact.Metadata, content []byte, may func(held artifact.Metadata, there bool) bool) (done bool, err error) {
	if err := checkArtifact(m.TenantID, m.ThreadID, m.ID); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	of, size := &tenant{db: b.db, id: m.TenantID}, int64(len(content))
	if m.EncryptionKeyID == "" {
		if err := b.db.inTheClear(ctx, b.db.read); err != nil {
			return false, err
		}
	}
	if err := errors.Join(b.db.refuse(), of.roomFor(ctx, m.ID)); err != nil { // before a file is made
		return false, err
	}
	metadata, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	sum, body := checksum(content), ""
	if b.db.dialect.Bodies != nil && len(content) > inline {
		body = bodyName()
		if err := b.db.dialect.Bodies.Create(body, content); err != nil {
			return false, err
		}
		b.db.step("artifact: file")
		content = nil
	}
	var before []string
	err = b.db.tx(ctx, "artifact", func(tx *sql.Tx) error {
		// What another puts first is its, where there was nothing to lock.
		onConflict := ` ON CONFLICT DO NOTHING`
		before, done = nil, may == nil
		row := done
		if !done {
			var held artifact.Metadata
			var there bool
			if held, there, row, err = b.held(ctx, tx, m.TenantID, m.ID); err != nil || !may(held, there) {
				return err
			}
		}
		if row {
			onConflict = ` ON CONFLICT (tenant, id) DO UPDATE SET thread = excluded.thread, metadata = excluded.metadata, checksum = excluded.checksum, body = excluded.body, content = excluded.content`
		}
		if before, err = b.db.bodies(ctx, tx, `tenant = $1 AND id = $2`, m.TenantID, m.ID); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO artifacts (tenant, id, thread, metadata, checksum, body, content) VALUES ($1, $2, $3, $4, $5, $6, $7)`+onConflict,
			m.TenantID, m.ID, m.ThreadID, metadata, int64(sum), body, content)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		done = rows > 0
		return err
	})
	if err != nil {
		// Whether the row was written is not always known. A file that no row
		// names is removed by Vacuum.
		return false, err
	}
	if done {
		of.wrote(size)
	}
	if !done && body != "" {
		before = []string{body} // nobody names it
	}
	for _, old := range before {
		b.db.step("artifact: old file")
		err = errors.Join(err, b.db.removeBody(old))
	}
	return done, err
}

func bodyName() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // it never fails
	name := hex.EncodeToString(raw[:])
	return path.Join(name[:2], name)
}

// bodies lists the files that rows of artifacts name.
func (db *DB) bodies(ctx context.Context, q querier, where string, args ...any) ([]string, error) {
	if db.dialect.Bodies == nil {
		return nil, nil
	}
	var names []string
	err := db.rows(ctx, q, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	}, `SELECT body FROM artifacts WHERE body <> '' AND `+where, args...)
	return names, err
}

// removeBody removes a file that no row names any more.
func (db *DB) removeBody(name string) error {
	err := db.dialect.Bodies.Root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Get implements artifact.Backend.
func (b backend) Get(ctx context.Context, tenant, id string) (artifact.Metadata, []byte, error) {
	m, content, err := b.get(ctx, tenant, id)
	if err != nil {
		return artifact.Metadata{}, nil, b.db.fail(err, "GetArtifact", id)
	}
	return m, content, nil
}

func (b backend) get(ctx context.Context, tenant, id string) (m artifact.Metadata, content []byte, err error) {
	if checkArtifact(tenant, "", id) != nil {
		return m, nil, artifact.ErrNotFound
	}
	for try := 0; ; try++ {
		var metadata []byte
		var sum int64
		var body string
		err = b.db.read.QueryRowContext(ctx, `SELECT metadata, checksum, body, content FROM artifacts WHERE tenant = $1 AND id = $2`, tenant, id).Scan(&metadata, &sum, &body, &content)
		if errors.Is(err, sql.ErrNoRows) {
			return m, nil, artifact.ErrNotFound
		}
		if err != nil {
			return m, nil, err
		}
		if m, err = parseMetadata(metadata); err != nil {
			return m, nil, err
		}
		if body != "" {
			content, err = b.body(body)
			// Another writer may just have put another content in its place.
			if errors.Is(err, fs.ErrNotExist) && try < 2 {
				continue
			}
			if err != nil {
				return m, nil, fmt.Errorf("%w: %w", artifact.ErrCorrupt, err)
			}
		}
		if int64(checksum(content)) != sum {
			return m, nil, fmt.Errorf("the checksum is another: %w", artifact.ErrCorrupt)
		}
		if content == nil {
			content = []byte{}
		}
		return m, content, nil
	}
}

func (b backend) body(name string) ([]byte, error) {
	if b.db.dialect.Bodies == nil {
		return nil, errors.New("the content is in a file, and this store has none")
	}
	return b.db.dialect.Bodies.Root.ReadFile(name)
}

func parseMetadata(data []byte) (artifact.Metadata, error) {
	var m artifact.Metadata
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("metadata: %w: %w", artifact.ErrCorrupt, err)
	}
	return m, nil
}

// artifactPage is how many artifacts are read at once, so that no connection is held
// while a caller looks at them.
const artifactPage = 500

// List implements artifact.Backend.
func (b backend) List(ctx context.Context, f artifact.Filter) iter.Seq2[artifact.Metadata, error] {
	return func(yield func(artifact.Metadata, error) bool) {
		if checkArtifact(f.TenantID, f.ThreadID, f.Prefix) != nil {
			return // no artifact has such a name
		}
		for after, first := "", true; ; first = false {
			listed, err := b.list(ctx, f, after, first)
			if err != nil {
				yield(artifact.Metadata{}, b.db.fail(err, "ListArtifacts", f.ThreadID))
				return
			}
			for _, l := range listed {
				m, err := parseMetadata(l.metadata)
				if err != nil {
					m = artifact.Metadata{ID: l.id, TenantID: f.TenantID}
				}
				if !yield(m, err) {
					return
				}
			}
			if len(listed) < artifactPage {
				return
			}
			after = listed[len(listed)-1].id
		}
	}
}

type listing struct {
	id       string
	metadata []byte
}

func (b backend) list(ctx context.Context, f artifact.Filter, after string, first bool) ([]listing, error) {
	query := `SELECT id, metadata FROM artifacts WHERE tenant = $1 AND id >= $2 AND substr(id, 1, $3) = $2`
	args := []any{f.TenantID, f.Prefix, utf8.RuneCountInString(f.Prefix), artifactPage}
	if f.ThreadID != "" {
		args = append(args, f.ThreadID)
		query += ` AND thread = $5`
	}
	if !first {
		args = append(args, after)
		query += fmt.Sprintf(` AND id > $%d`, len(args))
	}
	var out []listing
	err := b.db.rows(ctx, b.db.read, func(scan func(...any) error) error {
		var l listing
		err := scan(&l.id, &l.metadata)
		out = append(out, l)
		return err
	}, query+` ORDER BY id LIMIT $4`, args...)
	return out, err
}

// Delete implements artifact.Backend.
func (b backend) Delete(ctx context.Context, tenant, id string, may func(held artifact.Metadata) bool) (bool, error) {
	done, err := b.delete(ctx, tenant, id, may)
	return done, b.db.fail(err, "DeleteArtifact", id)
}

func (b backend) delete(ctx context.Context, tenant, id string, may func(held artifact.Metadata) bool) (done bool, err error) {
	if checkArtifact(tenant, "", id) != nil {
		return false, nil // there is none
	}
	var bodies []string
	err = b.db.tx(ctx, "artifact delete", func(tx *sql.Tx) (err error) {
		bodies, done = nil, false
		held, there, row, err := b.held(ctx, tx, tenant, id)
		// What cannot be read goes where nobody asks.
		if done = err == nil && row && (may == nil || there && may(held)); !done {
			return err
		}
		if bodies, err = b.db.bodies(ctx, tx, `tenant = $1 AND id = $2`, tenant, id); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM artifacts WHERE tenant = $1 AND id = $2`, tenant, id)
		return err
	})
	for _, body := range bodies {
		if err == nil {
			b.db.step("artifact delete: file")
			err = b.db.removeBody(body)
		}
	}
	return done, err
}
