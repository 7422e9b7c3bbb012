package transcript_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// row is what index.json says of a file. For Claude Code, its messages are
// lines, and its user turns are user lines without results, reminders and
// recaps.
type row struct {
	File        string
	Format      string
	Transcripts int
	Messages    int
	UserTurns   int `json:"user_turns"`
	ToolCalls   int `json:"tool_calls"`
	Compactions int
}

func index(t testing.TB) (dir string, rows []row) {
	t.Helper()
	dir = corpus.Dir(t, "transcripts")
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	return dir, rows
}

// formats says what the index's words for a format mean here.
var formats = []struct {
	prefix string
	format transcript.Format
}{
	{"kimi", "kimi-code"}, {"codex", "codex"}, {"claude-code", "claude-code"},
	{"gemini-cli", "gemini-cli"}, {"inspect_ai", "inspect"}, {"pi-session", "pi"},
	{"anthropic", "anthropic"}, {"openai-responses", "responses"}, {"gemini-gen", "gemini"},
	{"openai-chat legacy", "toolbench"}, {"openai-chat", "openai-chat"},
	{"swe-agent", "swe-agent"}, {"tau2", "tau2"},
}

// tally is what was read of a file.
type tally struct {
	transcripts, messages, system, calls, results, plain, injected, recaps, compactions, side int
}

func count(f *transcript.File) tally {
	n := tally{transcripts: len(f.Transcripts)}
	for _, t := range f.Transcripts {
		n.system += len(t.System)
		n.compactions += len(t.Compactions)
		n.side += len(t.Side)
		n.messages += t.Thread.Len()
		for _, m := range t.Thread.All() {
			n.calls += len(m.Calls())
			if m.Role == thread.Tool {
				n.results++
			}
			if m.Role == thread.User {
				switch m.Kind {
				case thread.Plain:
					n.plain++
				case thread.Injected, thread.Attached, thread.Relayed:
					n.injected++
				case thread.Recap:
					n.recaps++
				}
			}
		}
	}
	return n
}

// explained are the files whose numbers are not those of the index, with the
// numbers that are right and the reason.
var explained = map[string]struct {
	messages, turns, calls int
	why                    string
}{
	"agent-sessions-schema/kimi-assistant_tools.jsonl.gz": {55, 8, 19, "the index counts lines, and no turns or calls"},
	"agent-sessions-schema/claude-small.jsonl.gz":         {17, 7, 2, "all lines have one uuid, one id of a message and one of a request, an answer without a request stands alone, a side chain is told by order alone, and four texts of the queue and two files are attachments"},
	"agent-sessions-schema/codex-small.jsonl.gz":          {22, 1, 6, "five recaps are messages, and tool searches are calls"},
	"pi-mono/before-compaction.jsonl.gz":                  {979, 55, 454, "13 messages of the assistant are empty"},
	"pydantic-ai-cassettes/openai-chat.jsonl.gz":          {55, 18, 18, "6 system messages stand apart"},
	"pydantic-ai-cassettes/anthropic-messages.jsonl.gz":   {143, 53, 31, "user messages with several results, or words beside them, become several"},
	"pydantic-ai-cassettes/openai-responses.jsonl.gz":     {87, 43, 13, "items of one response are one message; the provider's own calls are no calls"},
	"pydantic-ai-cassettes/gemini-generatecontent.jsonl.gz": {41, 20, 7,
		"the index counts function responses as turns, and no function calls"},
	"vivaria-inspect/anthropic-request-epoch1.json": {37, 1, 12, "12 notes on usage stand beside results"},
	"vivaria-inspect/anthropic-request-epoch4.json": {37, 1, 12, "12 notes on usage stand beside results"},
	"vivaria-inspect/anthropic-request-epoch5.json": {40, 1, 13, "13 notes on usage stand beside results"},
}

func TestCorpus(t *testing.T) {
	dir, rows := index(t)
	for n, r := range rows {
		if _, known := explained[r.File]; !known && n%6 > 0 && strings.HasPrefix(r.File, "entire-cli/") && !corpus.Long() {
			continue // one agent wrote more than half of all, which takes most of the time
		}
		t.Run(r.File, func(t *testing.T) {
			path := filepath.Join(dir, r.File)
			f, err := transcript.Open(path, nil)
			if r.File == "entire-cli-gemini/gemini-ec38b74f08e3-2.json" { // it holds a notice and nothing else
				if !errors.Is(err, transcript.ErrEmpty) {
					t.Fatalf("err = %v, want ErrEmpty", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range formats {
				if strings.HasPrefix(r.Format, k.prefix) {
					if f.Format != k.format {
						t.Errorf("format %s, want %s", f.Format, k.format)
					}
					break
				}
			}
			n := count(f)
			if n.transcripts != r.Transcripts {
				t.Errorf("%d transcripts, the index says %d", n.transcripts, r.Transcripts)
			}
			if len(f.Report.Unknown) > 0 {
				t.Errorf("unknown: %v", f.Report.Unknown)
			}
			checkThreads(t, f)
			switch e, ok := explained[r.File]; {
			case ok:
				if n.messages != e.messages || n.plain != e.turns || n.calls != e.calls {
					t.Errorf("%d messages, %d turns, %d calls; want %d, %d, %d because %s",
						n.messages, n.plain, n.calls, e.messages, e.turns, e.calls, e.why)
				}
			case f.Format == "claude-code":
				checkClaude(t, path, r, f, n)
			default:
				// Instructions stand apart, and what an agent that acts by
				// text is shown in the user's name opens no turn.
				turns := n.plain
				if f.Format == "swe-agent" {
					turns += n.injected
				}
				if n.messages+n.system != r.Messages || turns != r.UserTurns || n.calls != r.ToolCalls {
					t.Errorf("%d messages, %d turns, %d calls; the index says %d, %d, %d",
						n.messages+n.system, turns, n.calls, r.Messages, r.UserTurns, r.ToolCalls)
				}
			}
		})
	}
}

// checkThreads proves what holds for every conversation.
func checkThreads(t *testing.T, f *transcript.File) {
	t.Helper()
	for _, tr := range f.Transcripts {
		for _, m := range tr.Thread.All() {
			if r, ok := m.Result(); ok && (r.Tool == "" || r.Outcome == "") {
				if !strings.Contains(warnings(f), r.CallID) {
					t.Errorf("the result of %s lacks its tool or outcome", r.CallID)
				}
			}
		}
		checkCompactions(t, tr)
	}
}

func checkCompactions(t *testing.T, tr transcript.Transcript) {
	t.Helper()
	for _, c := range tr.Compactions {
		if c.At < 0 || c.At > tr.Thread.Len() {
			t.Errorf("compaction at %d of %d", c.At, tr.Thread.Len())
		}
		if c.Summary == "" {
			continue
		}
		if at, ok := tr.Thread.Index(c.Summary); !ok || at != c.At || tr.Thread.At(at).Kind != thread.Recap {
			t.Errorf("the compaction at %d has no recap there", c.At)
		}
	}
}

func warnings(f *transcript.File) string {
	var all []string
	for _, w := range f.Report.Warnings {
		all = append(all, w.String())
	}
	return strings.Join(all, "\n")
}

// ccRecord is a line of a session as this test reads it, apart from the
// importer.
type ccRecord struct {
	Type, Subtype    string
	UUID, ParentUUID string
	Operation        string
	Content          string
	IsSidechain      bool
	IsMeta           bool
	IsCompactSummary bool
	Message          struct {
		ID      string
		Content json.RawMessage
	}
}

// checkClaude counts the lines of a session again and says how many messages
// they make: one for each API message of the assistant, one for each result,
// and one for whatever else the user's lines hold.
func checkClaude(t *testing.T, path string, r row, f *transcript.File, n tally) {
	t.Helper()
	var lines, meta, recaps, turns, texts, mixed, results, written, noted int
	var waiting []string // in the queue
	answers := map[string]bool{}
	seen, commands := map[string]bool{}, map[string]bool{}
	for line := range bytes.SplitSeq(content(t, path), []byte("\n")) {
		var l ccRecord
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Operation == "enqueue":
			waiting = append(waiting, l.Content)
		case l.Operation == "popAll":
			waiting = nil
		case l.Operation != "" && len(waiting) > 0:
			if l.Operation == "remove" && strings.HasPrefix(waiting[0], "<") {
				noted++
			} else if l.Operation == "remove" {
				written++
			}
			waiting = waiting[1:]
		}
		if l.Subtype == "local_command" && !l.IsSidechain && !seen[l.UUID] {
			seen[l.UUID], noted = true, noted+1
		}
		if l.IsSidechain || l.Type != "user" && l.Type != "assistant" {
			continue
		}
		lines++
		if seen[l.UUID] {
			continue
		}
		seen[l.UUID] = true
		if l.Type == "assistant" {
			answers[l.Message.ID] = true
			continue
		}
		var blocks []struct{ Type string }
		json.Unmarshal(l.Message.Content, &blocks)
		held := 0
		for _, b := range blocks {
			if b.Type == "tool_result" {
				held++
			}
		}
		results += held
		switch {
		case held > 0 && held < len(blocks):
			mixed++
		case held > 0:
		case l.IsMeta && commands[l.ParentUUID]:
			texts++
		case l.IsMeta:
			meta++
		case l.IsCompactSummary:
			recaps++
		default:
			turns++
			commands[l.UUID] = bytes.HasPrefix(l.Message.Content, []byte(`"<command-message>`))
		}
	}
	turns += texts // of commands: the model took them for the user's words
	if lines != r.Messages || turns-texts != r.UserTurns {
		t.Fatalf("this test counts %d lines and %d turns, the index %d and %d", lines, turns, r.Messages, r.UserTurns)
	}
	turns, meta = turns+written, meta+noted    // while the model worked
	for _, tr := range f.Transcripts[0].Side { // branches that the user left
		if !strings.Contains(tr.Name, "/branch-") {
			continue
		}
		for _, m := range tr.Thread.All() {
			n.messages++
			n.calls += len(m.Calls())
			if m.Role == thread.User && m.Kind == thread.Plain {
				n.plain++
			} else if m.Role == thread.User {
				n.injected++
			}
		}
	}
	if want := len(answers) + results + turns + mixed + meta + recaps; n.messages != want {
		t.Errorf("%d messages, want %d: %d answers, %d results, %d turns, %d words beside results, %d reminders, %d recaps",
			n.messages, want, len(answers), results, turns, mixed, meta, recaps)
	}
	if got, want := n.plain+n.injected, turns+mixed+meta; got != want {
		t.Errorf("%d plain and %d injected messages of the user, want %d together", n.plain, n.injected, want)
	}
	if n.plain > turns+mixed || n.injected < meta {
		t.Errorf("%d plain of %d turns and %d words beside results, %d injected of %d reminders", n.plain, turns, mixed, n.injected, meta)
	}
	if n.calls != r.ToolCalls || n.results != results || n.recaps != recaps {
		t.Errorf("%d calls, %d results, %d recaps; want %d, %d, %d", n.calls, n.results, n.recaps, r.ToolCalls, results, recaps)
	}
	// Clearing the context within a session is a compaction that the index
	// does not count.
	compactions := 0
	for _, c := range f.Transcripts[0].Compactions {
		if c.Trigger != "clear" {
			compactions++
		}
	}
	if compactions != r.Compactions {
		t.Errorf("%d compactions, the index says %d", compactions, r.Compactions)
	}
}

// content reads a file, plain or gzip.
func content(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(bufio.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// TestOwnRuns reads the sessions that three clients wrote of one task of 40
// steps: what was said must be the same in all of them.
func TestOwnRuns(t *testing.T) {
	dir := corpus.Dir(t, "transcripts/own-runs")
	for file, want := range map[string]tally{
		"claude-code.jsonl.gz":   {transcripts: 1, messages: 138, calls: 40, results: 40, plain: 1, injected: 56},
		"codex-rollout.jsonl.gz": {transcripts: 1, messages: 83, system: 2, calls: 40, results: 40, plain: 1, injected: 1},
		"pi-session.jsonl.gz":    {transcripts: 1, messages: 82, calls: 40, results: 40, plain: 1},
	} {
		f, err := transcript.Open(filepath.Join(dir, file), nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if got := count(f); got != want {
			t.Errorf("%s: %+v, want %+v", file, got, want)
		}
		if len(f.Report.Unknown)+len(f.Report.Warnings) > 0 {
			t.Errorf("%s: unknown %v, warnings %v", file, f.Report.Unknown, f.Report.Warnings)
		}
	}
}

// TestRequestsKeepTheirBody proves that a request body comes out again byte for
// byte, whatever it was wrapped in.
func TestRequestsKeepTheirBody(t *testing.T) {
	codecs := map[transcript.Format]wire.Codec{
		"anthropic": anthropic.Codec{}, "openai-chat": openai.Chat{},
		"responses": openai.Responses{}, "gemini": gemini.Codec{},
	}
	read := map[transcript.Format]int{}
	err := filepath.WalkDir(corpus.Dir(t, "wire-samples"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".json") {
			return err
		}
		f, err := transcript.Open(path, nil)
		if err != nil {
			t.Error(err)
			return nil
		}
		read[f.Format]++
		tr := f.Transcripts[0]
		if tr.Prompt == nil || tr.Thread.Len() != len(tr.Prompt.Messages) {
			t.Errorf("%s: the prompt and the thread differ in length", path)
			return nil
		}
		var sample struct{ Body json.RawMessage }
		if err := json.Unmarshal(content(t, path), &sample); err != nil {
			t.Error(err)
		}
		out, err := codecs[f.Format].Encode(tr.Prompt)
		if err != nil || !bytes.Equal(out, sample.Body) {
			t.Errorf("%s: the body changed (%d bytes to %d, %v)", path, len(sample.Body), len(out), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []transcript.Format{"anthropic", "openai-chat", "responses"} {
		if read[f] == 0 {
			t.Errorf("no sample was read as %s: %v", f, read)
		}
	}
}

// TestClaudeCodeKeepsBlocks proves that a session goes to the API with every
// block as it was written, although the file keeps one block a line.
func TestClaudeCodeKeepsBlocks(t *testing.T) {
	path := filepath.Join(corpus.Dir(t, "transcripts"), "agentcmd-claude/full-session-four.jsonl.gz")
	f, err := transcript.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for line := range bytes.SplitSeq(content(t, path), []byte("\n")) {
		var l ccRecord
		if json.Unmarshal(line, &l) != nil || l.Type != "assistant" {
			continue
		}
		var held []json.RawMessage
		if err := json.Unmarshal(l.Message.Content, &held); err != nil {
			t.Fatal(err)
		}
		for _, b := range held {
			blocks = append(blocks, string(b))
		}
	}
	slices.Sort(blocks)
	var kept []string
	for _, m := range f.Transcripts[0].Thread.All() {
		if m.Role != thread.Assistant {
			continue
		}
		for _, p := range m.Parts {
			kept = append(kept, p.From().Raw)
			if !strings.Contains(m.Frame.Raw(), p.From().Raw) {
				t.Errorf("the frame lacks the block %.60s", p.From().Raw)
			}
		}
		if !json.Valid([]byte(m.Frame.Raw())) {
			t.Errorf("the frame is no JSON: %.80s", m.Frame.Raw())
		}
	}
	slices.Sort(kept)
	if !slices.Equal(blocks, kept) {
		t.Errorf("%d blocks in the file, %d kept, or with other bytes", len(blocks), len(kept))
	}
}
