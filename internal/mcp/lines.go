package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// messageLines reads lines and lets through those that are a message. Any other line is answered with an
// error of JSON-RPC and left out: to the reader behind it half a message would swallow
// those that follow, and anything else would end the conversation.
type messageLines struct {
	in      *bufio.Reader
	out     io.Writer
	pending []byte // of a line that was let through
}

// The answers to a line of which nobody knows which request it was, with the codes of
// JSON-RPC for what is no JSON and for JSON that is no message. They are written as they
// are: an agent may send a million of such lines.
const (
	tooLongAnswer   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is longer than 1 MB"}}` + "\n"
	notJSONAnswer   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"want a message in JSON, in one line"}}` + "\n"
	noMessageAnswer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"want a request, a notification or a response of JSON-RPC 2.0"}}` + "\n"
)

func newMessageLines(in io.Reader, out io.Writer) *messageLines {
	return &messageLines{in: bufio.NewReader(in), out: out}
}

// Read implements io.Reader.
func (l *messageLines) Read(p []byte) (int, error) {
	for len(l.pending) == 0 {
		line, whole, err := l.readLine()
		if err != nil {
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		answer := ""
		switch {
		case !whole:
			answer = tooLongAnswer
		case rawjson.Check(line) != nil:
			answer = notJSONAnswer
		case !isMessage(line):
			answer = noMessageAnswer
		default:
			l.pending = line
			continue
		}
		if _, err := io.WriteString(l.out, answer); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// readLine reads a line with its end. Of one that is too long it keeps nothing, and whole is
// false.
func (l *messageLines) readLine() (line []byte, whole bool, err error) {
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

// isMessage reports whether a line is a message, or some. To decode one takes 32 KB of
// memory, so what does not name the protocol is not tried, unless it may be escaped.
func isMessage(line []byte) bool {
	if !bytes.Contains(line, []byte("jsonrpc")) && !bytes.Contains(line, []byte(`\`)) {
		return false
	}
	if !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("[")) {
		return isSingleMessage(line)
	}
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil {
		return false
	}
	return len(batch) > 0 && !slices.ContainsFunc(batch, func(one json.RawMessage) bool { return !isSingleMessage(one) })
}

// isSingleMessage reports whether data is one message.
func isSingleMessage(data []byte) bool {
	_, err := jsonrpc.DecodeMessage(data)
	return err == nil
}

// lockedWriter lets several goroutines write whole lines; whoever opened it closes it.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (a *lockedWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.Write(p)
}

// Close implements io.Closer.
func (*lockedWriter) Close() error { return nil }
