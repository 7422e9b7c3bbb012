//go:build unix

package hostile_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
)

// childVariable says that a test binary is to do what it reads.
const childVariable = "PALIMPSEST_TEST_HOSTILE"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		// A fault must not take the machine's memory.
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: allowed, Max: allowed}); err != nil {
			panic(err)
		}
		obey(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// allowed is what a child may reserve, in bytes.
const allowed = 4 << 30

// figures is what a process has taken since it was asked before.
type figures struct {
	Peak       int64 // bytes of memory at most; 0 where the system does not tell
	CPU        time.Duration
	Goroutines int
	Files      int
}

// order is a line that a child reads: a command to run, to serve, or neither, which
// asks for figures.
type order struct {
	Args  []string `json:",omitempty"`
	Serve []string `json:",omitempty"`
	// In is what the command reads. Where it is to answer line by line, After is a last
	// line, and the input ends when Answer stands in what it says.
	In            []byte `json:",omitempty"`
	After, Answer string `json:",omitempty"`
	// Free gives memory that is not used back to the system afterwards.
	Free bool `json:",omitempty"`
}

// done is the line that it answers with.
type done struct {
	Status int
	// Answered says that Answer was there.
	Answered bool
	Said     string // on standard error, not all of it
	Text     string // on standard output, not all of it
	Address  string
	figures
}

// obey does what lines ask for, until they end.
func obey(in io.Reader, out io.Writer) {
	lines := json.NewDecoder(in)
	answers := json.NewEncoder(out)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	used := spent()
	for {
		var o order
		if lines.Decode(&o) != nil {
			return
		}
		var d done
		switch {
		case o.Serve != nil:
			r, w := io.Pipe()
			serving.Go(func() {
				status := cli.Run(ctx, o.Serve, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: w})
				w.CloseWithError(fmt.Errorf("status %d", status))
			})
			log := bufio.NewScanner(r)
			for d.Address == "" && log.Scan() {
				d.Said += log.Text() + "\n"
				_, d.Address, _ = strings.Cut(log.Text(), "serving on ")
			}
			go io.Copy(io.Discard, r)
		case o.Args != nil:
			var said, written bounded
			if o.After == "" {
				d.Status = cli.Run(ctx, o.Args, cli.Streams{In: bytes.NewReader(o.In), Out: &written, Err: &said})
			} else {
				d.Status, d.Answered = conversed(ctx, o, &written, &said)
			}
			d.Said, d.Text = said.String(), written.String()
		}
		now := spent()
		d.figures = figures{Peak: peak(), CPU: now - used, Goroutines: runtime.NumGoroutine(), Files: openFiles()}
		if err := answers.Encode(d); err != nil {
			return
		}
		if o.Free || d.Peak > 96<<20 {
			debug.FreeOSMemory() // what this one took is not the next one's
		}
		forgetPeak()
		used = spent()
	}
}

// conversed runs a command that answers line by line.
func conversed(ctx context.Context, o order, out, said io.Writer) (status int, answered bool) {
	in, lines := io.Pipe()
	answers, to := io.Pipe()
	found := make(chan bool, 1)
	go func() {
		defer close(found)
		for read := bufio.NewReader(answers); ; {
			line, err := read.ReadString('\n')
			// It is kept for who reads the report, in which there is room for little.
			_, _ = io.WriteString(out, line)
			if strings.Contains(line, o.Answer) {
				found <- true
				_, _ = io.Copy(io.Discard, read)
				return
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		// A command that has ended reads no more.
		_, _ = lines.Write(slices.Concat(o.In, []byte("\n"), []byte(o.After), []byte("\n")))
	}()
	ended := make(chan int)
	go func() {
		status := cli.Run(ctx, o.Args, cli.Streams{In: in, Out: to, Err: said})
		in.CloseWithError(io.ErrClosedPipe)
		to.Close()
		ended <- status
	}()
	answered = <-found
	lines.Close()
	return <-ended, answered
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, 20_000-b.Len()))])
	return len(p), nil
}

func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory that this process had at once since forgetPeak.
func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return kb << 10
}

// forgetPeak begins to measure anew. Where the system cannot, the peak is that of all
// cases so far, and the ceiling is stricter than it says.
func forgetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// child is such a process.
type child struct {
	t       *testing.T
	orders  *json.Encoder
	answers *json.Decoder
	ended   chan struct{}
	said    bytes.Buffer
}

func startChild(t *testing.T) *child {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), childVariable+"=1", "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, orders: json.NewEncoder(in), answers: json.NewDecoder(out), ended: make(chan struct{})}
	cmd.Stderr = &c.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the process has ended by itself: %v\n%.3000s", err, c.said.String())
		}
	})
	return c
}

// do hands it an order. A process that does not answer is the end of the test.
func (c *child) do(t *testing.T, o order) done {
	t.Helper()
	err := c.orders.Encode(o)
	var d done
	if err == nil {
		err = c.answers.Decode(&d)
	}
	if err != nil {
		t.Fatalf("%.300v: the process does not answer: %v\n%.3000s", o, err, c.said.String())
	}
	return d
}
