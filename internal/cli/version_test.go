package cli

import (
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
