package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestManyRollouts: where a thread has very many files, of which each may be what another goes on from, only so
// many are opened.
func TestManyRollouts(t *testing.T) {
	dir := t.TempDir()
	const thread = "00000000-0000-4000-8000-000000000001"
	var near []rollout
	for i := range 20 {
		name := fmt.Sprintf("rollout-2026-11-28T10-00-00-%s_00000000-0000-4000-8000-%012d.jsonl", thread, i+2)
		path := filepath.Join(dir, name)
		line := fmt.Sprintf(`{"ordinal":%d,"type":"session_meta","payload":{"id":"%s","history_base":{"thread_id":"%s"}}}`+"\n", i, thread, thread)
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		r, _ := rolloutOf(path)
		near = append(near, r)
	}
	for looks, want := range map[int]bool{20: true, 19: false} {
		if _, found, _ := findRollout(near, historyBase{rollout: thread}, nil, &looks); found != want {
			t.Errorf("with %d left: found is %v", looks, found)
		}
	}
}

// TestRolloutsAreFiles: a link beside a rollout, which may lead out of the folder, is no rollout.
func TestRolloutsAreFiles(t *testing.T) {
	const own, other = "rollout-2026-11-28T10-00-00-00000000-0000-4000-8000-000000000001.jsonl", "rollout-2026-11-28T10-00-00-00000000-0000-4000-8000-000000000002.jsonl"
	dir, apart := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	for _, path := range []string{apart, filepath.Join(dir, own)} {
		if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(apart, filepath.Join(dir, other)); err != nil {
		t.Skip("no links here: ", err)
	}
	if near := rolloutsNear(filepath.Join(dir, own)); len(near) != 1 || filepath.Base(near[0].path) != own {
		t.Errorf("%v", near)
	}
}
