package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// messageLines is a reader of the lines that are messages. It answers other lines with a
// JSON-RPC error and skips them: the SDK would end the conversation at such a line, or lose
// the messages after it.
type messageLines struct {
	ctx     context.Context // ends the wait for the last answers
	in      *bufio.Reader
	out     *lockedWriter
	pending []byte // the unread rest of a message
}

// The JSON-RPC errors for lines that are no messages. They are constants because an agent may
// send millions of such lines.
const (
	tooLongAnswer   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is longer than 1 MB"}}` + "\n"
	notJSONAnswer   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"want a message in JSON, on one line"}}` + "\n"
	noMessageAnswer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"want a request, a notification or a response of JSON-RPC 2.0"}}` + "\n"
)

// Read implements io.Reader.
func (l *messageLines) Read(p []byte) (int, error) {
	for len(l.pending) == 0 {
		line, whole, err := l.readLine()
		if err != nil {
			l.out.awaitAnswers(l.ctx)
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		refusal := ""
		switch {
		case !whole:
			refusal = tooLongAnswer
		case rawjson.Check(line) != nil:
			refusal = notJSONAnswer
		case !isMessage(line):
			refusal = noMessageAnswer
		default:
			l.pending = line
			l.out.asked(line)
			continue
		}
		if _, err := io.WriteString(l.out, refusal); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// readLine reads a line with its end. It does not keep a line that is too long: then whole is
// false.
func (l *messageLines) readLine() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := l.in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= MaxMessage; whole {
			line = append(line, part...)
		} else {
			line = append(line[:0], '?') // not empty
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

// isMessage reports whether a line is a message or a batch of them. Decoding takes 32 KB of
// memory, so a line that cannot name the protocol, even escaped, is not decoded.
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

func isSingleMessage(data []byte) bool {
	_, err := jsonrpc.DecodeMessage(data)
	return err == nil
}

// lockedWriter makes writes safe for concurrent use, and knows which requests are not
// answered: the SDK gives up on them where the client's stream ends. Close does nothing.
type lockedWriter struct {
	mu   sync.Mutex
	out  io.Writer
	open map[string]bool // the ids of requests without an answer
	done chan struct{}   // closed when none is open; nil if nobody waits
}

// Write implements io.Writer.
func (a *lockedWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.out.Write(p)
	for line := range bytes.Lines(p) {
		a.note(line)
	}
	if len(a.open) == 0 && a.done != nil {
		close(a.done)
		a.done = nil
	}
	return n, err
}

// asked notes the requests of a line, which will be answered.
func (a *lockedWriter) asked(line []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(line)
}

// note notes which requests are open after a line, or a batch: of two with one id the SDK answers one.
func (a *lockedWriter) note(line []byte) {
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) == nil {
		for _, one := range batch {
			a.note(one)
		}
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	switch err := json.Unmarshal(line, &m); {
	case err != nil || len(m.ID) == 0 || string(m.ID) == "null":
	case m.Method != "":
		a.open[string(m.ID)] = true
	default:
		delete(a.open, string(m.ID))
	}
}

// lastAnswers is how long the end of the client's stream waits for answers. The longest that was seen took seconds.
const lastAnswers = time.Minute

// awaitAnswers waits until all requests are answered, or ctx is done.
func (a *lockedWriter) awaitAnswers(ctx context.Context) {
	a.mu.Lock()
	if len(a.open) == 0 {
		a.mu.Unlock()
		return
	}
	done := make(chan struct{})
	a.done = done
	a.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, lastAnswers)
	defer stop()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Close implements io.Closer.
func (*lockedWriter) Close() error { return nil }
