package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
)

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// scan reads the columns of the current row.
type scan func(into ...any) error

// list collects the rows of a query.
func list[T any](ctx context.Context, q querier, read func(scan) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		value, err := read(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, rows.Err()
}

// column collects the values of a query of one column.
func column[T any](ctx context.Context, q querier, query string, args ...any) ([]T, error) {
	return list(ctx, q, func(scan scan) (value T, err error) {
		err = scan(&value)
		return value, err
	}, query, args...)
}

// one reads the only row of a query; it is false if there is none.
func one(ctx context.Context, q querier, into []any, query string, args ...any) (bool, error) {
	err := q.QueryRowContext(ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// exec runs statements in turn, all with the same arguments.
func exec(ctx context.Context, q querier, args []any, statements ...string) error {
	for _, statement := range statements {
		if _, err := q.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// chunk is how many rows one statement inserts at most, far below the number of parameters
// that engines allow.
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
	var rows []string
	for from := 0; from < len(i.args); from += len(i.columns) {
		rows = append(rows, "("+marks(from+1, len(i.columns))+")")
	}
	_, err := i.q.ExecContext(ctx, "INSERT INTO "+i.table+" ("+strings.Join(i.columns, ", ")+") VALUES "+strings.Join(rows, ", "), i.args...)
	i.args = i.args[:0]
	return err
}

// marks lists n numbered parameters of a statement, such as "$3, $4".
func marks(from, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(all, ", ")
}
