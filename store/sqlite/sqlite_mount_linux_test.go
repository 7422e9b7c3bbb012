package sqlite_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// small mounts a file system of its own on a folder.
func small(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// TestSmallDisk fills a real file system.
func TestSmallDisk(t *testing.T) {
	folder := small(t)
	ballast := filepath.Join(folder, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 300_000), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "p.db")
	db := open(t, path, nil)
	fillUp(t, db, path, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFileSize: where files cannot grow, which is how a full disk looks to who has no
// file system of his own, a probe and writes say so, and what is there is read.
func TestFileSize(t *testing.T) {
	if os.Getenv("PALIMPSEST_TEST_LIMITED") == "" {
		// The limit is one of the process, which writes files of its own.
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestFileSize$")
		cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_LIMITED=1")
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "--- SKIP") {
			t.Skipf("%s", out)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "p.db")
	closed(t, path)
	db := open(t, path, nil)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: was.Max}); err != nil {
		t.Skipf("the size of files cannot be limited here: %v", err)
	}
	room := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
	}
	defer room()
	if err := db.Probe(t.Context()); !errors.Is(err, store.ErrFull) {
		t.Errorf("probe: %v", err)
	}
	if _, err := db.Tenant("").Log.Append(t.Context(), "t", 1, user("two")); !errors.Is(err, store.ErrFull) {
		t.Errorf("append: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	readable(t, path, store.ErrFull)
	room()
	if err := open(t, path, nil).Probe(t.Context()); err != nil {
		t.Errorf("room again: %v", err)
	}
}

// TestReadOnlyFolder: opening says what is wrong, and an open store says so when
// its file system is locked, and goes on when it is not any more.
func TestReadOnlyFolder(t *testing.T) {
	folder := small(t)
	path := filepath.Join(folder, "p.db")
	db := open(t, path, nil)
	if _, err := db.Tenant("").Log.Append(t.Context(), "t", 0, user("one")); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT|flags, "size=1m"); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	for _, path := range []string{path, filepath.Join(folder, "new.db")} {
		if _, err := sqlite.Open(t.Context(), path, nil); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("%s: %v", path, err)
		}
	}
	readable(t, path, store.ErrReadOnly)
	remount(0)
	if th, err := open(t, path, nil).Tenant("").Log.Load(t.Context(), "t"); err != nil || th.Len() != 1 {
		t.Errorf("%v, %v", th, err)
	}
}
