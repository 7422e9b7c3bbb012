//go:build unix

package hostile_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/secret"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Twice the input may take so many times the processor time. What is linear takes two, what
// grows with the square four.
const (
	growth   = 2
	mostTime = 2.6
	// doublings is how often the larger input is doubled where the work looks slow. Others on the
	// machine slow a measure down by some factor, for seconds on end. That factor weighs less the
	// larger the input: 32 times as much may take 119 times as long, where a square takes 1,024.
	doublings = 5
	// mostSpent bounds one measure after the first two, in processor time: what takes longer is broken.
	mostSpent = 10 * time.Second
)

// linear holds that the work for an input grows with its size: made gives the work for
// about n bytes. The size is doubled until the work takes some time that can be
// measured; what does most bytes in less is fast enough. All times are processor time of this
// process, in which nothing else runs meanwhile.
func linear(t *testing.T, n, most int, made func(n int) func()) {
	t.Helper()
	// A machine that others use may be slow for longer than one of these measures.
	if told := steeper(n, most, made); told != "" {
		t.Logf("once more: %s", told)
		if told = steeper(n, most, made); told != "" {
			t.Error(told)
		}
	}
}

// steeper says how the work for an input grows faster than its size; "" if it does not.
func steeper(n, most int, made func(n int) func()) string {
	enough := 15 * time.Millisecond
	if corpus.Long() {
		enough = 30 * time.Millisecond
	}
	// Memory that is new to a process can take more time than the work in it, and how much
	// depends on the machine. So none is given back, and all runs after the first find theirs.
	// The limit is for work that needs the collector in between.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(3 << 30))
	timed := func(work func()) time.Duration {
		runtime.GC()
		began := spent()
		work()
		return spent() - began
	}
	work := made(n)
	small := timed(work)
	for small < enough && n < most {
		// As large as it must be if it is linear: where it is not, that shows then.
		for guess := small; guess < enough && n < most; guess *= growth {
			n *= growth
		}
		work = made(n)
		small = timed(work)
	}
	if small < enough {
		return ""
	}
	var told []string
	allowed := 1.0
	small = min(small, timed(work)) // the first finds nothing in the caches
	for k := 1; k <= doublings; k++ {
		allowed *= mostTime
		more := made(n << k)
		large := timed(more)
		if float64(large) <= allowed*float64(small) {
			return ""
		}
		if k == 1 {
			continue // twice as much again tells more than the same once more
		}
		// Others were at work, or the memory was new: once more, and the small one just before and
		// behind it, so that all find the same machine.
		work = made(n) // some works share a file
		before := timed(work)
		more = made(n << k)
		large = timed(more)
		work = made(n)
		small = (before + timed(work)) / 2
		times := float64(large) / float64(small)
		if times <= allowed {
			return ""
		}
		told = append(told, fmt.Sprintf("%d times as many %v beside %v, %.1f times as long", 1<<k, large, small, times))
		if k > 1 && growth*growth*large > mostSpent {
			break
		}
	}
	return fmt.Sprintf("%d bytes: %s", n, strings.Join(told, ", "))
}

// TestTextsAreLinear: each reader of texts takes a time that grows with the text,
// whatever piece it repeats.
func TestTextsAreLinear(t *testing.T) {
	counters := map[string]*token.Counter{}
	for _, name := range []string{"o200k", "cl100k", "claude", "gemini", "chars/4"} {
		c, err := token.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		counters[name] = c
	}
	user := func(text string) *thread.Message {
		return &thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	readers := map[string]func(text string) func(){
		"injected kind":  func(text string) func() { return func() { injected.TextKind(text) } },
		"injected words": func(text string) func() { return func() { injected.UserWords(user(text)) } },
		"secrets":        func(text string) func() { return func() { secret.Mask(text) } },
		"our forms":      func(text string) func() { return func() { ownformat.IsSummary(user(text)) } },
		"JSON":           func(text string) func() { return func() { _ = rawjson.Check(text) } },
		"quoted JSON":    func(text string) func() { return func() { rawjson.Quote(text) } },
		"checks of an answer": func(text string) func() {
			said := []thread.Message{{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: text}}}, *user("Go on with it.")}
			return func() {
				// Most of it does not pass.
				_, _ = summarize.NewGrounds(context.Background(), said, "").Prose(text)
			}
		},
		"summary": func(text string) func() {
			in := summarize.Input{Messages: []thread.Message{*user(text), {Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: text}}}}, Budget: 2000}
			return func() {
				// A budget that is too small is no matter here.
				_, _ = (&summarize.Extractive{}).Summarize(context.Background(), in)
			}
		},
		"recall": func(text string) func() {
			m, err := thread.New("t").Append(*user(text))
			if err != nil {
				t.Fatal(err)
			}
			p := &plan.Plan{ThreadID: "t", ThreadVersion: 1, Drops: []plan.Removal{{Span: m.Range(0, 1)}}}
			return func() { recall.NewIndex(recall.Removed(m, p)).Search(text[:min(len(text), 2000)], nil) }
		},
	}
	for name, c := range counters {
		readers["tokens of "+name] = func(text string) func() { return func() { c.Text(text) } }
	}
	for i, name := range slices.Sorted(maps.Keys(readers)) {
		read := readers[name]
		for k, text := range hostile.Texts(0) {
			if every := cmp.Or(share(), 12); (i+k)%every != 0 {
				continue
			}
			t.Run(name+", "+text.Name, func(t *testing.T) {
				linear(t, 32<<10, most(), func(n int) func() { return read(hostile.TextAt(k, n).Text) })
			})
		}
	}
}

// TestSecretsAreLinear: so does the mask of secrets, for what only begins as one does.
func TestSecretsAreLinear(t *testing.T) {
	for i, piece := range []string{"-----BEGIN PRIVATE KEY-----\n", "eyJabcdefgh.", "password=", "pwd:'", " -u a:", "a://b:", "sk-a1", "authorization: ", "bearer      ", "token=a "} {
		if every := cmp.Or(share(), 3); i%every != 0 {
			continue
		}
		t.Run(piece, func(t *testing.T) {
			linear(t, 32<<10, most(), func(n int) func() {
				text := strings.Repeat(piece, n/len(piece))
				return func() { secret.Mask(text) }
			})
		})
	}
}

// codecs are those of the APIs.
var codecs = map[string]wire.Codec{
	wire.Anthropic: anthropic.Codec{}, wire.Chat: openai.Chat{}, wire.Responses: openai.Responses{}, wire.Gemini: gemini.Codec{},
}

// TestCodecsAreLinear: decoding, checking and encoding a request takes a time that
// grows with its messages, parts, calls and tools.
func TestCodecsAreLinear(t *testing.T) {
	for i, api := range apis {
		sample := conversation(api, false, 100)
		for k, r := range hostile.Repeats(sample) {
			if !corpus.Long() && (i+k)%3 != 0 {
				continue
			}
			t.Run(api+" "+r.Name, func(t *testing.T) {
				c := codecs[api]
				linear(t, 32<<10, most(), func(n int) func() {
					body := r.Make(n)
					return func() {
						c.Validate(body)
						var p *prompt.Prompt
						if p, _ = c.Decode(string(body)); p != nil {
							// Whether it can be written is not what is asked here.
							_, _ = c.Encode(p)
						}
					}
				})
			})
		}
	}
}

// share says that a long run takes one of so many pairs of a reader and a text, so that it has each
// of both; 0 where the run is no long one.
func share() int {
	switch {
	case corpus.Longest():
		return 1
	case corpus.Long():
		return 2
	}
	return 0
}

// most is the largest input whose work is looked at, in bytes, before it is made four
// times as large.
func most() int {
	if corpus.Long() {
		return 1 << 20
	}
	return 128 << 10
}

// TestFormatsAreLinear: reading a transcript takes a time that grows with it, however
// many messages it has.
func TestFormatsAreLinear(t *testing.T) {
	for _, format := range transcript.Formats() {
		_, sample := sampleOf(t, format)
		whole := hostile.Repeat{Name: "many times over", Make: func(n int) []byte {
			return bytes.Repeat(append(bytes.TrimSpace(sample), '\n'), n/len(sample)+1)
		}}
		for i, r := range append(hostile.Repeats(sample), whole) {
			if !corpus.Long() && i%4 != 0 {
				continue
			}
			t.Run(string(format)+" "+r.Name, func(t *testing.T) {
				linear(t, 32<<10, most(), func(n int) func() {
					data := r.Make(n)
					return func() {
						// Some are refused at their end.
						_, _ = transcript.Read(bytes.NewReader(data), &transcript.Options{Format: format})
					}
				})
			})
		}
	}
}

// TestDamageIsLinear: reading a session with damaged lines takes a time that grows with it.
func TestDamageIsLinear(t *testing.T) {
	const whole = `{"timestamp":"2026-11-20T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}}` + "\n"
	for _, unit := range []string{`{"timestamp":`, `{"timestamp":1},`, `{"timestamp":1}`, `{"timestamp":"`, `{"timestamp":"` + "\n", `{"timestamp":{"a":1}` + "\n", "{\x00", "\x00\n", `"}` + "\n", whole[:80]} {
		t.Run(unit, func(t *testing.T) {
			linear(t, 32<<10, most(), func(n int) func() {
				data := []byte(whole + strings.Repeat(unit, n/len(unit)+1) + "\n" + whole)
				return func() { _, _ = transcript.Read(bytes.NewReader(data), nil) }
			})
		})
	}
}

// step is what an agent does again and again: its words, a call and the result.
type step struct{ user, words, tool, arguments, result string }

// logs are the logs of agents that do the same again and again; %d is the number of
// the step.
var logs = map[string]step{
	"reads of one file":     {"", "", "Read", `{"file_path":"a.go"}`, "1\tpackage a\n2\tfunc A() {}\n3\t// %d\n"},
	"parts of one file":     {"", "", "Read", `{"file_path":"a.go","offset":%d}`, "1\tpackage a\n2\tfunc A() {}\n3\t// %d\n4\t}"},
	"edits of one file":     {"", "I change the next line.", "Edit", `{"file_path":"a.go","old_string":"line %d","new_string":"line %[1]d changed"}`, "The file has been updated."},
	"edits of one line":     {"", "I change it once more.", "Edit", `{"file_path":"a.go","old_string":"x := 1","new_string":"x := 1"}`, "The file has been updated."},
	"patches":               {"", "I patch it.", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n-x%d\n+y%[1]d\n*** End Patch"}`, "Done!"},
	"failures":              {"", "I try again.", "Bash", `{"command":"go test ./p%d"}`, "Exit code 1\n--- FAIL: TestA%d (0.00s)\n    a_test.go:%[1]d: got 1, want 2\nFAIL"},
	"the same failure":      {"", "I try again.", "Bash", `{"command":"go test ./p"}`, "Exit code 1\n--- FAIL: TestA (0.00s)\n    a_test.go:7: got 1, want 2\nFAIL"},
	"the same command":      {"", "", "Bash", `{"command":"git status"}`, "On branch main\nnothing to commit"},
	"writes of one file":    {"", "", "Write", `{"file_path":"a.go","content":"package a // %d\n"}`, "File written."},
	"searches":              {"", "", "Grep", `{"pattern":"Handle%d"}`, "a.go:%d: Handle%[1]d()\nb.go:2: Handle%[1]d()"},
	"todo lists":            {"", "I go on.", "TodoWrite", `{"todos":[{"content":"Do step %d","status":"in_progress"},{"content":"Test it","status":"pending"}]}`, "Todos have been modified."},
	"questions":             {"Yes, number %d.", "Should I change file %d too? Or should I leave it as it is?", "", "", ""},
	"rules of the user":     {"You must never touch file %d, and always run test %[1]d.", "I will not.", "", "", ""},
	"decisions":             {"", "I decided to use approach %d because approach %[1]d is simpler. The root cause is in file_%[1]d.go.", "", "", ""},
	"reminders":             {"<system-reminder>Step %d.</system-reminder>", "Fine.", "", "", ""},
	"summaries":             {"This session is being continued from a previous conversation that ran out of context. 1. Step %d was done.", "I go on.", "", "", ""},
	"rows":                  {"", "", "fetch", `{"page":%d}`, `[{"id":%d,"city":"K"},{"id":%[1]d,"city":"L"}]`},
	"small messages":        {"a", "b", "", "", ""},
	"results that hold ids": {"", "", "fetch", `{"page":%d}`, "commit 0123456789abcdef%08d and https://example.com/%[1]d"},
}

// log is such a log of about n bytes, as a request of the Chat API.
func (s step) log(n int) []byte {
	c := newChat()
	with := func(format string, i int) string {
		if !strings.Contains(format, "%") {
			return format
		}
		return fmt.Sprintf(format, i)
	}
	for i := 0; c.Len() < n; i++ {
		if s.user != "" {
			c.say("user", with(s.user, i))
		}
		if s.tool == "" {
			c.say("assistant", with(s.words, i))
			continue
		}
		c.call(with(s.words, i), s.tool, with(s.arguments, i))
		c.answer(with(s.result, i))
	}
	return c.end()
}

// TestLogsAreLinear: compacting a log takes a time that grows with the log, under each
// policy, whatever the agent did again and again in it.
func TestLogsAreLinear(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	policies := []string{"auto", "notes", "timeline", "session", "workstream", "ladder", "loop"}
	for i, name := range slices.Sorted(maps.Keys(logs)) {
		s := logs[name]
		for k, policy := range policies {
			if !corpus.Long() && (k != 0 || i%6 != 0) && (k%2 != 0 || name != "edits of one file") {
				continue
			}
			if corpus.Long() && k != 0 && (i+k)%3 != 0 {
				continue
			}
			t.Run(name+", "+policy, func(t *testing.T) { linear(t, 64<<10, 128<<10, compacted(t, dir, policy, s.log)) })
		}
	}
}

// compacted returns what gives the work for a log of about n bytes: the command compacts it.
func compacted(t *testing.T, dir, policy string, log func(n int) []byte) func(n int) func() {
	return func(n int) func() {
		file := filepath.Join(dir, "log.json")
		if err := os.WriteFile(file, log(n), 0o600); err != nil {
			t.Fatal(err)
		}
		return func() {
			args := []string{"compact", file, "--budget", "6000", "--policy", policy, "--store", "memory:", "-o", filepath.Join(dir, "out")}
			var said bytes.Buffer
			if status := cli.Run(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &said}); status != 0 && status != 3 {
				t.Fatalf("status %d: %.500s", status, said.String())
			}
		}
	}
}

// TestSteepLogsAreLinear: so does compacting each log for which some analysis took more. They are
// large, so that the analysis outweighs the rest.
func TestSteepLogsAreLinear(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(steep)) {
		s := steep[name]
		t.Run(name, func(t *testing.T) { linear(t, 512<<10, 512<<10, compacted(t, dir, cmp.Or(s.policy, "auto"), s.log)) })
	}
}

// TestReportIsLinear: a report of a conversation whose texts are made to be slow takes
// a time that grows with them.
func TestReportIsLinear(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	_, sample := sampleOf(t, "gemini")
	dir := t.TempDir()
	file, out := filepath.Join(dir, "texts.json"), filepath.Join(dir, "out.json")
	at := ".contents[].parts[].text: "
	for k, text := range hostile.Texts(0) {
		if every := cmp.Or(share(), 12); k%every != 3%every && text.Name != `text of "/a"` {
			continue
		}
		t.Run(text.Name, func(t *testing.T) {
			linear(t, 32<<10, 64<<10, func(n int) func() {
				for c := range hostile.Changed(sample, n, 0, 1) {
					if c.Name != at+text.Name {
						continue
					}
					if err := os.WriteFile(file, c.Data, 0o600); err != nil {
						t.Fatal(err)
					}
					break
				}
				return func() {
					// Some texts are no conversation for it.
					cli.Run(context.Background(), []string{"compact", file, "--from", "gemini", "--run", "1", "--budget", "3000", "--store", "memory:", "-o", out}, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
				}
			})
		})
	}
}
