package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// keepAnswers is how long answers stay in the cache.
const keepAnswers = 30 * 24 * time.Hour

// leftover is the age at which a file that no row names is removed. Before that another
// process may still be writing its row.
const leftover = time.Hour

// Vacuum removes cached answers that are older than 30 days and files that a crash has
// left, and returns the space of deleted rows to the system.
func (db *DB) Vacuum(ctx context.Context) (err error) {
	defer db.fail(&err, "Vacuum", "")
	if err := exec(ctx, db.write, []any{db.now().Add(-keepAnswers).UnixNano()}, `DELETE FROM summaries WHERE created < $1`); err != nil {
		return err
	}
	left, err := db.leftovers(ctx)
	for _, f := range left {
		// By the clock of the file system, not by db.now.
		if err == nil && time.Since(f.made) > leftover {
			err = db.removeBody(f.name)
		}
	}
	if err != nil {
		return err
	}
	return exec(ctx, db.write, nil, db.dialect.Tidy...)
}

// Bytes returns the size of the database, without artifacts that are in files.
func (db *DB) Bytes(ctx context.Context) (n int64, err error) {
	defer db.fail(&err, "Bytes", "")
	err = db.read.QueryRowContext(ctx, db.dialect.Size).Scan(&n)
	return n, err
}

// Leftovers lists the artifact files that no row names, also those whose rows other
// processes are just writing.
func (db *DB) Leftovers(ctx context.Context) (names []string, err error) {
	defer db.fail(&err, "Leftovers", "")
	left, err := db.leftovers(ctx)
	for _, f := range left {
		names = append(names, f.name)
	}
	return names, err
}

type file struct {
	name string
	made time.Time
}

func (db *DB) leftovers(ctx context.Context) (left []file, err error) {
	bodies := db.dialect.Bodies
	if bodies == nil {
		return nil, nil
	}
	// Files before rows: a file whose row comes later is not old.
	err = fs.WalkDir(bodies.Root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			left = append(left, file{name, info.ModTime()})
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was just removed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	named, err := column[string](ctx, db.read, `SELECT body FROM artifacts WHERE body <> ''`)
	slices.Sort(named)
	return slices.DeleteFunc(left, func(f file) bool {
		_, found := slices.BinarySearch(named, f.name)
		return found && !durable.IsTemp(path.Base(f.name))
	}), err
}

// How many rows are read at once, and how many bytes are encrypted in one transaction,
// which others wait for.
const (
	resealPage  = 500
	resealBytes = 1 << 20
)

// headBytes is how much of a content is read to find its key.
const headBytes = 1 + keyring.Overhead

// sealedTable is a table with contents that are encrypted if there are keys.
type sealedTable struct {
	table string
	// key identifies a row; its first column is the number of a thread, or the tenant.
	key []string
	// also is a further column in the place of the content, or ''.
	also string
}

var sealedTables = []sealedTable{
	{"messages", []string{"thread", "position"}, "id"},
	{"plans", []string{"thread", "version"}, "''"},
	{"events", []string{"thread", "position"}, "''"},
	{"documents", []string{"tenant", "kind", "id"}, "version"},
	{"summaries", []string{"tenant", "name"}, "''"},
}

func (s sealedTable) ofThread() bool { return s.key[0] == "thread" }

// Reseal implements store.Sealed. It locks rows one by one, and never a thread, so that
// nobody waits long.
func (db *DB) Reseal(ctx context.Context, tenantID string) (n int, err error) {
	defer db.fail(&err, "Reseal", tenantID)
	if db.ring == nil {
		return 0, errors.New("the store was opened without keys")
	}
	r := &resealer{tenant: &tenant{db: db, id: tenantID}}
	err = r.all(ctx)
	if r.n > 0 {
		db.settled.Store(false)
	}
	if db.dialect.Settle != nil && !db.settled.Load() {
		// The old rows, perhaps those of an earlier process, are in the journal until it is
		// overwritten.
		failed := db.dialect.Settle(ctx, db.write)
		db.settled.Store(failed == nil)
		err = errors.Join(err, failed)
	}
	return r.n, err
}

func (db *DB) Erased(ctx context.Context, tenantID string) (bool, error) {
	if db.ring == nil {
		return false, nil
	}
	return db.ring.Erased(ctx, tenantID)
}

type resealer struct {
	*tenant
	n int
	// failed are the errors of the first contents that could not be decrypted.
	failed []error
}

// maxFailed bounds failed.
const maxFailed = 10

func (r *resealer) all(ctx context.Context) error {
	if err := r.living(ctx); err != nil {
		return err
	}
	for after, more := "", true; more; {
		page, err := r.Threads(ctx, after, resealPage)
		if err != nil {
			return err
		}
		for _, info := range page {
			at, there, err := r.find(ctx, r.db.read, info.ID, "")
			if err == nil && there {
				err = r.tables(ctx, true, at.number, info.ID)
			}
			if err != nil {
				return err
			}
			after = info.ID
		}
		more = len(page) == resealPage
	}
	if err := r.tables(ctx, false, r.id); err != nil {
		return err
	}
	return errors.Join(r.failed...)
}

// tables encrypts stale rows whose key begins with first, in the tables of threads or in
// the others. In the former, name is that of the thread, with which the names of its rows begin.
func (r *resealer) tables(ctx context.Context, ofThread bool, first any, name ...any) error {
	for _, s := range sealedTables {
		if s.ofThread() != ofThread {
			continue
		}
		for after := []any(nil); ; {
			page, err := r.page(ctx, s, first, after)
			if err != nil {
				return err
			}
			stale := slices.DeleteFunc(slices.Clone(page), func(l resealRow) bool { return !l.stale })
			for len(stale) > 0 {
				done, err := r.batch(ctx, s, stale, name)
				if err != nil {
					return err
				}
				stale = stale[done:]
			}
			if len(page) < resealPage {
				break
			}
			after = page[len(page)-1].key[1:]
		}
	}
	return ctx.Err()
}

// resealRow is a row as it was when it was listed.
type resealRow struct {
	key   []any
	stale bool
}

// page lists the rows behind a key.
func (r *resealer) page(ctx context.Context, s sealedTable, first any, after []any) ([]resealRow, error) {
	rest := strings.Join(s.key[1:], ", ")
	query := fmt.Sprintf(`SELECT %s, substr(content, 1, %d) FROM %s WHERE %s = $1`, rest, headBytes, s.table, s.key[0])
	if after != nil {
		query += fmt.Sprintf(` AND (%s) > (%s)`, rest, marks(2, len(after)))
	}
	return list(ctx, r.db.read, func(scan scan) (resealRow, error) {
		l := resealRow{key: make([]any, len(s.key))}
		l.key[0] = first
		var head []byte
		var into []any
		for i := range l.key[1:] {
			into = append(into, &l.key[i+1])
		}
		err := scan(append(into, &head)...)
		l.stale = r.stale(ctx, head)
		return l, err
	}, fmt.Sprintf(`%s ORDER BY %s LIMIT %d`, query, rest, resealPage), append([]any{first}, after...)...)
}

// stale reports whether content, of which the head is enough, is not under the newest key.
// Damaged content is stale too, so that opening it returns the error.
func (r *resealer) stale(ctx context.Context, head []byte) bool {
	if len(head) == 0 {
		return false // a document that was removed
	}
	if head[0] != sealed {
		return true
	}
	stale, err := r.db.ring.Stale(ctx, r.id, head[1:])
	return stale || err != nil
}

// batch encrypts rows in one transaction, up to resealBytes, and returns how many it
// handled.
func (r *resealer) batch(ctx context.Context, s sealedTable, rows []resealRow, name []any) (done int, err error) {
	var n int
	var failed []error
	err = r.sealing(ctx, "reseal", len(rows), func(tx *sql.Tx, seal sealer) error {
		n, done, failed = 0, 0, nil
		for size := 0; done < len(rows) && size < resealBytes; done++ {
			bytes, damage, err := r.row(ctx, tx, seal, s, rows[done].key, name)
			switch {
			case err != nil:
				return err
			case damage != nil:
				failed = append(failed, damage)
			case bytes > 0:
				size += bytes
				n++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	r.n += n
	if room := maxFailed - len(r.failed); room > 0 {
		r.failed = append(r.failed, failed[:min(room, len(failed))]...)
	}
	return done, nil
}

// row encrypts one row again and returns the size of its content, or 0 if there was nothing
// to do. damage is the error if the content could not be decrypted.
func (r *resealer) row(ctx context.Context, tx *sql.Tx, seal sealer, s sealedTable, key, name []any) (bytes int, damage, err error) {
	var where []string
	for i, column := range s.key {
		where = append(where, fmt.Sprintf("%s = $%d", column, i+1))
	}
	which := s.table + ` WHERE ` + strings.Join(where, " AND ")
	var data []byte
	var also string
	there, err := one(ctx, tx, []any{&data, &also}, `SELECT content, `+s.also+` FROM `+which+r.db.dialect.ForUpdate, key...)
	if err != nil || !there || !r.stale(ctx, data) {
		return 0, nil, err // deleted, or encrypted by another process
	}
	keys := slices.Concat(name, key[1:])
	if also != "" {
		keys = append(keys, also)
	}
	at := rowName(s.table, keys...)
	plain, damage := r.open(ctx, at, data)
	if damage != nil {
		return 0, damage, nil
	}
	if data, err = seal(at, plain); err != nil {
		return 0, nil, err
	}
	set := fmt.Sprintf(` SET content = $%d `, len(key)+1)
	return len(data), nil, exec(ctx, tx, append(slices.Clone(key), data), `UPDATE `+strings.Replace(which, " ", set, 1))
}

// probeBytes is how much a probe writes: about as much as a step of an agent.
const probeBytes = 64 << 10

// Probe implements store.Prober: it writes a row, and a file if contents are in files, and
// removes them.
func (db *DB) Probe(ctx context.Context) (err error) {
	defer db.fail(&err, "Probe", "")
	if err := db.keyed(ctx); err != nil {
		return err
	}
	content := make([]byte, probeBytes)
	rand.Read(content) // never fails
	err = db.tx(ctx, "probe", func(tx *sql.Tx) error {
		return exec(ctx, tx, []any{rand.Text(), content}, `INSERT INTO probes (id, content) VALUES ($1, $2)`)
	})
	if err != nil {
		return err
	}
	// All rows, also those that a crash has left.
	err = db.tx(ctx, "probe", func(tx *sql.Tx) error { return exec(ctx, tx, nil, `DELETE FROM probes`) })
	if files := db.dialect.Bodies; err == nil && files != nil {
		name := bodyName()
		if err = files.Create(name, content); err == nil {
			err = files.Root.Remove(name)
		}
	}
	return err
}

// keyed returns an error if a master key is missing: every data key must be wrapped by one
// that was given.
func (db *DB) keyed(ctx context.Context) error {
	if len(db.masters) == 0 {
		return db.inTheClear(ctx, db.read)
	}
	ids, err := column[string](ctx, db.read, `SELECT DISTINCT master FROM data_keys`)
	for _, id := range ids {
		if !slices.Contains(db.masters, id) {
			return fmt.Errorf("data keys are wrapped by %s, but the master keys are %v: %w", id, db.masters, keyring.ErrNoMaster)
		}
	}
	return err
}

// inTheClear returns an error if nothing encrypts, but the database has or had data keys.
func (db *DB) inTheClear(ctx context.Context, q querier) error {
	if db.ring != nil {
		return nil
	}
	var keyed bool
	err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM key_owners)`).Scan(&keyed)
	if err == nil && keyed {
		err = fmt.Errorf("the database has data keys, so nothing may be written unencrypted: %w", store.ErrSealed)
	}
	return err
}

func (db *DB) Damage(ctx context.Context) (found []string, err error) {
	if db.dialect.Integrity == "" {
		return nil, nil
	}
	defer db.fail(&err, "Damage", "")
	found, err = column[string](ctx, db.read, db.dialect.Integrity)
	return slices.DeleteFunc(found, func(line string) bool { return line == "ok" }), err
}
