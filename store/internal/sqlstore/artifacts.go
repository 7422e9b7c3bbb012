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

// inline is the largest content, in bytes, that is stored in its row if the engine has
// files for larger ones. SQLite reads such blobs about as fast as files, and larger ones
// more slowly.
const inline = 100_000

// backend implements artifact.Backend. Content that is not in its row is in a file of a
// unique name, which is written before the row and removed after it: a crash leaves at
// most a file that no row names.
type backend struct{ db *DB }

func checkArtifact(tenant, thread, id string) error {
	return errors.Join(store.CheckName("tenant", tenant), store.CheckName("thread", thread), store.CheckName("artifact", id))
}

// artifactRow is the row of an artifact, without its content.
type artifactRow struct {
	there    bool
	metadata *artifact.Metadata // nil if it cannot be read
	body     string             // the file of its content; "" if that is in the row
}

// lock reads the row of an artifact and keeps others from changing it.
func (b backend) lock(ctx context.Context, tx *sql.Tx, tenant, id string) (r artifactRow, err error) {
	var metadata []byte
	r.there, err = one(ctx, tx, []any{&metadata, &r.body}, `SELECT metadata, body FROM artifacts WHERE tenant = $1 AND id = $2`+b.db.dialect.ForUpdate, tenant, id)
	if r.there {
		if m, damage := parseMetadata(metadata); damage == nil {
			r.metadata = &m
		}
	}
	return r, err
}

func (b backend) Put(ctx context.Context, m artifact.Metadata, content []byte, c artifact.Condition) (done bool, err error) {
	defer b.db.fail(&err, "PutArtifact", m.ID)
	if err := errors.Join(ctx.Err(), checkArtifact(m.TenantID, m.ThreadID, m.ID)); err != nil {
		return false, err
	}
	of, size := &tenant{db: b.db, id: m.TenantID}, int64(len(content))
	if m.EncryptionKeyID == "" {
		if err := b.db.inTheClear(ctx, b.db.read); err != nil {
			return false, err
		}
	}
	if err := errors.Join(b.db.refuse(), of.roomFor(ctx, m.ID)); err != nil { // before the file is written
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
	// After an error it is not always known whether the row was written. Vacuum removes
	// a file that no row names.
	err = b.db.removing(ctx, "artifact", func(tx *sql.Tx) ([]string, error) {
		done = false
		before, err := b.lock(ctx, tx, m.TenantID, m.ID)
		if err != nil || c != nil && !c(before.metadata) {
			return []string{body}, err
		}
		// Without a row there was nothing to lock: another process may insert it first.
		onConflict := ` ON CONFLICT DO NOTHING`
		if before.there || c == nil {
			onConflict = ` ON CONFLICT (tenant, id) DO UPDATE SET thread = excluded.thread, metadata = excluded.metadata, checksum = excluded.checksum, body = excluded.body, content = excluded.content`
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO artifacts (tenant, id, thread, metadata, checksum, body, content) VALUES (`+marks(1, 7)+`)`+onConflict,
			m.TenantID, m.ID, m.ThreadID, metadata, int64(sum), body, content)
		if err != nil {
			return nil, err
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 0 {
			return []string{body}, err
		}
		done = true
		return []string{before.body}, nil
	})
	if err != nil {
		return false, err
	}
	if done {
		of.wrote(size)
	}
	return done, nil
}

func bodyName() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	name := hex.EncodeToString(raw[:])
	return path.Join(name[:2], name)
}

// removeBody removes a file that no row names.
func (db *DB) removeBody(name string) error {
	if db.dialect.Bodies == nil {
		return nil
	}
	err := db.dialect.Bodies.Root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (b backend) Get(ctx context.Context, tenant, id string) (m artifact.Metadata, content []byte, err error) {
	defer b.db.fail(&err, "GetArtifact", id)
	if checkArtifact(tenant, "", id) != nil {
		return m, nil, artifact.ErrNotFound
	}
	for try := 0; ; try++ {
		m, content, err = b.get(ctx, tenant, id)
		// Another writer may just have replaced the content.
		if !errors.Is(err, fs.ErrNotExist) || try == 2 {
			return m, content, err
		}
	}
}

func (b backend) get(ctx context.Context, tenant, id string) (m artifact.Metadata, content []byte, err error) {
	var metadata []byte
	var sum int64
	var body string
	there, err := one(ctx, b.db.read, []any{&metadata, &sum, &body, &content}, `SELECT metadata, checksum, body, content FROM artifacts WHERE tenant = $1 AND id = $2`, tenant, id)
	if err == nil && !there {
		err = artifact.ErrNotFound
	}
	if err == nil {
		m, err = parseMetadata(metadata)
	}
	switch {
	case err != nil || body == "":
	case b.db.dialect.Bodies == nil:
		err = fmt.Errorf("%w: the content is in a file, and this store has no files", artifact.ErrCorrupt)
	default:
		if content, err = b.db.dialect.Bodies.Root.ReadFile(body); err != nil {
			err = fmt.Errorf("%w: %w", artifact.ErrCorrupt, err)
		}
	}
	if err == nil && int64(checksum(content)) != sum {
		err = fmt.Errorf("the checksum does not match: %w", artifact.ErrCorrupt)
	}
	if err != nil {
		return artifact.Metadata{}, nil, err
	}
	if content == nil {
		content = []byte{}
	}
	return m, content, nil
}

func parseMetadata(data []byte) (artifact.Metadata, error) {
	var m artifact.Metadata
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("metadata: %w: %w", artifact.ErrCorrupt, err)
	}
	return m, nil
}

// artifactPage is how many artifacts are read at once. No connection is held while the
// caller of List handles them.
const artifactPage = 500

// listed is a row of a list. One that cannot be read has only its id and the damage.
type listed struct {
	id       string
	metadata artifact.Metadata
	damage   error
}

func (b backend) List(ctx context.Context, f artifact.Filter) iter.Seq2[artifact.Metadata, error] {
	return func(yield func(artifact.Metadata, error) bool) {
		if checkArtifact(f.TenantID, f.ThreadID, f.Prefix) != nil {
			return // no artifact has such a name
		}
		for after := ""; ; {
			page, err := b.page(ctx, f, after)
			if err != nil {
				b.db.fail(&err, "ListArtifacts", f.ThreadID)
				yield(artifact.Metadata{}, err)
				return
			}
			for _, l := range page {
				if !yield(l.metadata, l.damage) {
					return
				}
				after = l.id
			}
			if len(page) < artifactPage {
				return
			}
		}
	}
}

// page lists the artifacts behind an id; "" is in front of all.
func (b backend) page(ctx context.Context, f artifact.Filter, after string) ([]listed, error) {
	query := `SELECT id, metadata FROM artifacts WHERE tenant = $1 AND id >= $2 AND substr(id, 1, $3) = $2 AND id > $4`
	args := []any{f.TenantID, f.Prefix, utf8.RuneCountInString(f.Prefix), after, artifactPage}
	if f.ThreadID != "" {
		args = append(args, f.ThreadID)
		query += ` AND thread = $6`
	}
	return list(ctx, b.db.read, func(scan scan) (l listed, err error) {
		var metadata []byte
		if err := scan(&l.id, &metadata); err != nil {
			return l, err
		}
		if l.metadata, l.damage = parseMetadata(metadata); l.damage != nil {
			l.metadata = artifact.Metadata{ID: l.id, TenantID: f.TenantID}
		}
		return l, nil
	}, query+` ORDER BY id LIMIT $5`, args...)
}

func (b backend) Delete(ctx context.Context, tenant, id string, c artifact.Condition) (done bool, err error) {
	defer b.db.fail(&err, "DeleteArtifact", id)
	if checkArtifact(tenant, "", id) != nil {
		return false, nil // there is none
	}
	err = b.db.removing(ctx, "artifact delete", func(tx *sql.Tx) ([]string, error) {
		done = false
		before, err := b.lock(ctx, tx, tenant, id)
		if err != nil || !before.there || c != nil && !c(before.metadata) {
			return nil, err
		}
		done = true
		return []string{before.body}, exec(ctx, tx, []any{tenant, id}, `DELETE FROM artifacts WHERE tenant = $1 AND id = $2`)
	})
	return done && err == nil, err
}
