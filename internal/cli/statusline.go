package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/install"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/token"
)

const (
	// maxStatusInput limits what an agent writes to the status line, in bytes, and statusTail how much
	// of the end of its transcript is read.
	maxStatusInput = 1 << 20
	statusTail     = 256 << 10
	// statusTimeout ends the user's own status line.
	statusTimeout = 5 * time.Second
	// Claude Code compacts when this much of its window is left, as its users report.
	claudeReserve = 33_000
)

func statuslineCommand(s Streams) *cobra.Command {
	var after string
	c := &cobra.Command{
		Use:   "statusline [NUMBER or ID]",
		Short: "Write one line about the room in a session: a status line for Claude Code",
		Long: `Write one line: the model, its window, how much of it is used, how much may come until the
agent compacts, what its last compaction freed, and how many notes its model has written
("palimpsest mcp --context-tools"). Claude Code's contract is JSON on standard
input; "palimpsest install claude-code" sets it up. Right after a compaction Claude Code still
passes the figures from before: then they are those of its transcript, of which only the end is
read. Figures with ~ are estimates.

For other agents, name a session of "palimpsest sessions": the line tells the tokens of its newest
request as the agent counted them.`,
		Example: "  palimpsest statusline 1\n  palimpsest statusline --after \"$HOME/.claude/mine.sh\"",
		Args:    atMostOneArg("NUMBER or ID"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printSessionStatus(s, args[0])
			}
			in, err := io.ReadAll(io.LimitReader(s.In, maxStatusInput))
			if err != nil || !rawjson.Valid(in) { // no failure: the agent shows the line
				warnUnread(s, []error{errors.New("the input is not the JSON that Claude Code passes to a status line; docs/agents.md names its members")})
			}
			own := make(chan string, 1)
			go func() { own <- readStatus(in).String() }()
			s.Out.Write(otherStatus(c.Context(), after, in))
			_, err = fmt.Fprintln(s.Out, <-own)
			return err
		},
	}
	c.Flags().StringVar(&after, "after", "", "first run this `COMMAND` of a shell with the same input, and write what it writes")
	return c
}

// otherStatus is what the user's own status line writes, however it ends.
func otherStatus(ctx context.Context, command string, in []byte) []byte {
	if command == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-c", command)
	run.Stdin, run.WaitDelay = bytes.NewReader(in), time.Second
	out, _ := run.Output()
	if out = bytes.TrimRight(out, "\r\n"); len(out) == 0 {
		return nil
	}
	return append(out, '\n')
}

// status is what a status line says. Zero figures are not known.
type status struct {
	model        string
	window, used int
	estimated    bool // used
	compacted    bool // in what was read of the session
	freed        int
	reserve      int // what the agent keeps free when it compacts
	off          bool
	notes        string // how many the model has written; "" for none
}

// readStatus reads the input of Claude Code, and the end of its transcript, which knows better what is
// used after a compaction: the agent tells that with its next request only.
func readStatus(in []byte) status {
	v := gjson.ParseBytes(in)
	window := v.Get("context_window")
	text := readTail(v.Get("transcript_path").Str)
	end := endOf(text[max(0, len(text)-statusTail):])
	id := cmp.Or(v.Get("model.id").Str, end.model)
	s := status{model: cmp.Or(v.Get("model.display_name").Str, id), used: promptTokens(window.Get("current_usage"))}
	if s.window = int(window.Get("context_window_size").Int()); s.window == 0 {
		s.window = windowOf(id)
	}
	s.used = cmp.Or(s.used, int(window.Get("used_percentage").Num/100*float64(s.window)), end.used)
	if end.compacted && end.used == 0 {
		s.used, s.estimated = end.after, end.estimated
	}
	s.compacted = end.compacted
	if !end.estimated { // as `palimpsest lost` tells it
		s.freed = max(0, end.before-end.after)
	}
	s.reserve, s.notes = reserveOf(s.window), notesPhrase(notesIn(text))
	switches, _, _ := loadSwitches()
	s.off = switches.Off(install.ClaudeCode, v.Get("session_id").Str) != ""
	return s
}

// windowOf is the window of a model of the table; 0 if it is not known.
func windowOf(model string) int {
	if strings.HasSuffix(model, "[1m]") {
		return 1_000_000
	}
	if m, err := token.Models().Find(model); err == nil {
		return m.Window
	}
	return 0
}

// reserveOf is how much is left of a window when Claude Code compacts, with the variables by which
// its users set that.
func reserveOf(window int) int {
	if window == 0 || os.Getenv("DISABLE_AUTO_COMPACT") != "" || os.Getenv("DISABLE_COMPACT") != "" {
		return 0
	}
	at := window - min(claudeReserve, window)
	if own, err := strconv.Atoi(os.Getenv("CLAUDE_CODE_AUTO_COMPACT_WINDOW")); err == nil && own > 0 && own < window {
		at = own - min(claudeReserve, own)
	}
	if share, err := strconv.ParseFloat(os.Getenv("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"), 64); err == nil && share > 0 && share <= 100 {
		at = min(at, int(float64(window)*share/100))
	}
	return window - at
}

// promptTokens are those of a request, as the provider counted them.
func promptTokens(usage gjson.Result) int {
	return int(usage.Get("input_tokens").Int() + usage.Get("cache_creation_input_tokens").Int() + usage.Get("cache_read_input_tokens").Int())
}

// ending is what the end of a transcript of Claude Code tells.
type ending struct {
	model     string // that spoke last
	used      int    // by the newest request; 0 if none is there
	compacted bool   // in this part
	before    int    // what the last compaction began with
	// after is what it left: as Claude Code says, else the first request after it, else an estimate
	// of what stands behind it.
	after     int
	estimated bool
}

// endOf reads the lines from the last one back to the last compaction.
func endOf(text []byte) (e ending) {
	behind := 0
	for len(text) > 0 {
		at := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		line := text[at:]
		text = text[:at]
		behind += len(line)
		var v gjson.Result
		if bytes.Contains(line, []byte(`"compact_boundary"`)) || bytes.Contains(line, []byte(`"usage"`)) {
			v = gjson.ParseBytes(line)
		}
		if v.Get("subtype").Str == "compact_boundary" {
			about := v.Get("compactMetadata")
			e.compacted, e.before = true, int(about.Get("preTokens").Int())
			e.after = cmp.Or(max(0, int(about.Get("postTokens").Int())), e.after)
			if e.after == 0 {
				e.after, e.estimated = behind/4, true
			}
			return e
		}
		if n := promptTokens(v.Get("message.usage")); n > 0 && v.Get("type").Str == "assistant" && !v.Get("isSidechain").Bool() {
			e.after = n
			e.used, e.model = cmp.Or(e.used, n), cmp.Or(e.model, v.Get("message.model").Str)
		}
	}
	e.after = 0 // it is of no compaction
	return e
}

// readTail reads the end of a file; nothing if it cannot be read.
func readTail(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pipe may never be opened
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text := make([]byte, min(notesTail, info.Size()))
	n, _ := f.ReadAt(text, info.Size()-int64(len(text))) // it may have become shorter
	return text[:n]
}

// String is the line.
func (s status) String() string {
	var parts []string
	say := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	about := ""
	if s.estimated {
		about = "~"
	}
	used, window, room := s.used > 0, s.window > 0, s.window-s.reserve-s.used
	say(s.model != "", "%s", printable(s.model))
	say(used && window, "%s%s of %s (%s)", about, shortNumber(s.used), shortNumber(s.window), percent(s.used, max(s.window, 1)))
	say(used && !window, "%s%s used", about, shortNumber(s.used))
	say(!used && window, "window %s", shortNumber(s.window))
	say(used && s.reserve > 0 && room > 0, "~%s until it compacts", shortNumber(room))
	say(used && s.reserve > 0 && room <= 0, "compacts next")
	say(s.compacted && s.freed > 0, "⟲ compacted, freed %s", shortNumber(s.freed))
	say(s.compacted && s.freed == 0, "⟲ compacted")
	say(s.notes != "", "%s", s.notes)
	say(s.off, "palimpsest is off")
	return cmp.Or(strings.Join(parts, " · "), "palimpsest: no request yet")
}

// shortNumber writes a number of tokens in thousands or millions.
func shortNumber(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 999_500:
		return strconv.Itoa((n+500)/1000) + "k"
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64), ".0") + "M"
}

// printSessionStatus writes the line of a session of any agent.
func printSessionStatus(s Streams, name string) error {
	finder, err := localFinder()
	if err != nil {
		return err
	}
	found, ok, err := finder.Resolve(name)
	if err != nil || !ok {
		return printPicked(s, name, found, ok, err)
	}
	line := status{model: found.Agent}
	if found.Agent == install.ClaudeCode {
		line = readStatus([]byte(`{"transcript_path":` + rawjson.Quote(found.Path) + `}`))
	} else {
		list := []sessions.Session{found}
		finder.Describe(list)
		line.used = list[0].Tokens
	}
	_, err = fmt.Fprintln(s.Out, line)
	return err
}
