//go:build unix

package hostile_test

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
)

// The ways into the program. Each has a test here that lists what it takes by itself
// (formats, commands, operations, APIs), so that what is new joins or fails the test
// until it is listed:
//
//	the command     command_test.go     every transcript format; every command, with the files that it reads
//	the daemon      daemon_test.go      every operation of the API: bodies, addresses, queries, headers
//	the proxy       proxy_test.go       every API, whole and as a stream: requests, and answers of the upstream
//	                held_test.go        histories that the provider holds: message threads, conversations
//	                websocket_test.go   messages on a WebSocket for responses
//	connections     connection_test.go  slow and half requests to both, at the port and at the socket
//	                internal/daemon: revoked_test.go, http_test.go   streams whose key is revoked; a byte a second
//	stores          internal/cli: lockedstore_test.go                a file that another process has locked
//	names           internal/cli: names_test.go, pluginfiles_test.go what steers terminals and the page; foreign files, links
//	MCP             mcp_test.go         messages to `palimpsest mcp` and to /mcp of the daemon: every tool
//	hooks           hook_test.go        what each agent writes to `palimpsest hook`, at every event

// size is about how many bytes the cases have, and share says that every so many-th
// of them is tried. PALIMPSEST_HOSTILE=all tries every one.
func size() (n, share int) {
	switch {
	case os.Getenv("PALIMPSEST_HOSTILE") == "all":
		return 1 << 20, 1
	case corpus.Long():
		return 128 << 10, 48
	}
	return 32 << 10, 192
}

// ceiling is what a case may take, from what an ordinary input of the same size takes
// in the same run.
type ceiling struct {
	bytes int // of the ordinary input
	cpu   time.Duration
	peak  int64
}

// A case may take some multiple of what an ordinary one takes of its size: texts of
// one sign, or of a million names, are more work than prose is, but not by their square.
const (
	timesCPU  = 30
	timesPeak = 8
	// Below these nobody looks.
	freeCPU  = 1500 * time.Millisecond
	freePeak = 160 << 20
)

// times is how many times an ordinary input a case is.
func (c ceiling) times(bytes int) float64 { return max(1, float64(bytes)/float64(c.bytes)) }

// mostCPU is the processor time that a case of some bytes may take.
func (c ceiling) mostCPU(bytes int) time.Duration {
	return freeCPU + time.Duration(timesCPU*c.times(bytes)*float64(c.cpu))
}

// holds compares what a case has taken with its ceiling.
func (c ceiling) holds(t *testing.T, bytes int, f figures) {
	t.Helper()
	if limit := c.mostCPU(bytes); f.CPU > limit {
		t.Errorf("%d bytes took %v of processor time, the ceiling is %v; %d ordinary ones take %v", bytes, f.CPU, limit, c.bytes, c.cpu)
	}
	if limit := freePeak + int64(timesPeak*c.times(bytes)*float64(c.peak)); f.Peak > limit {
		t.Errorf("%d bytes took %d MB of memory, the ceiling is %d MB; %d ordinary ones take %d MB", bytes, f.Peak>>20, limit>>20, c.bytes, c.peak>>20)
	}
}

// inTurn is one sequence of cases after the other.
func inTurn(all ...iter.Seq[hostile.Case]) iter.Seq[hostile.Case] {
	return func(yield func(hostile.Case) bool) {
		for _, cases := range all {
			for c := range cases {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// worst remembers what cases took at most, to be told.
type worst struct {
	cases      int
	cpu        time.Duration
	peak       int64
	slow, wide string
}

func (w *worst) see(name string, f figures) {
	w.cases++
	if f.CPU > w.cpu {
		w.cpu, w.slow = f.CPU, name
	}
	if f.Peak > w.peak {
		w.peak, w.wide = f.Peak, name
	}
}

func (w *worst) tell(t *testing.T, c ceiling) {
	t.Helper()
	t.Logf("%d cases; %d ordinary bytes take %v and %d MB; at most %v (%s) and %d MB (%s)", w.cases, c.bytes, c.cpu, c.peak>>20, w.cpu, w.slow, w.peak>>20, w.wide)
}

// prose is ordinary text of about n bytes.
func prose(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "In step %d the handler reads file_%02d.go and finds that the function parses what it is given, line by line.\n", i, i%40)
	}
	return b.String()
}

// longest is a sample whose longest string is another, quoted one.
func longest(sample []byte, quoted string) []byte {
	at, to := 0, 0
	for i := 0; i < len(sample); i++ {
		if sample[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(sample) && sample[end] != '"' {
			if sample[end] == '\\' {
				end++
			}
			end++
		}
		if end-i > to-at {
			at, to = i, end+1
		}
		i = end
	}
	return slices.Concat(sample[:at], []byte(quoted), bytes.Clone(sample[to:]))
}
