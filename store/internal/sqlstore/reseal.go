package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/store"
)

// How much is looked at, and sealed anew in one transaction: others wait for it.
const (
	resealPage  = 500
	resealBytes = 1 << 20
)

// headBytes is how much of a content is read to see what sealed it.
const headBytes = 1 + store.SealedHead

// shelf is a table with contents that a Sealer seals.
type shelf struct {
	table string
	// key names a row; the first of it is the number of a thread, or the tenant.
	key []string
	// also is a column that the place of the content holds besides.
	also string
}

// The shelves of a thread, and those of a tenant.
var (
	ofThread = []shelf{
		{table: "messages", key: []string{"thread", "position"}, also: "id"},
		{table: "plans", key: []string{"thread", "version"}},
		{table: "events", key: []string{"thread", "position"}},
	}
	ofTenant = []shelf{
		{table: "documents", key: []string{"tenant", "kind", "id"}, also: "version"},
		{table: "summaries", key: []string{"tenant", "name"}},
	}
)

// Reseal implements store.Sealed. It locks one row after the other, never a
// thread, so nobody waits for the whole of it.
func (db *DB) Reseal(ctx context.Context, tenantID string) (n int, err error) {
	t := &tenant{db: db, id: tenantID}
	r := &resealer{tenant: t}
	keys, ok := db.sealer.(store.KeySealer)
	if !ok {
		return 0, db.fail(errors.New("there are no keys to seal with"), "Reseal", tenantID)
	}
	r.keys = keys
	err = r.all(ctx)
	if r.n > 0 {
		// What was there before stands in the journal until it is written over.
		for _, statement := range db.dialect.Settle {
			_, settled := db.write.ExecContext(ctx, statement)
			err = errors.Join(err, settled)
		}
	}
	return r.n, db.fail(err, "Reseal", tenantID)
}

// Erased implements store.Sealed.
func (db *DB) Erased(ctx context.Context, tenantID string) (bool, error) {
	keys, ok := db.sealer.(store.KeySealer)
	if !ok {
		return false, nil
	}
	return keys.Erased(ctx, tenantID)
}

type resealer struct {
	*tenant
	keys store.KeySealer
	n    int
	// failed are the first contents that do not open.
	failed []error
}

// maxFailed is how many contents that do not open an error names.
const maxFailed = 10

func (r *resealer) all(ctx context.Context) error {
	if err := r.living(ctx); err != nil {
		return err
	}
	for after := ""; ; {
		page, err := r.threads(ctx, after)
		if err != nil {
			return err
		}
		for _, each := range page {
			for _, s := range ofThread {
				if err := r.shelf(ctx, s, each.number, each.name); err != nil {
					return err
				}
			}
			after = each.name
		}
		if len(page) < resealPage {
			break
		}
	}
	for _, s := range ofTenant {
		if err := r.shelf(ctx, s, r.id); err != nil {
			return err
		}
	}
	return errors.Join(r.failed...)
}

type numbered struct {
	name   string
	number int64
}

func (r *resealer) threads(ctx context.Context, after string) (page []numbered, err error) {
	err = r.db.rows(ctx, r.db.read, func(scan func(...any) error) error {
		var x numbered
		err := scan(&x.name, &x.number)
		page = append(page, x)
		return err
	}, `SELECT name, number FROM threads WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3`, r.id, after, resealPage)
	return page, err
}

// shelf seals anew what needs it among the rows of a table whose key begins with
// first. Their places begin with the name of the thread, where they are of one.
func (r *resealer) shelf(ctx context.Context, s shelf, first any, name ...any) error {
	for after := []any(nil); ; {
		page, err := r.page(ctx, s, first, after)
		if err != nil {
			return err
		}
		for from := 0; from < len(page); {
			to, size := from, 0
			for to < len(page) && (to == from || size+page[to].size <= resealBytes) {
				size += page[to].size
				to++
			}
			if err := r.batch(ctx, s, page[from:to], name); err != nil {
				return err
			}
			from = to
		}
		if len(page) < resealPage {
			return ctx.Err()
		}
		after = page[len(page)-1].key[1:]
	}
}

// looked is a row as it was when it was looked at.
type looked struct {
	key   []any
	size  int
	stale bool
}

// page lists rows behind a key, those that need nothing with no size.
func (r *resealer) page(ctx context.Context, s shelf, first any, after []any) ([]looked, error) {
	rest := strings.Join(s.key[1:], ", ")
	query := fmt.Sprintf(`SELECT %s, length(content), substr(content, 1, %d) FROM %s WHERE %s = $1`, rest, headBytes, s.table, s.key[0])
	args := []any{first}
	if after != nil {
		marks := make([]string, len(after))
		for i := range after {
			marks[i] = fmt.Sprint("$", i+2)
		}
		query += fmt.Sprintf(` AND (%s) > (%s)`, rest, strings.Join(marks, ", "))
		args = append(args, after...)
	}
	query += fmt.Sprintf(` ORDER BY %s LIMIT %d`, rest, resealPage)
	var page []looked
	err := r.db.rows(ctx, r.db.read, func(scan func(...any) error) error {
		x := looked{key: make([]any, len(s.key))}
		x.key[0] = first
		var head []byte
		into := make([]any, 0, len(s.key)+1)
		for i := range x.key[1:] {
			into = append(into, &x.key[i+1])
		}
		if err := scan(append(into, &x.size, &head)...); err != nil {
			return err
		}
		if x.stale = r.stale(ctx, head); !x.stale {
			x.size = 0
		}
		page = append(page, x)
		return nil
	}, query, args...)
	return page, err
}

// stale reports whether content, or the head of it, is not under the newest key.
// What is no sealed text is, so that opening it says what is wrong.
func (r *resealer) stale(ctx context.Context, head []byte) bool {
	if len(head) == 0 {
		return false // a document that was removed
	}
	if head[0] != sealed {
		return true
	}
	stale, err := r.keys.Stale(ctx, r.id, head[1:])
	return stale || err != nil
}

// batch seals rows anew in one transaction.
func (r *resealer) batch(ctx context.Context, s shelf, rows []looked, name []any) error {
	var stale []looked
	for _, x := range rows {
		if x.stale {
			stale = append(stale, x)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	where := make([]string, len(s.key))
	for i, column := range s.key {
		where[i] = fmt.Sprintf("%s = $%d", column, i+1)
	}
	one := strings.Join(where, " AND ")
	also := s.also
	if also == "" {
		also = "''"
	}
	n, failed := 0, []error(nil)
	err := r.sealing(ctx, "reseal", len(stale), func(tx *sql.Tx, seal sealer) error {
		n, failed = 0, nil
		for _, x := range stale {
			var data []byte
			var besides string
			err := tx.QueryRowContext(ctx, `SELECT content, `+also+` FROM `+s.table+` WHERE `+one+r.db.dialect.ForUpdate, x.key...).Scan(&data, &besides)
			if errors.Is(err, sql.ErrNoRows) {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			if !r.stale(ctx, data) {
				continue // by somebody else
			}
			keys := slices.Concat(name, x.key[1:])
			if s.also != "" {
				keys = append(keys, besides)
			}
			at := place(s.table, keys...)
			plain, err := r.open(ctx, at, data)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			fresh, err := seal(at, plain)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, fmt.Sprintf(`UPDATE %s SET content = $%d WHERE %s`, s.table, len(x.key)+1, one), append(x.key[:len(x.key):len(x.key)], fresh)...)
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.n += n
	if room := maxFailed - len(r.failed); room > 0 {
		r.failed = append(r.failed, failed[:min(room, len(failed))]...)
	}
	return nil
}
