package mcp_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

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
	answers := bufio.NewReader(read)
	for n, c := range []struct {
		line string
		code int64
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
			answer, err := answers.ReadString('\n')
			if err != nil || gjson.Get(answer, "error.code").Int() != c.code || gjson.Get(answer, "id").Raw != "null" {
				t.Fatalf("%.60q: %q, %v", c.line, answer, err)
			}
		}
		if answer, err := answers.ReadString('\n'); err != nil || gjson.Get(answer, "id").Str != fmt.Sprint("p", n) || !gjson.Get(answer, "result").Exists() {
			t.Fatalf("behind %.60q: %q, %v", c.line, answer, err)
		}
	}
	write.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
