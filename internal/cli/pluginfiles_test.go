package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignPluginFiles: what is not ours at the place of a plugin, and what a link leads to, stays as it
// is: install and remove refuse, and name it.
func TestForeignPluginFiles(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const foreign = "export default () => ({ name: 'mine' })\n"
	for name, put := range map[string]func(folder, elsewhere string) (path string, err error){
		"a file": func(folder, _ string) (string, error) {
			path := filepath.Join(folder, "plugins", "palimpsest.js")
			return path, os.WriteFile(path, []byte(foreign), 0o600)
		},
		"a file that the plugin needs": func(folder, _ string) (string, error) {
			path := filepath.Join(folder, "plugins", "palimpsest", "daemon.js")
			return path, os.WriteFile(path, []byte(foreign), 0o600)
		},
		"a folder in place of a file": func(folder, _ string) (string, error) {
			path := filepath.Join(folder, "plugins", "palimpsest.js")
			return path, os.Mkdir(path, 0o700)
		},
		"a link to a file": func(folder, elsewhere string) (string, error) {
			path := filepath.Join(folder, "plugins", "palimpsest.js")
			return path, os.Symlink(filepath.Join(elsewhere, "kept"), path)
		},
		"a link to nothing": func(folder, elsewhere string) (string, error) {
			path := filepath.Join(folder, "plugins", "palimpsest.js")
			return path, os.Symlink(filepath.Join(elsewhere, "none"), path)
		},
		"a link to a folder": func(folder, elsewhere string) (string, error) {
			path := filepath.Join(folder, "plugins", "palimpsest")
			return path, os.Symlink(elsewhere, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, elsewhere := t.TempDir(), t.TempDir()
			t.Setenv("PATH", t.TempDir())
			t.Setenv("OPENCODE_CONFIG_DIR", folder)
			if err := os.Symlink(own, filepath.Join(os.Getenv("PATH"), "palimpsest")); err != nil {
				t.Skip("no links here: ", err)
			}
			if err := os.WriteFile(filepath.Join(elsewhere, "kept"), []byte(foreign), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(folder, "plugins"), 0o700); err != nil {
				t.Fatal(err)
			}
			if name == "a file that the plugin needs" {
				if err := os.Mkdir(filepath.Join(folder, "plugins", "palimpsest"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			path, err := put(folder, elsewhere)
			if err != nil {
				t.Fatal(err)
			}
			before := filesBelow(t, folder) + filesBelow(t, elsewhere)
			if status, out, errs := run(t, "plugin", "install", "opencode"); status != exitFailed || !strings.Contains(errs, path) {
				t.Errorf("install: status %d, %s%s", status, out, errs)
			}
			if status, out, errs := run(t, "plugin", "remove", "opencode"); status == exitDone && !strings.Contains(out, "nothing is installed") || status != exitDone && !strings.Contains(errs, path) {
				t.Errorf("remove: status %d, %s%s", status, out, errs)
			}
			if after := filesBelow(t, folder) + filesBelow(t, elsewhere); after != before {
				t.Errorf("the files were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

// filesBelow are the names and contents of all files of a folder.
func filesBelow(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all.WriteString(path + " " + d.Type().String() + "\n")
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			all.Write(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
