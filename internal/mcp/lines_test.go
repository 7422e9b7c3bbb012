package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/mcp"
)

// TestLines: a line that is no message is answered with an error, and the next one as
// if it had not been there.
func TestLines(t *testing.T) {
	in, write := io.Pipe()
	read, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := mcp.New(&held{}, nil).Serve(t.Context(), in, out)
		out.Close()
		ended <- err
	}()
	type answer struct {
		ID     *string
		Result json.RawMessage
		Error  struct{ Code int }
	}
	answers := json.NewDecoder(bufio.NewReader(read))
	for n, c := range []struct {
		line string
		code int
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protoc`, -32700},
		{`[[[[`, -32700}, {`"`, -32700}, {"\xff\xfe{\x00}\x00", -32700}, {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), -32700}, {`{} {}`, -32700},
		{`{}`, -32600}, {`[]`, -32600}, {`[1]`, -32600}, {`7`, -32600}, {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("a", mcp.MaxMessage) + `"}`, -32600},
		{strings.Repeat(" ", mcp.MaxMessage+9), -32600},
		{"", 0}, {" \t\r", 0},
	} {
		ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, n)
		go func() { _, _ = io.WriteString(write, c.line+"\n"+ping+"\n") }() // it is read below whether it was written
		if c.code != 0 {
			var refused answer
			if err := answers.Decode(&refused); err != nil || refused.Error.Code != c.code || refused.ID != nil {
				t.Fatalf("%.60q: %+v, %v", c.line, refused, err)
			}
		}
		var pong answer
		if err := answers.Decode(&pong); err != nil || pong.ID == nil || *pong.ID != fmt.Sprint("p", n) || pong.Result == nil {
			t.Fatalf("behind %.60q: %+v, %v", c.line, pong, err)
		}
	}
	write.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestEndOfInput: a client that closes its stream behind its requests gets all answers, of a batch and of what it
// canceled too, and the end of the context ends the wait.
func TestEndOfInput(t *testing.T) {
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	list := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id) }
	const slow = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"explain","arguments":{"session":"slow"}}}`
	var many string
	for id := 3; id <= 40; id++ {
		many += list(id) + "\n"
	}
	for name, tt := range map[string]struct {
		lines   string
		answers int
	}{
		"many":     {many, 38},
		"batch":    {"[" + list(2) + "," + list(3) + "," + strings.Replace(slow, `"id":2`, `"id":4`, 1) + "]\n", 3},
		"slow":     {slow + "\n" + many, 39},
		"twice":    {slow + "\n" + slow + "\n", 1},
		"canceled": {slow + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + "\n", 1},
	} {
		ended := make(chan struct{})
		h := &held{waits: ended}
		h.add(t, "slow", "is it slow?", "yes")
		var out strings.Builder
		in := io.MultiReader(strings.NewReader(begin+tt.lines), atEnd(func() { close(ended) }))
		if err := mcp.New(h, nil).Serve(t.Context(), in, &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), `"result"`) + strings.Count(out.String(), `"error"`) - 1; got != tt.answers {
			t.Errorf("%s: %d of %d requests were answered: %s", name, got, tt.answers, out.String())
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	h := &held{waits: make(chan struct{})}
	h.add(t, "slow", "is it slow?", "yes")
	_ = mcp.New(h, nil).Serve(ctx, io.MultiReader(strings.NewReader(begin+slow+"\n"), atEnd(stop)), io.Discard)
}

// atEnd is an empty reader that calls a function when its end is read.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}
