package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// usageLine is an answer of the model in a transcript, to a request of so many tokens.
func usageLine(tokens int) string {
	return fmt.Sprintf(`{"type":"assistant","isSidechain":false,"message":{"model":"claude-opus-4-5","usage":{"input_tokens":7,"cache_read_input_tokens":%d,"output_tokens":9}}}`, tokens-7)
}

const (
	boundary     = `{"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":167000}}`
	boundaryTold = `{"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":167000,"postTokens":21000}}`
	quotedLine   = `{"type":"user","message":{"content":"the word \"compact_boundary\" and \"usage\" are said here"}}`
)

// TestStatusline: what Claude Code passes is told, and after a compaction, when that is of before or
// nothing, what its transcript says.
func TestStatusline(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, name := range []string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"} {
		t.Setenv(name, "")
	}
	summary := `{"type":"user","isCompactSummary":true,"message":{"content":"` + strings.Repeat("word ", 8_000) + `"}}`
	usage := func(n int) string {
		return fmt.Sprintf(`"context_window":{"context_window_size":200000,"current_usage":{"input_tokens":10,"cache_read_input_tokens":%d}}`, n-10)
	}
	for _, tt := range []struct {
		name, window string
		lines        []string
		want         string
	}{
		{"in the middle", usage(125_000), []string{usageLine(120_000), usageLine(125_000)}, "Opus · 125k of 200k (62 %) · ~42k until it compacts"},
		{"stale after a compaction", usage(167_000), []string{usageLine(167_000), boundary, summary}, "Opus · ~10k of 200k (5 %) · ~157k until it compacts · ⟲ compacted"},
		{"zero after a compaction", usage(10), []string{usageLine(167_000), boundary, summary}, "Opus · ~10k of 200k (5 %) · ~157k until it compacts · ⟲ compacted"},
		{"what it left is told", `"context_window":{"context_window_size":200000,"current_usage":null}`, []string{boundaryTold, summary}, "Opus · 21k of 200k (10 %) · ~146k until it compacts · ⟲ compacted, freed 146k"},
		{"the request after it", usage(40_000), []string{boundary, summary, usageLine(30_000), quotedLine, usageLine(40_000)}, "Opus · 40k of 200k (20 %) · ~127k until it compacts · ⟲ compacted, freed 137k"},
		{"a long time after it", usage(40_000), []string{boundary, `{"x":"` + strings.Repeat("y", statusTail) + `"}`, usageLine(40_000)}, "Opus · 40k of 200k (20 %) · ~127k until it compacts"},
		{"a sub-agent's usage", `"a":1`, []string{usageLine(50_000), strings.Replace(usageLine(9_000), "false", "true", 1)}, "Opus · 50k of 200k (25 %) · ~117k until it compacts"},
		{"nearly full", usage(180_000), nil, "Opus · 180k of 200k (90 %) · compacts next"},
		{"an older version", `"context_window":{"context_window_size":200000,"used_percentage":50}`, nil, "Opus · 100k of 200k (50 %) · ~67k until it compacts"},
		{"no request yet", `"context_window":{"context_window_size":1000000,"current_usage":null}`, nil, "Opus · window 1M"},
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(tt.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		in := fmt.Sprintf(`{"session_id":"s","transcript_path":%q,"model":{"id":"claude-opus-4-5","display_name":"Opus"},%s}`, path, tt.window)
		if status, out, errs := runOn(t, in, "statusline"); status != exitDone || out != tt.want+"\n" {
			t.Errorf("%s: status %d, got %q, want %q %s", tt.name, status, out, tt.want, errs)
		}
	}
	for _, in := range []string{"", "[", "{}", `{"transcript_path":"/"}`, `{"transcript_path":"none"}`} {
		status, out, errs := runOn(t, in, "statusline")
		if status != exitDone || out != "palimpsest: no request yet\n" || strings.Contains(errs, "the input is not the JSON") != (in == "" || in == "[") {
			t.Errorf("%q: status %d, %q %s", in, status, out, errs)
		}
	}
}

// TestStatuslineOfDocs: the example of docs/agents.md gives the line that the page says, and has every member that
// the page names; each is one that is read.
func TestStatuslineOfDocs(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, name := range []string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"} {
		t.Setenv(name, "")
	}
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "Claude Code passes one JSON object on standard input.")
	table, section, _ := strings.Cut(section, "```sh\necho '")
	in, section, _ := strings.Cut(section, "' |\n")
	_, section, _ = strings.Cut(section, "That prints `")
	want, _, _ := strings.Cut(section, "`")
	if status, out, errs := runOn(t, in, "statusline"); status != exitDone || out != want+"\n" || errs != "" {
		t.Errorf("status %d, %q, the page says %q %s", status, out, want, errs)
	}
	code, err := os.ReadFile("statusline.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(table, -1)
	for _, member := range named {
		last := member[1][strings.LastIndexByte(member[1], '.')+1:]
		if !strings.Contains(in, `"`+last+`"`) || !strings.Contains(string(code), last+`"`) {
			t.Errorf("%s stands in the table, and not in the example or not in the code", member[1])
		}
	}
	if len(named) < 10 {
		t.Errorf("the table names %d members", len(named))
	}
}

// TestStatuslineSettings: the agent's own variables move the size at which it compacts.
func TestStatuslineSettings(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	const in = `{"model":{"display_name":"M"},"context_window":{"context_window_size":200000,"current_usage":{"input_tokens":50000}}}`
	for _, tt := range []struct{ name, value, want string }{
		{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", "133000", "M · 50k of 200k (25 %) · ~50k until it compacts\n"},
		{"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50", "M · 50k of 200k (25 %) · ~50k until it compacts\n"},
		{"DISABLE_AUTO_COMPACT", "1", "M · 50k of 200k (25 %)\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tt.name, tt.value)
			if status, out, errs := runOn(t, in, "statusline"); status != exitDone || out != tt.want {
				t.Errorf("status %d, %q %s", status, out, errs)
			}
		})
	}
}

// TestStatuslineAfter: the status line that was there before runs with the same input, and its
// lines come first, however it ends.
func TestStatuslineAfter(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	const in = `{"model":{"display_name":"M"}}`
	for command, want := range map[string]string{
		"cat":               in + "\nM\n",
		"echo a; echo b":    "a\nb\nM\n",
		"echo a; exit 3":    "a\nM\n",
		"no-such-program-x": "M\n",
		"true":              "M\n",
	} {
		if status, out, errs := runOn(t, in, "statusline", "--after", command); status != exitDone || out != want {
			t.Errorf("%s: status %d, %q %s", command, status, out, errs)
		}
	}
}

// runOn runs a command line with a text on standard input.
func runOn(t *testing.T, in string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = Run(t.Context(), args, Streams{In: strings.NewReader(in), Out: &out, Err: &errs})
	return status, out.String(), errs.String()
}
