package hook_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

const sample = "../../testdata/sessions/fix-retry.claude-code.jsonl"

func agent(t testing.TB, name string) *hook.Agent {
	t.Helper()
	a, err := hook.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

func read(t *testing.T, path string) *transcript.Transcript {
	t.Helper()
	f, err := transcript.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &f.Transcripts[0]
}

// TestContext: what an agent reads after its own compaction is golden, and no longer
// than it takes.
func TestContext(t *testing.T) {
	for _, name := range []string{"claude-code", "codex"} {
		a := agent(t, name)
		text, err := a.Context(t.Context(), read(t, sample))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > a.MaxContextBytes {
			t.Errorf("%s: %d bytes, and it takes %d", name, len(text), a.MaxContextBytes)
		}
		out := hook.WithContext(hook.SessionStart, text)
		v := gjson.ParseBytes(out).Get("hookSpecificOutput")
		if v.Get("hookEventName").Str != hook.SessionStart || v.Get("additionalContext").Str != text {
			t.Errorf("%s: the answer is %.200s", name, out)
		}
		golden.Equal(t, "testdata/"+name+".context.txt", text)
	}
}

// TestContextIsOfBefore: what the agent's own summary and the messages after it say is
// not said again.
func TestContextIsOfBefore(t *testing.T) {
	tr := read(t, sample)
	whole, err := agent(t, "claude-code").Context(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	at := tr.Thread.Len() / 2
	tr.Compactions = []transcript.Compaction{{At: at}}
	before, err := agent(t, "claude-code").Context(t.Context(), tr)
	if err != nil || before == whole || before == "" {
		t.Errorf("%v: the context does not depend on where the compaction was", err)
	}
	tr.Compactions = []transcript.Compaction{{At: 0}}
	if text, err := agent(t, "claude-code").Context(t.Context(), tr); err != nil || text != "" {
		t.Errorf("%v: nothing stood before, and %q is told", err, text)
	}
}

// TestNotesInContext: what the model has noted stands in the context, word for word, and leaves room for
// the rest.
func TestNotesInContext(t *testing.T) {
	tr, a := read(t, sample), agent(t, "claude-code")
	before, err := a.Context(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		id := fmt.Sprintf("note_%d", n)
		tr.Thread, err = tr.Thread.Append(
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "mcp__palimpsest__context_note", Arguments: fmt.Sprintf(`{"action":"write","text":"The spare key of door %d hangs behind shelf 9, %s."}`, n, strings.Repeat("as I saw there, ", 12))}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "mcp__palimpsest__context_note", Content: []thread.Part{thread.Text{Text: fmt.Sprintf("Noted as n%d.", n)}}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := a.Context(t.Context(), tr)
	if err != nil || !strings.Contains(text, "n59: The spare key of door 59 hangs behind shelf 9") || len(text) > a.MaxContextBytes || strings.Count(text, "spare key") < 5 {
		t.Errorf("%v: %d bytes, %.3000s", err, len(text), text)
	}
	if strings.Contains(before, "## Notes") {
		t.Error("there are notes before there were any")
	}
}

func TestRead(t *testing.T) {
	a := agent(t, "claude-code")
	c, err := a.Read(hook.PostToolUse, []byte(`{"session_id":"s1","transcript_path":"/t.jsonl","hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":{"stdout":"x"}}`))
	if want := (hook.Call{Event: hook.PostToolUse, Session: "s1", Transcript: "/t.jsonl", Tool: "Bash", Response: `{"stdout":"x"}`}); err != nil || c != want {
		t.Errorf("%v: %+v", err, c)
	}
	for in, want := range map[string]error{
		``: hook.ErrInput, `[]`: hook.ErrInput, `{"a":`: hook.ErrInput, strings.Repeat("[", 1<<20): hook.ErrInput,
		`{"hook_event_name":"Stop"}`: hook.ErrInput,
	} {
		if _, err := a.Read(hook.PostToolUse, []byte(in)); !errors.Is(err, want) {
			t.Errorf("%.20q: %v", in, err)
		}
	}
	if _, err := a.Read("Stop", []byte(`{}`)); !errors.Is(err, hook.ErrUnknown) {
		t.Errorf("an event that is not answered: %v", err)
	}
	if _, err := hook.Find("emacs"); !errors.Is(err, hook.ErrUnknown) {
		t.Errorf("an agent that is not known: %v", err)
	}
}

// TestOffload: a long text goes to a file as it is, a pointer stands between its
// beginning and its end, and the rest of the response keeps its shape.
func TestOffload(t *testing.T) {
	long := strings.Repeat("one line of output é\n", 5_000) + "the end: 3 tests failed"
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ name, event, response, path string }{
		{"an object", hook.PostToolUse, `{"stdout":"LONG","stderr":"a","n":1}`, "hookSpecificOutput.updatedToolOutput.stdout"},
		{"a text", hook.PostToolUse, `"LONG"`, "hookSpecificOutput.updatedToolOutput"},
		{"blocks", hook.PostToolUse, `[{"type":"text","text":"a"},{"type":"text","text":"LONG"}]`, "hookSpecificOutput.updatedToolOutput.1.text"},
		{"a dotted name", hook.PostToolUse, `{"a.b":{"*":"LONG"}}`, `hookSpecificOutput.updatedToolOutput.a\.b.\*`},
		{"Gemini's", hook.AfterTool, `{"llmContent":[{"text":"LONG"}],"returnDisplay":"short"}`, "reason"},
	} {
		folder := t.TempDir()
		quoted := strings.Trim(gjson.Get(mustSet(long), "v").Raw, `"`)
		c := hook.Call{Event: tt.event, Session: "../s 1", Response: strings.Replace(tt.response, "LONG", quoted, 1)}
		response, err := hook.Offload(c, folder, hook.DefaultOffload, now)
		if err != nil || response == "" {
			t.Fatalf("%s: %v: %q", tt.name, err, response)
		}
		out := hook.WithOutput(tt.event, response)
		if !gjson.ValidBytes(out) {
			t.Fatalf("%s: %.300s", tt.name, out)
		}
		got := gjson.GetBytes(out, tt.path).String()
		files, _ := filepath.Glob(filepath.Join(folder, "*", "*.txt"))
		if len(files) != 1 {
			t.Fatalf("%s: files %q", tt.name, files)
		}
		kept, _ := os.ReadFile(files[0])
		if string(kept) != long {
			t.Errorf("%s: the file does not hold the output", tt.name)
		}
		if !strings.HasPrefix(got, "one line") || !strings.HasSuffix(got, "the end: 3 tests failed") || !strings.Contains(got, files[0]) || len(got) > 7_000 {
			t.Errorf("%s: what stands in its place:\n%.4200s", tt.name, got)
		}
		if dir := filepath.Base(filepath.Dir(files[0])); dir != "___s_1" {
			t.Errorf("%s: the folder is %q", tt.name, dir)
		}
		if again, err := hook.Offload(hook.Call{Session: "s", Response: `{"stdout":"short"}`}, folder, hook.DefaultOffload, now); again != "" || err != nil {
			t.Errorf("%s: a short text is changed: %v", tt.name, err)
		}
		if off, err := hook.Offload(c, folder, 0, now); off != "" || err != nil {
			t.Errorf("%s: 0 changes something: %v", tt.name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := hook.Offload(hook.Call{Session: "s", Response: `"` + strings.Repeat("x", 50_000) + `"`}, file, hook.DefaultOffload, now); err == nil || out != "" {
		t.Errorf("what cannot be kept is shortened: %.100q, %v", out, err)
	}
}

// TestOffloadOnlyText: what is no text, and what the model is not shown, stays as it is.
func TestOffloadOnlyText(t *testing.T) {
	for _, tt := range []struct{ name, event, tool, response string }{
		{"a picture that was read", hook.PostToolUse, "Read", `{"type":"image","file":{"base64":"LONG","type":"image/png"}}`},
		{"a document that was read", hook.PostToolUse, "Read", `{"type":"pdf","file":{"filePath":"a.pdf","base64":"LONG"}}`},
		{"a picture of a notebook", hook.PostToolUse, "Read", `{"type":"notebook","file":{"cells":[{"outputs":[{"image":{"image_data":"LONG","media_type":"image/png"}}]}]}}`},
		{"a picture that a command prints", hook.PostToolUse, "Bash", `{"stdout":"LONG","isImage":true}`},
		{"a picture in an address", hook.PostToolUse, "Bash", `{"stdout":"data:image/png;base64,LONG"}`},
		{"blocks of MCP", hook.PostToolUse, "mcp__a__b", `[{"type":"image","data":"LONG","mimeType":"image/png"},{"type":"resource","resource":{"uri":"a","mimeType":"a/b","blob":"LONG"}}]`},
		{"a block of the API", hook.PostToolUse, "mcp__a__b", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"LONG"}}]`},
		{"an edited file", hook.PostToolUse, "Edit", `{"filePath":"a","oldString":"b","newString":"c","originalFile":"LONG"}`},
		{"a written file", hook.PostToolUse, "Write", `{"type":"create","filePath":"a","content":"LONG"}`},
		{"Gemini's display", hook.AfterTool, "replace", `{"llmContent":"Successfully modified file","returnDisplay":{"fileDiff":"LONG","originalContent":"LONG"}}`},
		{"Gemini's picture", hook.AfterTool, "read_file", `{"llmContent":[{"inlineData":{"mimeType":"image/png","data":"LONG"}}]}`},
		{"Gemini's picture beside text", hook.AfterTool, "read_file", `{"llmContent":["LONG",{"inlineData":{"mimeType":"image/png","data":"a"}}]}`},
		{"Gemini without content", hook.AfterTool, "read_file", `{"text":"LONG"}`},
	} {
		folder := t.TempDir()
		response := strings.ReplaceAll(tt.response, "LONG", strings.Repeat("iVBORw0KGgo/", 10_000))
		out, err := hook.Offload(hook.Call{Event: tt.event, Session: "s", Tool: tt.tool, Response: response}, folder, hook.DefaultOffload, time.Unix(0, 0))
		if out != "" || err != nil {
			t.Errorf("%s: %v: %.200s", tt.name, err, out)
		}
		if files, _ := os.ReadDir(folder); len(files) > 0 {
			t.Errorf("%s: a file was written", tt.name)
		}
	}
	// Text beside them goes to a file as ever.
	long := strings.Repeat("a line\\n", 10_000)
	for _, response := range []string{
		`[{"type":"image","data":"abc","mimeType":"image/png"},{"type":"text","text":"` + long + `"}]`,
		`{"type":"resource","resource":{"mimeType":"text/plain","text":"` + long + `"}}`,
		`{"data":"` + long + `"}`,
	} {
		out, err := hook.Offload(hook.Call{Event: hook.PostToolUse, Session: "s", Tool: "mcp__a__create", Response: response}, t.TempDir(), hook.DefaultOffload, time.Unix(0, 0))
		if !gjson.Valid(out) || len(out) > 10_000 || err != nil {
			t.Errorf("%v: %.200s", err, out)
		}
	}
}

// TestRemoveOld: folders for which nothing was written in thirty days go, and a file to which
// a pointer was just given does not, though it was there before. What cannot be removed does
// not keep the rest.
func TestRemoveOld(t *testing.T) {
	folder := t.TempDir()
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	offload := func(session string, at time.Time) {
		t.Helper()
		c := hook.Call{Event: hook.PostToolUse, Session: session, Response: `"` + strings.Repeat("x", 50_000) + `"`}
		if out, err := hook.Offload(c, folder, hook.DefaultOffload, at); out == "" || err != nil {
			t.Fatalf("%q, %v", out, err)
		}
	}
	for _, session := range []string{"again", "old", "old2"} {
		offload(session, now)
	}
	later := now.Add(40 * 24 * time.Hour)
	offload("again", later)
	if err := hook.RemoveOld(folder, later); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 || left[0].Name() != "again" {
		t.Errorf("left are %v", left)
	}
	if files, _ := os.ReadDir(filepath.Join(folder, "again")); len(files) != 1 {
		t.Errorf("%d files of the session that goes on", len(files))
	}
	if err := hook.RemoveOld(filepath.Join(folder, "none"), later); err != nil {
		t.Error(err)
	}
}

func mustSet(s string) string {
	var b strings.Builder
	b.WriteString(`{"v":"`)
	b.WriteString(strings.ReplaceAll(s, "\n", `\n`))
	b.WriteString(`"}`)
	return b.String()
}

// TestSettings: hooks are added once, beside those of others, and taken out again
// without a trace.
func TestSettings(t *testing.T) {
	for _, name := range hook.Names() {
		a := agent(t, name)
		for _, before := range []string{
			"", "{}", `{"model":"opus"}`,
			"{\n  \"hooks\": {\"SessionStart\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"echo hi\"}]}], \"AfterTool\": [{\"hooks\":[{\"command\":\"x\"}]}], \"Stop\": []},\n  \"z\": 1.0\n}",
			`{"hooks":{}}`,
		} {
			with, err := a.Add([]byte(before), "palimpsest")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range a.Events {
				want := "palimpsest hook " + name + " " + e.Name
				if n := strings.Count(string(with), want+`"`); n != 1 {
					t.Errorf("%s: %q stands %d times in %s", name, want, n, with)
				}
				groups := gjson.GetBytes(with, "hooks."+e.Name).Array()
				if last := groups[len(groups)-1]; last.Get("matcher").Str != e.Matcher || last.Get("hooks.0.timeout").Int() != int64(30*a.TicksPerSecond) {
					t.Errorf("%s: %s", name, last.Raw)
				}
			}
			moved, err := a.Add(with, "/opt/palimpsest")
			if err != nil || strings.Contains(string(moved), `"palimpsest hook`) {
				t.Errorf("%s: %v: added from another place: %s", name, err, moved)
			}
			event := a.Events[len(a.Events)-1].Name
			flagged := strings.Replace(string(moved), " "+event+`"`, " "+event+` --offload 0"`, 1)
			if again, err := a.Add([]byte(flagged), "palimpsest"); err != nil || strings.Count(string(again), "hook "+name+" "+event) != 1 || !strings.Contains(string(again), event+` --offload 0"`) {
				t.Errorf("%s: %v: added where the user gave it a flag: %s", name, err, again)
			}
			after, err := a.Remove([]byte(flagged))
			if err != nil {
				t.Fatal(err)
			}
			want := before
			if want == "" || want == `{"hooks":{}}` {
				want = "{}"
			}
			if gjson.ParseBytes(after).Get("@ugly").Raw != gjson.Parse(want).Get("@ugly").Raw {
				t.Errorf("%s: before\n%s\nafter\n%s", name, want, after)
			}
		}
		for _, bad := range []string{"// mine\n{}", "[1]", "{"} {
			if out, err := a.Add([]byte(bad), "palimpsest"); !errors.Is(err, hook.ErrInput) {
				t.Errorf("%s: %q gives %q, %v", name, bad, out, err)
			}
		}
	}
}

// TestOffloadMany: of many texts each long one is put aside, wherever it stands, and
// everything around them stays as it is.
func TestOffloadMany(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	response := ` { "a" : [ "short", "` + long + `1" , {"b.c": "` + long + `2"}],  "n":1e3 ,"a":"` + long + `3"} `
	out, err := hook.Offload(hook.Call{Session: "s", Response: response}, t.TempDir(), hook.DefaultOffload, time.Unix(0, 0))
	if err != nil || len(out) > 30_000 {
		t.Fatalf("%d bytes, %v", len(out), err)
	}
	pointers := regexp.MustCompile(`"xxx[^"]*([123])"`)
	if got := pointers.ReplaceAllString(out, "$1"); got != ` { "a" : [ "short", 1 , {"b.c": 2}],  "n":1e3 ,"a":3} ` {
		t.Errorf("%.1000s", got)
	}
}

func FuzzHook(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","tool_response":{"a":["x",{"b":"y"}]}}`))
	f.Add([]byte(`{"hooks":{"PostToolUse":[{"hooks":[{"command":"p hook claude-code PostToolUse"}]}]}}`))
	f.Add([]byte(`{"hooks":[1],"tool_response":"` + strings.Repeat("x", 13_000) + `"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		a := agent(t, "claude-code")
		if c, err := a.Read(hook.PostToolUse, in); err == nil {
			out, err := hook.Offload(c, t.TempDir(), 10, time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			if out != "" && !gjson.Valid(out) {
				t.Errorf("no JSON: %q", out)
			}
		}
		with, err := a.Add(in, "p")
		if err != nil {
			return
		}
		again, err := a.Add(with, "p")
		if err != nil || string(again) != string(with) && gjson.ParseBytes(again).Get("@ugly").Raw != gjson.ParseBytes(with).Get("@ugly").Raw {
			t.Errorf("%v: added twice\n%s\n%s", err, with, again)
		}
	})
}
