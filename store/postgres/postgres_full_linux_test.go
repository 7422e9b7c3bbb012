package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
)

// TestFull: the disk of the tables is full. The write says so, what was
// acknowledged stays, and writing goes on when there is room again.
func TestFull(t *testing.T) {
	ctx, address := t.Context(), pgtest.Database(t)
	folder := pgtest.Current().Folder(t, "small")
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	pgtest.Current().Own(t, folder)
	admin := open(t, address, nil)
	if _, err := admin.Pool().Exec(ctx, fmt.Sprintf(`CREATE TABLESPACE small LOCATION '%s'`, folder)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, statement := range []string{`ALTER TABLE messages SET TABLESPACE pg_default`, `DROP TABLESPACE small`} {
			if _, err := admin.Pool().Exec(context.WithoutCancel(ctx), statement); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := admin.Pool().Exec(ctx, `ALTER TABLE messages SET TABLESPACE small`); err != nil {
		t.Fatal(err)
	}
	s := open(t, address, nil).Tenant("")
	kept := 0
	var err error
	for ; kept < 2000 && err == nil; kept++ {
		_, err = s.Log.Append(ctx, "t", kept, user(fmt.Sprint(kept, random(1500))))
	}
	if kept--; !errors.Is(err, store.ErrFull) || kept < 100 {
		t.Fatalf("after %d messages: %v", kept, err)
	}
	for range 3 {
		if _, err := s.Log.Append(ctx, "t", kept, user(fmt.Sprint(kept, random(1500)))); !errors.Is(err, store.ErrFull) {
			t.Errorf("again: %v", err)
		}
	}
	if th, err := open(t, address, nil).Tenant("").Log.Load(ctx, "t"); err != nil || th.Len() != kept {
		t.Errorf("%v, %v; %d were acknowledged", th, err, kept)
	}
	if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT, "size=30m"); err != nil {
		t.Fatal(err)
	}
	if th, err := s.Log.Append(ctx, "t", kept, user("there is room")); err != nil || th.Len() != kept+1 {
		t.Errorf("%v, %v", th, err)
	}
	if counts, err := care.Check(ctx, admin, func(p care.Problem) { t.Error(p) }, nil); err != nil || counts.Messages != kept+1 {
		t.Errorf("%+v, %v", counts, err)
	}
}

// random is a text that does not compress.
func random(n int) string {
	var b strings.Builder
	draw := rand.New(rand.NewPCG(1, 2))
	for b.Len() < n {
		fmt.Fprintf(&b, "%x", draw.Uint64())
	}
	return b.String()
}
