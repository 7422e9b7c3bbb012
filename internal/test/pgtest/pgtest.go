// Package pgtest starts a private PostgreSQL server for tests. It has a temporary
// directory, listens on a socket there, and stops with the tests.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func Test(t *testing.T) {
//		address := pgtest.Database(t) // empty, and for this test only
//		…
//	}
package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Require is the environment variable that makes a missing server a failure.
const Require = "PALIMPSEST_REQUIRE_POSTGRES"

// Server is a running server. Make one with Start.
type Server struct {
	dir, bin string
	owner    *owner // nil: the user who runs the tests
	sync     bool
}

// Options configure a Server; nil or the zero value holds the defaults.
type Options struct {
	// Sync waits for the disk, as a production server does. Without it writes survive
	// a crash of the server, but not of the machine.
	Sync bool
}

// running is the server of this test binary, or the reason why there is none, and the
// number of the last schema. Main sets the first two before any test runs.
var running struct {
	server *Server
	reason error
	last   atomic.Int64
}

// Main starts the server, runs the tests and stops it. It returns the exit status.
func Main(m *testing.M) int {
	running.server, running.reason = Start(nil)
	if s := running.server; s != nil {
		defer s.Stop()
	}
	return m.Run()
}

// Database creates an empty schema and returns its address. Without a server it skips the
// test, or fails it if PALIMPSEST_REQUIRE_POSTGRES is 1.
func Database(tb testing.TB) string {
	tb.Helper()
	s := running.server
	switch {
	case s == nil && os.Getenv(Require) == "1":
		tb.Fatalf("no PostgreSQL server: %v", running.reason)
	case s == nil:
		tb.Skipf("no PostgreSQL server: %v", running.reason)
	}
	name := fmt.Sprint("test_", running.last.Add(1))
	s.exec(tb, "CREATE SCHEMA "+name)
	return s.Address("postgres") + "&search_path=" + name
}

// Current is the server that Main started, or nil.
func Current() *Server { return running.server }

// Address returns the address of one of the server's databases.
func (s *Server) Address(database string) string {
	return fmt.Sprintf("postgres://tester@/%s?host=%s&sslmode=disable", database, url.QueryEscape(s.dir))
}

// Socket is the path of the socket that the server listens on. A free TCP port might be
// taken by another program before the server starts.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

func (s *Server) exec(tb testing.TB, statement string) {
	tb.Helper()
	ctx := tb.Context()
	conn, err := pgx.Connect(ctx, s.Address("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		tb.Fatal(err)
	}
}

// Start starts a server.
func Start(o *Options) (_ *Server, err error) {
	s := &Server{sync: o != nil && o.Sync}
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "pgtest"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	}()
	if os.Geteuid() == 0 {
		// The server refuses to run as root.
		if s.owner, err = otherOwner(); err != nil {
			return nil, err
		}
		if err := os.Chown(s.dir, s.owner.uid, s.owner.gid); err != nil {
			return nil, err
		}
	}
	if err := s.run("initdb", "--pgdata="+s.data(), "--username=tester", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"); err != nil {
		return nil, err
	}
	return s, s.Resume()
}

// Resume starts a server again that was halted.
func (s *Server) Resume() error {
	options := fmt.Sprintf("-c listen_addresses= -c port=5432 -c unix_socket_directories=%s -c max_connections=200", s.dir)
	if !s.sync {
		options += " -c fsync=off -c full_page_writes=off"
	}
	return s.run("pg_ctl", "--pgdata="+s.data(), "--log="+filepath.Join(s.dir, "log"), "--options="+options, "--wait", patience, "start")
}

// Halt stops the server at once, as a crash does.
func (s *Server) Halt() error {
	return s.run("pg_ctl", "--pgdata="+s.data(), "--mode=immediate", "--wait", patience, "stop")
}

// patience is how long the server may take to start or stop on a busy machine.
const patience = "--timeout=600"

// Stop stops the server and removes its data.
func (s *Server) Stop() error { return errors.Join(s.Halt(), os.RemoveAll(s.dir)) }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) run(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if s.owner != nil {
		s.owner.start(cmd)
	}
	// The server inherits the output of pg_ctl: a pipe would never be closed.
	out, err := os.CreateTemp("", "pgtest-out")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("%s: %w\n%s\n%s", program, err, bytes.TrimSpace(said), bytes.TrimSpace(log))
	}
	return nil
}

// Directory holds all files of the server: its data, journal and log.
func (s *Server) Directory() string { return s.dir }

// Folder creates a folder beside the server's data. Stop removes it.
func (s *Server) Folder(tb testing.TB, name string) string {
	tb.Helper()
	folder := filepath.Join(s.dir, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		tb.Fatal(err)
	}
	s.Own(tb, folder)
	return folder
}

// Own gives a folder to the account that the server runs as.
func (s *Server) Own(tb testing.TB, folder string) {
	tb.Helper()
	if s.owner == nil {
		return
	}
	if err := os.Chown(folder, s.owner.uid, s.owner.gid); err != nil {
		tb.Fatal(err)
	}
}

// binaries finds the directory of the newest server that is installed.
func binaries() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("initdb and pg_ctl are not installed (Debian: postgresql)")
}

// owner is the account that a server runs as.
type owner struct{ uid, gid int }

// otherOwner finds an account other than root.
func otherOwner() (*owner, error) {
	var failed error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err == nil {
			uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
			gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
			if err = errors.Join(uidErr, gidErr); err == nil {
				return &owner{int(uid), int(gid)}, nil
			}
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("no account to run the server as: %w", failed)
}
