package sessions_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// projects makes Claude Code's folder with a session in each of some projects.
func projects(t *testing.T, names ...string) (folder string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	folder = filepath.Join(home, "projects")
	for _, name := range names {
		dir := filepath.Join(folder, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte("{}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestLinkedFolder: a folder of sessions may be a link to where they are.
func TestLinkedFolder(t *testing.T) {
	folder := projects(t, "a", "b")
	if err := os.Rename(folder, folder+"-elsewhere"); err != nil {
		t.Fatal(err)
	}
	if found, err := sessions.Find("claude-code"); err != nil || len(found) > 0 {
		t.Errorf("nothing is there: %v, %v", found, err)
	}
	if err := os.Symlink(folder+"-elsewhere", folder); err != nil {
		t.Skip("no links here: ", err)
	}
	found, err := sessions.Find("claude-code")
	if err != nil || len(found) != 2 || found[0].Project == found[1].Project {
		t.Errorf("%v, %v", found, err)
	}
}

// TestUnreadableFolder: one folder that cannot be read does not hide the others, and is an
// error where nothing else is found.
func TestUnreadableFolder(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("here all folders can be read")
	}
	folder := projects(t, "a", "b", "c")
	closed := func(name string) {
		t.Helper()
		dir := filepath.Join(folder, name)
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
	}
	closed("a")
	found, err := sessions.Find("claude-code")
	if err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
	closed("b")
	closed("c")
	if found, err := sessions.Find("claude-code"); err == nil || len(found) > 0 {
		t.Errorf("nothing can be read: %v, %v", found, err)
	}
}
