package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Current implements store.Plans.
func (t *tenant) Current(ctx context.Context, id string) (*plan.Plan, int, error) {
	p, version, err := t.CurrentUncopied(ctx, id, permit.Key{})
	return p.Clone(), version, err
}

// Itself is what store.CurrentUncopied asks for.
func (t *tenant) Itself(permit.Key) any { return t }

// CurrentUncopied is what store.CurrentUncopied asks for.
func (t *tenant) CurrentUncopied(ctx context.Context, id string, _ permit.Key) (*plan.Plan, int, error) {
	p, version, err := t.current(ctx, id)
	return p, version, t.db.fail(err, "Current", id)
}

func (t *tenant) current(ctx context.Context, id string) (*plan.Plan, int, error) {
	if err := t.usable(ctx, id); err != nil {
		return nil, 0, err
	}
	k := t.db.threads.get(name{t.id, id})
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok, err := t.find(ctx, t.db.read, id, "")
	if err != nil || !ok || r.plans == 0 {
		return nil, 0, err
	}
	k.about(r.number)
	if k.version != r.plans {
		p, size, err := t.plan(ctx, id, r.number, r.plans)
		if err != nil {
			return nil, 0, err
		}
		k.plan, k.version = p, r.plans
		t.db.threads.planned(k, size)
	}
	return k.plan, r.plans, nil
}

// Plan implements store.Plans.
func (t *tenant) Plan(ctx context.Context, id string, version int) (*plan.Plan, error) {
	p, err := t.version(ctx, id, version)
	return p, t.db.fail(err, "Plan", id)
}

func (t *tenant) version(ctx context.Context, id string, version int) (*plan.Plan, error) {
	if err := t.usable(ctx, id); err != nil {
		return nil, err
	}
	r, ok, err := t.find(ctx, t.db.read, id, "")
	if err != nil {
		return nil, err
	}
	if !ok || version < 1 || version > r.plans {
		return nil, fmt.Errorf("plan %d: %w", version, store.ErrNotFound)
	}
	p, _, err := t.plan(ctx, id, r.number, version)
	return p, err
}

// plan reads one plan and says how many bytes it took.
func (t *tenant) plan(ctx context.Context, id string, number int64, version int) (*plan.Plan, int, error) {
	var data []byte
	err := t.db.read.QueryRowContext(ctx, `SELECT content FROM plans WHERE thread = $1 AND version = $2`, number, version).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, fmt.Errorf("plan %d: %w", version, store.ErrNotFound)
	}
	if err != nil {
		return nil, 0, err
	}
	plain, err := t.open(ctx, place("plans", id, version), data)
	if err != nil {
		return nil, 0, err
	}
	p, err := plan.Parse(plain)
	if err != nil {
		return nil, 0, fmt.Errorf("plan %d: %w", version, err)
	}
	return p, len(data), nil
}

// Commit implements store.Plans.
func (t *tenant) Commit(ctx context.Context, id string, expected int, c store.Commit) (int, error) {
	return expected + 1, t.db.fail(t.commit(ctx, id, expected, c), "Commit", id)
}

func (t *tenant) commit(ctx context.Context, id string, expected int, c store.Commit) error {
	if err := t.usable(ctx, id); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	plain, err := json.Marshal(c.Plan)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	// Everybody locks documents in the same order.
	documents := slices.Clone(c.Documents)
	slices.SortFunc(documents, func(a, b store.Document) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	k := t.db.threads.get(name{t.id, id})
	k.mu.Lock()
	defer k.mu.Unlock()
	var data []byte
	err = t.keeping(ctx, "commit", 1+len(documents)+len(c.Events), func(tx *sql.Tx, seal sealer) error {
		r, err := t.lock(ctx, tx, id)
		if err != nil {
			return err
		}
		t.db.step("commit: locked")
		if r.plans != expected {
			return &store.ConflictError{ThreadID: id, Want: expected, Have: r.plans}
		}
		th, err := t.grow(ctx, tx, k, id, r)
		if err != nil {
			return err
		}
		for _, d := range documents {
			if _, err := t.put(ctx, tx, seal, d); err != nil {
				return err
			}
		}
		t.db.step("commit: documents")
		r.plans++
		if data, err = seal(place("plans", id, r.plans), plain); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO plans (thread, version, created, content) VALUES ($1, $2, $3, $4)`, r.number, r.plans, t.db.now().UnixNano(), data)
		if err != nil {
			return err
		}
		t.db.step("commit: plan")
		if err := record(ctx, tx, seal, id, &r, c.Events); err != nil {
			return err
		}
		t.db.step("commit: events")
		if err := t.mark(ctx, tx, r, th, c.Plan); err != nil {
			return err
		}
		return t.touch(ctx, tx, r)
	})
	if err != nil {
		return err
	}
	k.plan, k.version = c.Plan.Clone(), expected+1
	t.db.threads.planned(k, len(data))
	return nil
}

// mark writes the marks of a new plan: those of messages that were covered
// before stay as they are.
func (t *tenant) mark(ctx context.Context, tx *sql.Tx, r row, th *thread.Thread, p *plan.Plan) error {
	covered := map[int]bool{}
	for id := range p.Actions() {
		if i, held := th.Index(id); held {
			covered[i] = true
		}
	}
	var stale []int
	err := t.db.rows(ctx, tx, func(scan func(...any) error) error {
		var position int
		if err := scan(&position); err != nil {
			return err
		}
		if covered[position] {
			delete(covered, position)
		} else {
			stale = append(stale, position)
		}
		return nil
	}, `SELECT position FROM marks WHERE thread = $1 ORDER BY position`, r.number)
	if err != nil {
		return err
	}
	for from := 0; from < len(stale); {
		to := from + 1
		for to < len(stale) && stale[to] == stale[to-1]+1 {
			to++
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM marks WHERE thread = $1 AND position BETWEEN $2 AND $3`, r.number, stale[from], stale[to-1]); err != nil {
			return err
		}
		from = to
	}
	rows := inserter{q: tx, table: "marks", columns: []string{"thread", "position", "version"}}
	positions := make([]int, 0, len(covered))
	for position := range covered {
		positions = append(positions, position)
	}
	slices.Sort(positions)
	for _, position := range positions {
		if err := rows.add(ctx, r.number, position, r.plans); err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}

// Compacted implements store.Plans.
func (t *tenant) Compacted(ctx context.Context, id string) (map[thread.ID]int, error) {
	marks := map[thread.ID]int{}
	err := t.check(id)
	if err == nil {
		err = t.db.rows(ctx, t.db.read, func(scan func(...any) error) error {
			var messageID string
			var version int
			err := scan(&messageID, &version)
			marks[thread.ID(messageID)] = version
			return err
		}, `SELECT m.id, k.version FROM threads t JOIN marks k ON k.thread = t.number JOIN messages m ON m.thread = k.thread AND m.position = k.position WHERE t.tenant = $1 AND t.name = $2`, t.id, id)
	}
	return marks, t.db.fail(err, "Compacted", id)
}
