package sessions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// TestLinkedProject: the folder of one project may be a link too. A link back is not followed, a session of which there are
// two copies is named by its path, and a project that is left out may be named by a link to it.
func TestLinkedProject(t *testing.T) {
	folder, elsewhere := projects(t, "session-a"), t.TempDir()
	real := filepath.Join(elsewhere, "real")
	if err := os.Mkdir(real, 0o755); err != nil {
		t.Fatal(err)
	}
	line := `{"uuid":"u1","sessionId":"session-a","cwd":"` + filepath.ToSlash(real) + `","type":"user","message":{"role":"user","content":"Look."}}` + "\n"
	if err := os.WriteFile(filepath.Join(elsewhere, "session-a.jsonl"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"b": elsewhere, "back": folder, "up": filepath.Dir(folder)} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	found, err := new(sessions.Finder).Find("claude-code")
	if err != nil || len(found) != 2 || found[0].Project == found[1].Project {
		t.Fatalf("%v, %v", found, err)
	}
	if _, _, err := sessions.Pick(found, "session-"); err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "b", "session-a.jsonl")) {
		t.Errorf("two of one id: %v", err)
	}
	if newest, _, err := sessions.Pick(found, found[0].ID); err != nil || newest.Path != found[0].Path || len(newest.Twins) != 1 || newest.Twins[0] != found[1].Path {
		t.Errorf("the other of one id is not told: %+v, %v", newest, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if found, err = (&sessions.Finder{Exclude: []string{link}}).Find("claude-code"); err != nil || len(found) != 1 || found[0].Project != "session-a" {
		t.Errorf("left out by a link: %v, %v", found, err)
	}
}
