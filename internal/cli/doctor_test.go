package cli

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestDoctor: what is wrong is told with how to mend it.
func TestDoctor(t *testing.T) {
	home := agentsHome(t)
	t.Setenv("XDG_RUNTIME_DIR", "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	free := l.Addr().String()
	l.Close()
	t.Setenv("PALIMPSEST_LISTEN", free)
	states := func() (all map[string]string) {
		t.Helper()
		_, out, errs := run(t, "doctor", "--json")
		all = map[string]string{}
		for _, c := range gjson.Parse(out).Array() {
			of := c.Get("of").Str
			all[of] = strings.TrimPrefix(all[of]+"\n"+c.Get("state").Str+": "+c.Get("what").Str+" | "+c.Get("mend").Str, "\n")
		}
		if len(all) < 10 {
			t.Fatalf("%s\n%s", out, errs)
		}
		return all
	}
	expect := func(of string, wants ...string) {
		t.Helper()
		got := states()[of]
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q does not say %q", of, got, want)
			}
		}
	}
	expect("cursor", "ok: not connected | `palimpsest install`")
	expect("claude-code", "warning: it deletes a transcript 30 days after", "doctor --keep")
	expect("port", "ok: "+free+" is free")
	other, err := net.Listen("tcp", "127.0.0.1:0") // it answers nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PALIMPSEST_LISTEN", other.Addr().String())
	go func() {
		for c, err := other.Accept(); err == nil; c, err = other.Accept() {
			c.Close()
		}
	}()
	expect("port", "warning: another program has "+other.Addr().String())
	other.Close()
	t.Setenv("PALIMPSEST_LISTEN", "[::2]:7433")
	expect("port", "warning: `palimpsest serve` cannot listen tcp")
	t.Setenv("PALIMPSEST_LISTEN", free)
	expect("store", "ok: nothing was kept yet")
	expect("daemon", "ok: none is running")
	if status, _, errs := run(t, "install", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	expect("cursor", "ok: connected | ")
	expect("codex", "warning: connected, but its program codex is not on the PATH | install it, or `palimpsest uninstall codex`")
	putFile(t, filepath.Join(home, ".cursor/mcp.json"), "{}", 0o600)
	expect("cursor", "warning: an MCP server is not in place: ~/.cursor/mcp.json | `palimpsest install cursor` puts it back")
	putFile(t, filepath.Join(home, ".claude/settings.json"), `{"cleanupPeriodDays": 365}`, 0o600)
	expect("claude-code", "ok: transcripts stay for 365 days", "a status line is not in place")
	for name, version := range map[string]string{"codex": "0.999.0", "opencode": "1.18.33", "droid": "1.0.0"} {
		folder := t.TempDir()
		putFile(t, filepath.Join(folder, "package.json"), `{"version":"`+version+`"}`, 0o600)
		putFile(t, filepath.Join(folder, "bin", name), "", 0o700)
		t.Setenv("PATH", filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	}
	expect("codex", "version 0.999.0, newer than 0.171.0, which was tried")
	expect("opencode", "connected; version 1.18.33 | ")
	expect("droid", "version 1.0.0, none was tried")
	if status, _, errs := run(t, "off", "codex"); status != exitDone {
		t.Fatal(errs)
	}
	expect("switches", "warning: off for codex | `palimpsest on`")
	t.Setenv("PALIMPSEST_LISTEN", "0.0.0.0:7433")
	if status, out, errs := run(t, "compact", "../../testdata/sessions/fix-retry.claude-code.jsonl", "--budget", "32000", "-o", filepath.Join(t.TempDir(), "p.json")); status != exitDone { // makes the store
		t.Fatalf("%s%s", out, errs)
	}
	expect("store", "failed: ", "without keys", "palimpsest keys add")
	t.Setenv("PALIMPSEST_LISTEN", "nowhere")
	expect("settings", "failed: ", "correct it")
	if status, out, _ := run(t, "doctor"); status != exitFailed || !strings.Contains(out, "settings: correct it") {
		t.Errorf("status %d: %s", status, out)
	}
}

// TestDoctorKeeps: transcripts are copied once, and sessions finds the copies.
func TestDoctorKeeps(t *testing.T) {
	home := agentsHome(t)
	if status, _, errs := run(t, "doctor", "--keep"); status != exitFailed || !strings.Contains(errs, "no transcripts") {
		t.Errorf("status %d: %s", status, errs)
	}
	text, err := os.ReadFile("../../testdata/sessions/fix-retry.claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	session := filepath.Join(home, ".claude/projects/-x/0b5e7f0e-1111-4222-8333-444455556666.jsonl")
	putFile(t, session, string(text), 0o600)
	for _, want := range []string{"copied 1 of 1 transcript", "copied 0 of 1 transcript"} {
		if status, out, errs := run(t, "doctor", "--keep"); status != exitDone || !strings.Contains(out, want) {
			t.Errorf("status %d: %s%s", status, out, errs)
		}
	}
	projects := filepath.Join(home, ".claude/projects")
	k := keeper{from: projects, to: t.TempDir()}
	inside, err := os.ReadDir(filepath.Dir(session))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(projects, filepath.Join(home, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.visit(session, inside[0], nil), k.visit(session, nil, fs.ErrNotExist)); err != nil || k.copied > 0 {
		t.Errorf("what the agent deletes meanwhile: %v", err)
	}
	if err := os.Symlink("../elsewhere", projects); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := run(t, "doctor", "--keep"); status != exitDone || !strings.Contains(out, "copied 0 of 1 transcript") {
		t.Errorf("behind a link: status %d: %s%s", status, out, errs)
	}
	if err := os.RemoveAll(filepath.Join(home, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(home, ".local/share/palimpsest")
	if other := filepath.Join(home, "Library/Application Support/palimpsest"); isFolder(other) {
		data = other
	}
	t.Setenv("PALIMPSEST_SESSION_FOLDERS", "claude-code="+filepath.Join(data, "kept/claude-code"))
	if status, out, errs := run(t, "sessions"); status != exitDone || !strings.Contains(out, "0b5e7f0e") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
