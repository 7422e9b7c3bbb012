package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuild(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: "(devel)"}}
	if got := buildOf(info).String(); !strings.HasPrefix(got, "palimpsest development\ngo1.26.1 ") {
		t.Errorf("got %q", got)
	}
	info.Main.Version = "v0.3.0"
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "2bc057c"}, {Key: "vcs.time", Value: "2026-11-21T10:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	if got := buildOf(info).String(); !strings.HasPrefix(got, "palimpsest v0.3.0\ncommit 2bc057c of 2026-11-21T10:00:00Z, with changes\ngo1.26.1 ") {
		t.Errorf("got %q", got)
	}
}

// TestStart: a command makes ready what it needs itself, not what the others do. What is
// left are the flags of all of them.
func TestStart(t *testing.T) {
	const most = 2000
	if got := testing.AllocsPerRun(5, func() {
		if status := Run(t.Context(), []string{"version"}, Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); status != exitDone {
			t.Fatal(status)
		}
	}); got > most {
		t.Errorf("version allocates %.0f times, want at most %d", got, most)
	}
}

// TestManual: every command has a page that man can read, and what it says is not
// taken for a request of man's.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	var out, report strings.Builder
	if status := Run(t.Context(), []string{"man", dir}, Streams{In: strings.NewReader(""), Out: &out, Err: &report}); status != exitDone {
		t.Fatal(report.String())
	}
	for _, name := range []string{"palimpsest", "palimpsest-compact", "palimpsest-keys-add", "palimpsest-mcp"} {
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(page), ".TH \""+strings.ToUpper(name)+"\" 1") || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s:\n%.300s", name, page)
		}
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH|SH|B|BR|PP|TP|EX|EE)( |$)`).MatchString(strings.TrimRight(line, "\n")) {
				t.Errorf("%s: %q is no request of ours", name, line)
			}
		}
	}
}

// TestCompletion: the shell is offered the values of flags, and the ids of sessions
// where a file is wanted.
func TestCompletion(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"compact|--to|", "anthropic\n"}, {"sessions|--agent|co", "codex\n"}, {"serve|--log-format|", "json\n"}, {"serve|--mcp|", "write\n"},
		{"run|--favor|", "balanced\n"}, {"compact|--model|claude", "claude-sonnet-4-5\n"}, {"plan|--policy|", "timeline\n"},
	} {
		var out, report strings.Builder
		Run(t.Context(), append([]string{"__complete"}, strings.Split(tt.args, "|")...), Streams{In: strings.NewReader(""), Out: &out, Err: &report})
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %q is not in %q", tt.args, tt.want, out.String())
		}
	}
}

// TestHealth: a daemon that is ready is status 0, and none is status 1.
func TestHealth(t *testing.T) {
	status, ready := http.StatusOK, ""
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ready = r.URL.Path
		w.WriteHeader(status)
	}))
	ask := func(url string) int {
		var out, report strings.Builder
		return Run(t.Context(), []string{"health", url}, Streams{In: strings.NewReader(""), Out: &out, Err: &report})
	}
	if got := ask(daemon.URL + "/"); got != exitDone || ready != "/readyz" {
		t.Errorf("ready: %d at %s", got, ready)
	}
	status = http.StatusServiceUnavailable
	if got := ask(daemon.URL); got != exitFailed {
		t.Errorf("not ready: %d", got)
	}
	daemon.Close()
	if got := ask(daemon.URL); got != exitFailed {
		t.Errorf("gone: %d", got)
	}
	if got := ask("localhost:1"); got != exitUsage {
		t.Errorf("no URL: %d", got)
	}
}
