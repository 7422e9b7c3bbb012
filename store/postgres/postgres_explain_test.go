package postgres

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/palimpsest-ai/palimpsest/store"
)

// TestExplain: a connection that is gone is a database that cannot be reached, whoever
// noticed it: the server, the network, pgx, or database/sql in the middle of a
// transaction.
func TestExplain(t *testing.T) {
	for _, tt := range []struct{ err, want error }{
		{&pgconn.PgError{Code: "57P01"}, store.ErrUnavailable}, // admin_shutdown
		{&pgconn.PgError{Code: "08006"}, store.ErrUnavailable},
		{&net.OpError{Op: "read", Err: errors.New("reset by peer")}, store.ErrUnavailable},
		{io.ErrUnexpectedEOF, store.ErrUnavailable},
		{sql.ErrConnDone, store.ErrUnavailable},
		{driver.ErrBadConn, store.ErrUnavailable},
		{&pgconn.PgError{Code: "53100"}, store.ErrFull},
		{&pgconn.PgError{Code: "25006"}, store.ErrReadOnly},
	} {
		if err := explain(fmt.Errorf("append: %w", tt.err)); !errors.Is(err, tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
	if err := explain(&pgconn.PgError{Code: "23505"}); errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a duplicate: %v", err)
	}
}
