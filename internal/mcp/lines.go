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

// lines lets through what is a message, a line each. Any other line is answered with an
// error of JSON-RPC and left out: to the reader behind it half a message would swallow
// those that follow, and anything else would end the conversation.
type lines struct {
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of a line that was let through
}

// The answers to a line of which nobody knows which request it was, with the codes of
// JSON-RPC for what is no JSON and for JSON that is no message. They are written as they
// are: an agent may send a million of such lines.
const (
	tooLong   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is longer than 1 MB"}}` + "\n"
	notJSON   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"want a message in JSON, in one line"}}` + "\n"
	noMessage = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"want a request, a notification or a response of JSON-RPC 2.0"}}` + "\n"
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
		answer := ""
		switch {
		case !whole:
			answer = tooLong
		case rawjson.Check(line) != nil:
			answer = notJSON
		case !isMessage(line):
			answer = noMessage
		default:
			l.rest = line
			continue
		}
		if _, err := io.WriteString(l.out, answer); err != nil {
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

// isMessage reports whether a line is a message, or some. To decode one takes 32 KB of
// memory, so what does not name the protocol is not tried, unless it may be escaped.
func isMessage(line []byte) bool {
	if !bytes.Contains(line, []byte("jsonrpc")) && !bytes.Contains(line, []byte(`\`)) {
		return false
	}
	if !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("[")) {
		return isOne(line)
	}
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil {
		return false
	}
	return len(batch) > 0 && !slices.ContainsFunc(batch, func(one json.RawMessage) bool { return !isOne(one) })
}

// isOne reports whether data is one message.
func isOne(data []byte) bool {
	_, err := jsonrpc.DecodeMessage(data)
	return err == nil
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
