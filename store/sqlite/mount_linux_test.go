package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
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
	remount(0)
	if th, err := open(t, path, nil).Tenant("").Log.Load(t.Context(), "t"); err != nil || th.Len() != 1 {
		t.Errorf("%v, %v", th, err)
	}
}
