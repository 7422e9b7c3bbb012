package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// asking is a model that searches earlier sessions once, by the tool that an MCP server
// offers through the agent, and says what came back.
type asking struct {
	words string

	mu    sync.Mutex
	tools []string // of the server, as the agent calls them
	got   string
}

// offered are the tools of palimpsest mcp, as agents write them: with the name of the
// server before them, in the list of tools or, where the model is to look for tools
// first, in a text.
var offered = regexp.MustCompile(`(?:mcp_+)?palimpsest_+(?:recall|read_artifact|sessions|explain|compact)\b`)

// find is Claude Code's tool that looks for tools.
const find = "ToolSearch"

func (m *asking) answer(q *proxytest.Request) proxytest.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := offered.FindAllString(string(q.Body), -1)
	gjson.GetBytes(q.Body, "tools").ForEach(func(_, t gjson.Result) bool {
		if t.Get("type").Str == "namespace" { // Codex
			for _, name := range t.Get("tools.#.name").Array() {
				names = append(names, offered.FindString(t.Get("name").Str+"__"+name.Str))
			}
		}
		return true
	})
	for _, name := range names {
		if name != "" && !slices.Contains(m.tools, name) {
			m.tools = append(m.tools, name)
		}
	}
	i := slices.IndexFunc(m.tools, func(name string) bool { return strings.HasSuffix(name, "recall") })
	search := slices.ContainsFunc(q.Prompt.Tools, func(t prompt.Tool) bool { return t.Name == find })
	if i < 0 || len(q.Prompt.Tools) == 0 { // a title, or another side request
		return proxytest.Answer{Text: `{"title":"Search","isNewTopic":false}`}
	}
	called := 0
	for n := range q.Prompt.Messages {
		if r, ok := q.Prompt.Messages[n].Result(); ok {
			called++
			m.got = r.Text()
		}
	}
	call := func(name string, arguments map[string]string) proxytest.Answer {
		b, _ := json.Marshal(arguments) // texts always can
		return proxytest.Answer{Text: "I search.", Calls: []thread.ToolCall{{ID: fmt.Sprintf("call_%d", called), Name: name, Arguments: string(b)}}}
	}
	switch {
	case search && called == 0:
		return call(find, map[string]string{"query": "select:" + m.tools[i]})
	case !search && called == 0, search && called == 1:
		return call(m.tools[i], map[string]string{"query": m.words})
	}
	return proxytest.Answer{Text: "Found: " + m.got}
}

// told are the cells of the table: the tools that were offered, and whether the search
// came back with its place.
func (m *asking) told() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := ""
	if len(m.tools) > 0 {
		first = m.tools[0]
	}
	came := "no"
	if strings.Contains(m.got, "begin excerpt 1") && strings.Contains(m.got, "session ") {
		came = "yes"
	}
	return fmt.Sprintf("%d of 5 | `%s` | %s |", len(m.tools), first, came)
}

// spaced writes calls of an MCP server's tools as the Responses API does: the name of the
// server stands beside that of the tool.
type spaced struct{ http.ResponseWriter }

func (w spaced) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.ReplaceAll(p, []byte(`"name":"mcp__palimpsest__`), []byte(`"namespace":"mcp__palimpsest","name":"`)))
	return len(p), err
}

// Flush sends what was written.
func (w spaced) Flush() { w.ResponseWriter.(http.Flusher).Flush() }
