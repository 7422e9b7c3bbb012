//go:build unix

package hostile_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// timesBytes is how much memory a request may take, in multiples of its bytes, and knownMore where it
// takes more: of messages and calls so short that the proxy just looks at them.
const timesBytes = 12

var knownMore = map[string]int64{"short calls": 18, "short messages": 18}

// repeatedCalls is a Chat request of about n bytes that repeats a call of a tool and its result.
func repeatedCalls(tool string, arguments, result func(i int) string) func(n int) []byte {
	return func(n int) []byte {
		var b strings.Builder
		b.WriteString(`{"model":"m","messages":[{"role":"user","content":"Do all of it."}`)
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, `,{"role":"assistant","content":"","tool_calls":[{"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}]},{"role":"tool","tool_call_id":"c%d","content":%s}`,
				i, tool, rawjson.Quote(arguments(i)), i, rawjson.Quote(result(i)))
		}
		b.WriteString("]}")
		return []byte(b.String())
	}
}

func same(text string) func(int) string { return func(int) string { return text } }

func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// said is a Chat request of about n bytes whose one message of the user repeats a piece in it.
func said(begin, piece, end string) func(n int) []byte {
	return func(n int) []byte {
		return []byte(`{"model":"m","messages":[{"role":"user","content":` + begin + strings.Repeat(piece, n/len(piece)) + end + `},{"role":"assistant","content":"I will."},{"role":"user","content":"Go on."}]}`)
	}
}

func shellScript(piece string, n int) func(int) string {
	return same(`{"command":` + rawjson.Quote(strings.Repeat(piece, n/len(piece))) + `}`)
}

// manyThings are requests that hold as many of one thing as their bytes allow.
var manyThings = map[string]func(n int) []byte{
	"commands that change the folder": repeatedCalls("Bash", shellScript("cd a;", 19_000), same("ok")),
	"commands in short lines":         repeatedCalls("Bash", shellScript("cd a;", 400), same("ok")),
	"commands that write files":       repeatedCalls("Bash", shellScript(">a;", 19_000), same("ok")),
	"commands that remove files":      repeatedCalls("Bash", shellScript("rm a b c d e f;", 19_000), same("ok")),
	"calls":                           repeatedCalls("Bash", same(`{"command":"ls"}`), same("a")),
	"calls of no known tool":          repeatedCalls("x", same(`{}`), same("")),
	"reads":                           repeatedCalls("Read", numbered(`{"file_path":"a%d"}`), same("x")),
	"reads of many paths":             repeatedCalls("Read", same(`{"paths":["a"`+strings.Repeat(`,"a"`, 5000)+`]}`), same("x")),
	"edits of many lines":             repeatedCalls("Edit", same(`{"file_path":"a","old_string":"`+strings.Repeat(`a b\n`, 4000)+`","new_string":"`+strings.Repeat(`c d\n`, 4000)+`"}`), same("ok")),
	"items of a list of tasks":        repeatedCalls("TodoWrite", same(`{"todos":[{"content":"a"}`+strings.Repeat(`,{"content":"a"}`, 2000)+`]}`), same("ok")),
	"rows of JSON":                    repeatedCalls("fetch", same(`{}`), same(`[{"a":1}`+strings.Repeat(`,{"a":1}`, 2000)+`]`)),
	"edits":                           repeatedCalls("Edit", numbered(`{"file_path":"a%d","old_string":"a","new_string":"b"}`), same("ok")),
	"patches of many files":           repeatedCalls("apply_patch", same(`{"input":`+rawjson.Quote("*** Begin Patch\n"+strings.Repeat("*** Add File: a\n+a\n", 2000))+`}`), same("Done!")),
	"nested arguments":                repeatedCalls("fetch", same(strings.Repeat(`{"a":`, 150)+"1"+strings.Repeat("}", 150)), same("ok")),
	"short calls":                     repeatedCalls("fetch", numbered(`{"url":"https://a.example/%d","text":"`+strings.Repeat("a b ", 140)+`"}`), same("ok")),
	"short messages":                  said(`"a"}`, `,{"role":"user","content":"a `+strings.Repeat("b c ", 40)+`"},{"role":"assistant","content":"b `+strings.Repeat("b c ", 40)+`"}`, `,{"role":"user","content":"a"`),
	"lines of a search":               repeatedCalls("Grep", same(`{"pattern":"a"}`), same(strings.Repeat("a:1:b\n", 5000))),
	"lines with names":                repeatedCalls("Bash", same(`{"command":"ls"}`), same(strings.Repeat("a.go\n", 2000))),
	"lines with names in a file":      repeatedCalls("Read", same(`{"file_path":"a"}`), same(strings.Repeat("a.go\n", 2000))),
	"paragraphs with names":           said(`"`, `a.go\n\n`, `"`),
	"reports of a sub-agent":          repeatedCalls("Task", same(`{"prompt":"a"}`), same(strings.Repeat("a.go\n\n", 2000))),
	"definitions":                     repeatedCalls("Edit", same(`{"file_path":"a.go","old_string":"","new_string":"`+strings.Repeat(`func a()\n`, 4000)+`"}`), same("ok")),
	"commands in lines":               repeatedCalls("Bash", shellScript("echo \"a\"\n", 19_000), same("ok")),
	"failures":                        repeatedCalls("Bash", same(`{"command":"go test ./..."}`), same("Exit code 1\n"+strings.Repeat("--- FAIL: A (0.00s)\n", 2000))),
	"paths":                           said(`"`, "/a/b ", `"`),
	"lines":                           said(`"`, `a\n`, `"`),
	"tasks":                           said(`"`, `- [ ] a\n`, `"`),
	"rules":                           said(`"`, `Never do a. `, `"`),
	"parts":                           said(`[{"type":"text","text":"a"}`, `,{"type":"text","text":"a"}`, `]`),
	"messages":                        said(`"a"}`, `,{"role":"user","content":"a"},{"role":"assistant","content":"b"}`, `,{"role":"user","content":"a"`),
}

// TestMemoryFollowsBytes: whatever a request holds many of, the daemon takes for it a bounded
// multiple of its bytes. When garbage is collected is chance: the least of three tries counts.
func TestMemoryFollowsBytes(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(manyThings)) {
		t.Run(name, func(t *testing.T) {
			body := manyThings[name](8_000_000)
			most := max(timesBytes, knownMore[name]) * int64(len(body))
			least := most + 1
			for try := 0; least > most && try < 3; try++ {
				least = min(least, memoryOf(t, body))
			}
			if least > most {
				t.Errorf("%d bytes took more than %d MB of memory, %d times as much", len(body), most>>20, most/int64(len(body)))
			}
		})
	}
}

// memoryOf is what a daemon takes for a request, in bytes.
func memoryOf(t *testing.T, body []byte) int64 {
	t.Helper()
	s, _ := proxied(t, "--memory", "400MB") // so that what is remembered between steps is little
	s.alive(t, wire.Chat)
	s.send(t, request{"POST", pathOf(wire.Chat, false), nil, bytes.Replace(manyThings["calls"](500_000), []byte("Do all"), []byte("Do most"), 1)}) // what is loaded once is not the request's
	s.do(t, order{Free: true})
	idle := s.do(t, order{}).Peak
	status, answer := s.send(t, request{"POST", pathOf(wire.Chat, false), nil, body})
	f := s.do(t, order{}).figures
	if status != 200 {
		t.Errorf("%d bytes: %d %.300s", len(body), status, answer)
	}
	taken := max(0, f.Peak-idle)
	t.Logf("%d bytes took %d MB beside %d MB, %.1f times as much, and %v", len(body), taken>>20, idle>>20, float64(taken)/float64(len(body)), f.CPU)
	s.alive(t, wire.Chat)
	return taken
}

// TestWorkInsideMemory: a request that would take more than half of the memory for work passes
// unchanged, and is compacted where there is more.
func TestWorkInsideMemory(t *testing.T) {
	body := manyThings["failures"](5_000_000)
	for memory, want := range map[string]string{"100MB": "too-large", "1GB": ""} {
		s, _ := proxied(t, "--memory", memory)
		s.alive(t, wire.Chat)
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+pathOf(wire.Chat, false), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("X-Palimpsest-Reason"); res.StatusCode != 200 || got != want {
			t.Errorf("%s: status %d, passed because of %q, want %q", memory, res.StatusCode, got, want)
		}
	}
}
