package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func (t *tenant) Current(ctx context.Context, id string) (_ *plan.Plan, version int, err error) {
	defer t.db.fail(&err, "Current", id)
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

func (t *tenant) Plan(ctx context.Context, id string, version int) (_ *plan.Plan, err error) {
	defer t.db.fail(&err, "Plan", id)
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

// plan reads one plan, and returns its size as stored.
func (t *tenant) plan(ctx context.Context, id string, number int64, version int) (*plan.Plan, int, error) {
	var data []byte
	there, err := one(ctx, t.db.read, []any{&data}, `SELECT content FROM plans WHERE thread = $1 AND version = $2`, number, version)
	if err == nil && !there {
		err = fmt.Errorf("plan %d: %w", version, store.ErrNotFound)
	}
	if err != nil {
		return nil, 0, err
	}
	plain, err := t.open(ctx, rowName("plans", id, version), data)
	if err != nil {
		return nil, 0, err
	}
	p, err := plan.Parse(plain)
	if err != nil {
		return nil, 0, fmt.Errorf("plan %d: %w", version, err)
	}
	return p, len(data), nil
}

func (t *tenant) Commit(ctx context.Context, id string, expected int, c store.Commit) (version int, err error) {
	defer t.db.fail(&err, "Commit", id)
	if err := t.usable(ctx, id); err != nil {
		return 0, err
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	plain, err := json.Marshal(c.Plan)
	if err != nil {
		return 0, fmt.Errorf("plan: %w", err)
	}
	// All transactions lock documents in the same order.
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
			if _, err := t.put(ctx, tx, seal, d, nil); err != nil {
				return err
			}
		}
		t.db.step("commit: documents")
		r.plans++
		if data, err = seal(rowName("plans", id, r.plans), plain); err != nil {
			return err
		}
		if err := exec(ctx, tx, []any{r.number, r.plans, t.db.now().UnixNano(), data}, `INSERT INTO plans (thread, version, created, content) VALUES ($1, $2, $3, $4)`); err != nil {
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
		return 0, err
	}
	k.plan, k.version = c.Plan.Clone(), expected+1
	t.db.threads.planned(k, len(data))
	return k.version, nil
}

// mark writes the marks of a new plan. Messages that were covered before keep theirs.
func (t *tenant) mark(ctx context.Context, tx *sql.Tx, r row, th *thread.Thread, p *plan.Plan) error {
	covered := map[int]bool{}
	for id := range p.Actions() {
		if i, held := th.Index(id); held {
			covered[i] = true
		}
	}
	marked, err := column[int](ctx, tx, `SELECT position FROM marks WHERE thread = $1 ORDER BY position`, r.number)
	if err != nil {
		return err
	}
	// Marks that go are mostly next to each other: one statement deletes each run.
	stale := slices.DeleteFunc(slices.Clone(marked), func(position int) bool { return covered[position] })
	for from, to := 0, 0; from < len(stale); from = to {
		for to = from + 1; to < len(stale) && stale[to] == stale[to-1]+1; {
			to++
		}
		if err := exec(ctx, tx, []any{r.number, stale[from], stale[to-1]}, `DELETE FROM marks WHERE thread = $1 AND position BETWEEN $2 AND $3`); err != nil {
			return err
		}
	}
	for _, position := range marked {
		delete(covered, position)
	}
	rows := inserter{q: tx, table: "marks", columns: []string{"thread", "position", "version"}}
	for _, position := range slices.Sorted(maps.Keys(covered)) {
		if err := rows.add(ctx, r.number, position, r.plans); err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}

func (t *tenant) Compacted(ctx context.Context, id string) (_ map[thread.ID]int, err error) {
	defer t.db.fail(&err, "Compacted", id)
	if err := t.usable(ctx, id); err != nil {
		return nil, err
	}
	marks := map[thread.ID]int{}
	_, err = list(ctx, t.db.read, func(scan scan) (message thread.ID, err error) {
		var version int
		err = scan(&message, &version)
		marks[message] = version
		return message, err
	}, `SELECT m.id, k.version FROM threads t JOIN marks k ON k.thread = t.number JOIN messages m ON m.thread = k.thread AND m.position = k.position WHERE t.tenant = $1 AND t.name = $2`, t.id, id)
	return marks, err
}
