//go:build unix

package cli_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
)

// TestModes: what a command writes of conversations only its user can read, whatever the umask.
func TestModes(t *testing.T) {
	dir, wide := os.Getenv("PALIMPSEST_TEST_MODES"), os.Getenv("PALIMPSEST_TEST_UMASK") == "0"
	if dir == "" { // the umask is that of a whole process
		for _, umask := range []string{"0", "022"} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestModes$")
			dir := t.TempDir()
			cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_MODES="+dir, "PALIMPSEST_TEST_UMASK="+umask, "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("umask %s: %v\n%s", umask, err, out)
			}
		}
		return
	}
	syscall.Umask(map[bool]int{true: 0, false: 0o022}[wide])
	in := func(name string) string { return filepath.Join(dir, name) }
	session := "../../testdata/sessions/import-csv.openai-chat.json"
	for _, args := range [][]string{
		{"compact", session, "--budget", "6000", "--store", in("store.db"), "-o", in("prompt.json"), "--plan-out", in("plan.json")},
		{"compact", session, "--budget", "6000", "--policy", "ladder", "-o", in("prompt.txt"), "--to", "text"},
		{"render", session, "--plan", in("plan.json"), "--to", "text", "-o", in("rendered.txt")},
		{"plan", session, "--budget", "6000", "--plan-out", in("plan2.json")},
		{"explain", session, "--budget", "6000", "-o", in("page.html")},
		{"db", "export", "--store", in("store.db"), "-o", in("export.jsonl")},
		{"db", "import", in("export.jsonl"), "--store", in("other.db")},
		{"sessions"},
	} {
		var said bytes.Buffer
		if status := cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &said, Err: &said}); status != 0 {
			t.Errorf("%s: status %d: %s", args, status, said.String())
		}
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if open := info.Mode().Perm() & 0o077; open != 0 {
			t.Errorf("%s has the mode %v", strings.TrimPrefix(path, dir), info.Mode())
		}
		return nil
	})
	if err != nil || files < 8 {
		t.Errorf("%d files, %v", files, err)
	}
}
