package sqlstore

import (
	"context"
	"strconv"
	"strings"
)

// chunk is how many rows one statement inserts at most: fewer round trips, and
// far from the number of parameters that engines allow.
const chunk = 64

// inserter collects rows for a table and inserts many at once.
type inserter struct {
	q       querier
	table   string
	columns []string
	args    []any
}

func (i *inserter) add(ctx context.Context, values ...any) error {
	i.args = append(i.args, values...)
	if len(i.args) < chunk*len(i.columns) {
		return nil
	}
	return i.flush(ctx)
}

func (i *inserter) flush(ctx context.Context) error {
	if len(i.args) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("INSERT INTO " + i.table + " (" + strings.Join(i.columns, ", ") + ") VALUES ")
	for n := range i.args {
		switch {
		case n == 0:
			b.WriteString("(")
		case n%len(i.columns) == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(n+1))
	}
	b.WriteString(")")
	_, err := i.q.ExecContext(ctx, b.String(), i.args...)
	i.args = i.args[:0]
	return err
}
