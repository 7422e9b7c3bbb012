package integrations_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
)

// assembled is what testdata/openclaw.mjs writes.
type assembled struct {
	Info struct {
		ID                  string
		OwnsCompaction      bool
		TranscriptSemantics struct{ CurrentTurnFence, TurnAdvancementIdempotency string }
	}
	Steps []struct {
		Own, Same bool
		Tokens    int
		Messages  []struct {
			Role, Text, First, Answers string
			Calls                      []string
		}
	}
	Recalled, Later, Outside, End string
	Compacted, Ran                struct {
		OK, Compacted bool
		Reason        string
		Result        *struct{ Summary string }
	}
	After  int
	Logged []string
}

const openclawEntry = "extensions/palimpsest/index.js"

// withRuntime are the plugin's files beside OpenClaw's own compaction.
func withRuntime() map[string]string {
	files := integrations.Plugin("openclaw")
	maps.Copy(files, map[string]string{
		"node_modules/openclaw/package.json": `{"name":"openclaw","type":"module","exports":{"./plugin-sdk/core":"./core.js"}}`,
		// It asks the provider for the summary, and a model where that fails.
		"node_modules/openclaw/core.js": `export const delegateCompactionToRuntime = async p => {
			const asked = p.sessionId === 's2' ? globalThis.provider.summarize({ messages: globalThis.cut, previousSummary: 'Before that: Q1.' }) : Promise.reject()
			return { ok: true, compacted: true, result: { summary: await asked.catch(() => 'OpenClaw compacted ' + p.sessionId), tokensBefore: 1 } }
		}`,
	})
	return files
}

// TestOpenClaw plays 30 turns through a window of 20,000 tokens to the engine, beside a
// real daemon.
func TestOpenClaw(t *testing.T) {
	var got assembled
	play(t, "openclaw", withRuntime(), openclawEntry, started(t), 30, &got)
	// Of the session with one long turn the daemon knows nothing before OpenClaw compacts it.
	if want := []string{"palimpsest: there is nothing to take out", "palimpsest: a summary for one of 0 sessions"}; !slices.Equal(got.Logged, want) || len(got.Steps) != 30 {
		t.Fatalf("%d steps, logged %q", len(got.Steps), got.Logged)
	}
	// Without these OpenClaw leaves every turn to its own engine, and says so nowhere.
	if i := got.Info; i.ID != "palimpsest" || !i.OwnsCompaction || i.TranscriptSemantics.CurrentTurnFence != "before-current-turn-entry-v1" || i.TranscriptSemantics.TurnAdvancementIdempotency != "atomic-idempotent-v1" {
		t.Errorf("the engine declares %+v", i)
	}
	for i, s := range got.Steps {
		size := 0
		var calls, answers []string
		for n, m := range s.Messages {
			size += len(m.Text)
			calls = append(calls, m.Calls...)
			if m.Answers != "" {
				answers = append(answers, m.Answers)
			}
			if len(m.Calls) > 0 && m.First != "thinking" {
				t.Errorf("step %d, message %d: its reasoning is gone: %+v", i+1, n, m)
			}
		}
		if !slices.Equal(calls, answers) {
			t.Errorf("step %d: calls %q have the results %q", i+1, calls, answers)
		}
		if !s.Own || size > 20_000*4 || s.Tokens < size/8 {
			t.Errorf("step %d: OpenClaw's messages are unchanged: %t, %d bytes are left, told as %d tokens", i+1, s.Own, size, s.Tokens)
		}
		if i < 3 && !s.Same {
			t.Errorf("step %d: it was edited without a plan", i+1)
		}
	}
	last := got.Steps[29].Messages
	var all strings.Builder
	for _, m := range last {
		all.WriteString(m.Text)
	}
	if got.Steps[29].Same || last[len(last)-1].Text != "Part 29 is read." || !strings.Contains(all.String(), "Never change a file") {
		t.Errorf("at last: %.3000s", all.String())
	}
	for _, said := range []string{got.Recalled, got.Later} {
		if !strings.Contains(said, "the code is K7919") {
			t.Errorf("recall gave %.300s", said)
		}
	}
	// What stood before messages that are not sent any more stands before those that are.
	if summary := strings.Index(got.End, "Context Summary"); summary < 0 || summary > strings.Index(got.End, "Part 29 is read.") {
		t.Errorf("of the end alone is left %.3000s", got.End)
	}
	if c := got.Compacted; !c.OK || !c.Compacted || strings.Contains(c.Result.Summary, "OpenClaw compacted") || got.After != 5 {
		t.Errorf("the compaction said %+v; after one of OpenClaw's own %d messages are left", c, got.After)
	}
	summary := got.Ran.Result.Summary
	for _, want := range []string{"Before that: Q1.", "Read all parts at once. Never change a file.", "./part 2"} {
		if !strings.Contains(summary, want) || len(summary) > 20_000 {
			t.Errorf("%q is not in the summary of one long turn, which has %d bytes: %.3000s", want, len(summary), summary)
		}
	}
	if !strings.HasPrefix(got.Outside, "error: ") {
		t.Errorf("a summary of nobody knows which session: %.300s", got.Outside)
	}
}

// TestOpenClawWithoutDaemon: whatever is wrong with the daemon, OpenClaw's messages are as
// they were, it compacts by itself, and one line each time says why.
func TestOpenClawWithoutDaemon(t *testing.T) {
	for name, program := range absent(t, 1) {
		t.Run(name, func(t *testing.T) {
			var got assembled
			play(t, "openclaw", withRuntime(), openclawEntry, program, 3, &got)
			for i, s := range got.Steps {
				if !s.Same || !s.Own {
					t.Errorf("step %d: %+v", i+1, s)
				}
			}
			if c := got.Compacted; !c.Compacted || c.Result.Summary != "OpenClaw compacted s1" {
				t.Errorf("the compaction said %+v", c)
			}
			if got.Ran.Result.Summary != "OpenClaw compacted s2" {
				t.Errorf("the compaction of one long turn said %+v", got.Ran)
			}
			lines := 9
			if name == "leaves nothing" {
				lines-- // of the first step there is nothing to leave
			}
			if len(got.Logged) != lines || !strings.Contains(got.Logged[0], why[name]) || !strings.HasPrefix(got.Recalled, "error: ") || got.After != 5 {
				t.Errorf("logged %q, recall gave %q", got.Logged, got.Recalled)
			}
		})
	}
}

// TestOpenClawAlone: an OpenClaw whose own compaction is not found is told that there was
// none.
func TestOpenClawAlone(t *testing.T) {
	var got assembled
	play(t, "openclaw", integrations.Plugin("openclaw"), openclawEntry, "exit 1", 1, &got)
	if c := got.Compacted; c.OK || c.Compacted || c.Reason == "" {
		t.Errorf("the compaction said %+v", c)
	}
}

// TestOpenClawManifest: what the manifest names is there.
func TestOpenClawManifest(t *testing.T) {
	files := integrations.Plugin("openclaw")
	var manifest struct {
		ID, Kind  string
		Contracts struct{ Tools []string }
	}
	var pkg struct{ OpenClaw struct{ Extensions []string } }
	for place, v := range map[string]any{"openclaw.plugin.json": &manifest, "package.json": &pkg} {
		if err := json.Unmarshal([]byte(files["extensions/palimpsest/"+place]), v); err != nil {
			t.Fatal(place, err)
		}
	}
	if manifest.ID != "palimpsest" || manifest.Kind != "context-engine" || !slices.Equal(manifest.Contracts.Tools, []string{"recall", "read_artifact"}) {
		t.Errorf("%+v", manifest)
	}
	if len(pkg.OpenClaw.Extensions) != 1 || files["extensions/palimpsest/"+strings.TrimPrefix(pkg.OpenClaw.Extensions[0], "./")] == "" {
		t.Errorf("%+v", pkg)
	}
}
