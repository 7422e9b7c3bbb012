package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
)

// file writes a file of settings.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "palimpsest.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// from finds a value and where it comes from.
func from(t *testing.T, c *config.Config, name string) (value, where string) {
	t.Helper()
	for _, v := range c.All() {
		if v.Name == name {
			return v.Text, v.From
		}
	}
	t.Fatalf("no setting %s", name)
	return "", ""
}

// TestPrecedence: a flag goes before the environment, the environment before the
// file, the file before the default, and each value knows where it comes from.
func TestPrecedence(t *testing.T) {
	path := file(t, "# mine\nwindow: 100k\nrate: 10\nburst: 20\nmax-body: 1MB\n")
	c, err := config.Load(config.Sources{
		File:    path,
		Environ: []string{"PALIMPSEST_RATE=30", "PALIMPSEST_BURST=40", "PALIMPSEST_RATES=1", "PALIMPSEST_CONFIG=x", "HOME=/", "PALIMPSEST_LOG_FORMAT=json"},
		Flags:   map[string]string{"burst": "50"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, value, where string }{
		{"listen", "127.0.0.1:7433", "default"}, {"window", "100k", path + ":2"}, {"rate", "30", "PALIMPSEST_RATE"},
		{"burst", "50", "--burst"}, {"log-format", "json", "PALIMPSEST_LOG_FORMAT"},
	} {
		if value, where := from(t, c, tt.name); value != tt.value || where != tt.where {
			t.Errorf("%s: got %q from %q, want %q from %q", tt.name, value, where, tt.value, tt.where)
		}
	}
	if c.Tokens("window") != 100_000 || c.Count("burst") != 50 || c.Bytes("max-body") != 1<<20 || c.Duration("drain") != 30*time.Second || c.Text("policy") != "auto" {
		t.Error("a value is not what was written")
	}
	if got := c.Unknown(); len(got) != 1 || got[0] != "PALIMPSEST_RATES" {
		t.Errorf("unknown names: %q", got)
	}
}

// TestBadFiles: what cannot be used is refused with the line and what to do.
func TestBadFiles(t *testing.T) {
	for _, tt := range []struct{ name, text, says string }{
		{"unknown", "listen: 127.0.0.1:1\nwindows: 5\n", `:2: unknown setting "windows"; did you mean window?`},
		{"nested", "listen:\n  port: 5\n", ":1: listen: want a single value"},
		{"a list", "- listen\n", "want settings, one per line"},
		{"twice", "rate: 5\nrate: 6\n", "rate"},
		{"no YAML", "rate: [5\n", "palimpsest.yaml"},
		{"two documents", "rate: 5\n---\nrate: 6\n", "one document"},
		{"address", "listen: here\n", "want an address with a port"},
		{"port", "listen: 127.0.0.1:99999\n", "want an address with a port"},
		{"tokens", "window: many\n", "want a number of tokens"},
		{"bytes", "max-body: -1\n", "want a number of bytes"},
		{"depth", "max-depth: 1001\n", "want a whole number from 1 to 1000"},
		{"count", "rate: 0\n", "want a whole number above 0"},
		{"duration", "drain: 30\n", "want a duration"},
		{"choice", "log-level: loud\n", "want one of debug, info, warn, error"},
		{"large", "# " + strings.Repeat("x", 1<<20) + "\n", "is it a file of settings?"},
	} {
		_, err := config.Load(config.Sources{File: file(t, tt.text)})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.says)
		}
	}
	if _, err := config.Load(config.Sources{File: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that is not there was read")
	}
	if _, err := config.Load(config.Sources{File: filepath.Join(t.TempDir(), "none"), Optional: true}); err != nil {
		t.Errorf("a file that need not be there: %v", err)
	}
	for _, text := range []string{"", "# nothing\n", "\n\n", "rate: 5 # comment\n", "tls-key: \"\"\n", "tls-key: ~\n"} {
		if _, err := config.Load(config.Sources{File: file(t, text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRelativePaths: a path in a file is relative to the file's folder, and an environment can be
// told for another folder.
func TestRelativePaths(t *testing.T) {
	models := filepath.Join(t.TempDir(), "m.json")
	path := file(t, "store: sqlite:a.db\npolicy: mine.yaml\nmaster-key: keys/m\nmodels: "+models+"\n")
	c, err := config.Load(config.Sources{File: path, Environ: []string{"PALIMPSEST_TLS_KEY=k.pem"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	for name, want := range map[string]string{
		"store": "sqlite:" + filepath.Join(dir, "a.db"), "policy": filepath.Join(dir, "mine.yaml"), "master-key": filepath.Join(dir, "keys", "m"),
		"models": models, "tls-cert": "", "tls-key": "k.pem",
	} {
		if got := c.Text(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	given := []string{
		"PALIMPSEST_STORE=a.db", "PALIMPSEST_CONFIG=c.yaml", "PALIMPSEST_MASTER_KEY_FILE=m", "PALIMPSEST_POLICY=last-turns:3", "PALIMPSEST_SOCKET=", "PALIMPSEST_RATE=5", "PATH=x",
	}
	want := []string{
		"PALIMPSEST_STORE=/d/a.db", "PALIMPSEST_CONFIG=/d/c.yaml", "PALIMPSEST_MASTER_KEY_FILE=/d/m", "PALIMPSEST_POLICY=last-turns:3", "PALIMPSEST_SOCKET=", "PALIMPSEST_RATE=5", "PATH=x",
	}
	if got := config.AbsoluteEnviron(given, filepath.FromSlash("/d")); strings.Join(got, " ") != filepath.FromSlash(strings.Join(want, " ")) {
		t.Errorf("%q", got)
	}
}

// TestSecrets: a password is in no value that is shown and in no error.
func TestSecrets(t *testing.T) {
	for name, text := range map[string]string{
		"store": "postgres://me:CANARY@db/palimpsest?sslpassword=CANARY", "openai-upstream": "https://gateway.example/v1?api_key=CANARY", "gemini-upstream": "https://me:CANARY@gateway.example",
	} {
		c, err := config.Load(config.Sources{Flags: map[string]string{name: text}})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range c.All() {
			if strings.Contains(v.Redacted(), "CANARY") {
				t.Errorf("%s: shown as %q", name, v.Redacted())
			}
		}
	}
	_, err := config.Load(config.Sources{File: file(t, "store: \"postgres://me:CANARY@db/x\n  rate: [\n")})
	if err == nil || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("got %v", err)
	}
}

// FuzzFile: whatever is in a file, it is read or refused, and what is refused
// comes with the name of the file.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"rate: 5\n", "listen: {a: b}\n", "- x", "a: &a [*a]", "rate: 5\nrate: 5", "? x\n: y", "rate: !!int 5", "rate: |\n  5\n", "\x00", "<<: {rate: 1}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Sources{File: path})
		if err == nil && len(c.All()) != len(config.Settings()) {
			t.Errorf("%d values", len(c.All()))
		}
	})
}

// TestDocs: the table of settings in the documentation is the one in the code.
func TestDocs(t *testing.T) {
	table := "\n| setting | default | |\n|---|---|---|\n"
	for _, s := range config.Settings() {
		value := ""
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		table += "| `" + s.Name + "` " + s.ValueName + " | " + value + " | " + s.Usage + " |\n"
	}
	golden.Section(t, "../../docs/operations.md", "settings", table+"\n")
}

// TestIdle: 0 is never, however it is written.
func TestIdle(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "0h": 0, "15m": 15 * time.Minute} {
		c, err := config.Load(config.Sources{Environ: []string{"PALIMPSEST_IDLE=" + text}})
		if err != nil || c.Duration("idle") != want {
			t.Errorf("%s: %v, %v", text, c, err)
		}
	}
	for _, text := range []string{"-1s", "soon", "5"} {
		if _, err := config.Load(config.Sources{Environ: []string{"PALIMPSEST_IDLE=" + text}}); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
