package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// lines lets through what is a message, a line each. Any other line is answered with an
// error of JSON-RPC and left out: to the reader behind it half a message would swallow
// those that follow, and anything else would end the conversation.
type lines struct {
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of a line that was let through
}

// The codes of JSON-RPC for a line that is no JSON, and for JSON that is no message.
const (
	parseError     = -32700
	invalidRequest = -32600
)

func newLines(in io.Reader, out io.Writer) *lines {
	return &lines{in: bufio.NewReader(in), out: out}
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, whole, err := l.next()
		if err != nil {
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		code, why := 0, ""
		switch {
		case !whole:
			code, why = invalidRequest, "the message is longer than 1 MB"
		case rawjson.Check(line) != nil:
			code, why = parseError, "want a message in JSON, in one line"
		case !isMessage(line):
			code, why = invalidRequest, "want a request, a notification or a response of JSON-RPC 2.0"
		default:
			l.rest = line
			continue
		}
		if err := l.refuse(code, why); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line with its end. Of one that is too long it keeps nothing, and whole is
// false.
func (l *lines) next() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := l.in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= MaxMessage; whole {
			line = append(line, part...)
		} else {
			line = append(line[:0], '?') // it is no empty line
		}
		switch {
		case err == nil:
			return line, whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return append(line, '\n'), whole, nil
		default:
			return nil, false, err
		}
	}
}

// isMessage reports whether a line is a message, or some.
func isMessage(line []byte) bool {
	var batch []json.RawMessage
	if err := json.Unmarshal(line, &batch); err != nil {
		_, err := jsonrpc.DecodeMessage(line)
		return err == nil
	}
	for _, one := range batch {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return false
		}
	}
	return len(batch) > 0
}

// refuse answers a line of which nobody knows which request it was.
func (l *lines) refuse(code int, why string) error {
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		_, err = l.out.Write(append(answer, '\n'))
	}
	return err
}

// answers is where several write whole lines; whoever opened it closes it.
type answers struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.Write(p)
}

// Close implements io.Closer.
func (*answers) Close() error { return nil }
