package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lost"
)

// TestQualityLine: a line says what was freed, and what was read and asked again.
func TestQualityLine(t *testing.T) {
	for _, c := range []struct {
		q    lost.Quality
		want string
	}{
		{lost.Quality{Before: 1500, After: 500}, "It freed 1,000 tokens (as the agent counted its requests: 1,500 → 500); after it nothing was read or asked again."},
		{lost.Quality{Messages: true, Before: 1500, After: 500}, "It freed 1,000 tokens (messages alone, estimated: 1,500 → 500); after it nothing was read or asked again."},
		{lost.Quality{Messages: true, Before: 1500, After: 500, Ended: true}, "It freed 1,000 tokens (messages alone, estimated: 1,500 → 500); the session ends with it."},
		{lost.Quality{Messages: true, Before: 1500, After: 500, Reread: []string{"/src/cart.go"}, Reruns: 2, Asked: true}, "It freed 1,000 tokens (messages alone, estimated: 1,500 → 500); after it: 1 file read again (cart.go), 2 commands run again, the agent asked for what it had been told."},
		{lost.Quality{Messages: true, Before: 500, After: 600, Repeated: []string{"Round to francs."}}, `It freed 0 tokens (messages alone, estimated: 500 → 600); after it: you said "Round to francs." again.`},
	} {
		if got := qualityLine(&c.q); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestLost: a summary that only its provider can read is told, not compared.
func TestLost(t *testing.T) {
	var b strings.Builder
	(&printer{w: &b}).compaction(&compaction{Turn: 3, Unreadable: true}, "none")
	if got := b.String(); !strings.Contains(got, "in turn 3, has a summary that only its provider can read") {
		t.Errorf("got %q", got)
	}
}

// TestLostOfNewest: without a FILE the newest session is looked at, and named; without one on this machine that is said.
func TestLostOfNewest(t *testing.T) {
	file := sessionOnMachine(t)
	status, out, said := run(t, "lost")
	if _, want, _ := run(t, "lost", file); status != exitDone || strings.Join(strings.Fields(out), " ") != strings.ReplaceAll(strings.Join(strings.Fields(want), " "), file, onlyID) || out == "" || !strings.HasPrefix(said, "palimpsest: latest is the session "+onlyID+" of claude-code, changed ") {
		t.Errorf("exit status %d: %s%s", status, out, said)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if status, out, said := run(t, "lost"); status != exitUsage || !strings.Contains(said, "no sessions were found on this machine: name a FILE") {
		t.Errorf("exit status %d: %s%s", status, out, said)
	}
}

// TestWhole: the size of a session with a compaction of its own says what it counts.
func TestWhole(t *testing.T) {
	if _, out, errs := run(t, "plan", "sample.jsonl", "--budget", "600"); !strings.Contains(out, "\n506 of it is what the agent sees now, after its own compactions; prices are for that\n") {
		t.Errorf("%s%s", out, errs)
	}
	if _, out, errs := run(t, "inspect", "sample.jsonl"); !strings.Contains(out, " tokens, with what the agent's own compactions removed; 463 that it sees now\n") {
		t.Error(out, errs)
	}
}

// TestWeek: a line says what the compactions of a week saved, if the settings ask for it, and nothing where none was made.
func TestWeek(t *testing.T) {
	file := sessionOnMachine(t)
	week := func(since time.Time) string {
		t.Helper()
		line, err := weekLine(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	t.Setenv("PALIMPSEST_WEEKLY", "on")
	if line := week(time.Time{}); line != "" {
		t.Errorf("nothing is stored: %s", line)
	}
	for _, budget := range []string{"16000", "9000"} {
		if status, _, said := run(t, "compact", file, "--budget", budget, "-o", os.DevNull); status != exitDone {
			t.Fatal(said)
		}
	}
	_, hits, _ := run(t, "recall", "retry")
	for _, edit := range [][]string{{"pin", onlyID, strings.Fields(hits)[0]}, {"undo", onlyID}} { // no compactions
		edited := time.Now()
		if status, _, said := run(t, edit...); status != exitDone {
			t.Fatal(said)
		}
		if line := week(edited); line != "" {
			t.Errorf("%s is a compaction: %s", edit[0], line)
		}
	}
	if line := week(time.Now().AddDate(0, 0, -7)); !regexp.MustCompile(`^In the last seven days 2 compactions left 10\d,\d{3} tokens less than the whole conversation, on average\.$`).MatchString(line) {
		t.Errorf("got %q", line)
	}
	if line := week(time.Now().Add(time.Hour)); line != "" {
		t.Errorf("none is so new: %s", line)
	}
	if _, out, _ := run(t); !strings.Contains(out, "In the last seven days") {
		t.Error(out)
	}
	t.Setenv("PALIMPSEST_WEEKLY", "off")
	if _, out, _ := run(t); strings.Contains(out, "In the last seven days") {
		t.Error(out)
	}
}

// ruleSession is a request in which the user lays down rules between calls.
func ruleSession(t *testing.T) string {
	t.Helper()
	messages := []string{`{"role":"user","content":"Please fix the build."}`}
	for i, rule := range []string{"Never touch the public API of package store.", "Do not add dependencies without asking me.", "Go on.", "Next one."} {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":"Looking.","tool_calls":[{"id":"c%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"f%[1]d.go\"}"}}]}`, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, strings.Repeat("var x = 1\n", 200)),
			fmt.Sprintf(`{"role":"user","content":%q}`, rule))
	}
	putFile(t, "rules.json", `{"model":"gpt-5.1","messages":[`+strings.Join(messages, ",")+`]}`, 0o600)
	return "rules.json"
}

// TestRulesThatDoNotFit: what the user laid down and the prompt has no room for is told by compact, and by lost of the
// stored conversation; with room nothing is.
func TestRulesThatDoNotFit(t *testing.T) {
	sessionOnMachine(t)
	file := ruleSession(t)
	const rule = "Never touch the public API of package store."
	_, _, wide := run(t, "compact", file, "--budget", "1000", "-o", os.DevNull)
	_, _, narrow := run(t, "compact", file, "--budget", "70", "-o", os.DevNull)
	if strings.Contains(wide, "did not fit") || !strings.Contains(narrow, "did not fit, though it still stands\n") || !strings.Contains(narrow, rule) {
		t.Errorf("with room: %s\nwithout: %s", wide, narrow)
	}
	_, listed, _ := run(t, "threads", "--json")
	stored := regexp.MustCompile(`"thread_id":"([^"]+)"`).FindStringSubmatch(listed)
	if _, out, said := run(t, "lost", stored[1]); !strings.Contains(out, "Plan 2 of Palimpsest, in turn 5, ") || !strings.Contains(out, rule) || !strings.Contains(out, "palimpsest recall WORDS --thread "+stored[1]) {
		t.Errorf("%s%s", out, said)
	}
	if _, out, said := run(t, "inspect", stored[1]); !strings.Contains(out, " · stored · 13 messages") {
		t.Errorf("%s%s", out, said)
	}
}
