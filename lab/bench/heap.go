package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/longhistory"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// memory is what a thread of a million tokens takes.
type memory struct {
	text    int // bytes of the request
	history int // bytes of heap for the thread
	known   int // and for what a compactor knows of it after a compaction
	// The command line, on the request as a file: of processors from start to end.
	took     time.Duration
	resident int // bytes at the most
}

// measureMemory also runs the command that is at the given path.
func measureMemory(ctx context.Context, root string) (*memory, error) {
	size := sizes[len(sizes)-1]
	counter, err := token.New("o200k", nil)
	if err != nil {
		return nil, err
	}
	counter.Text("the vocabulary is built")
	m := &memory{}
	before := heap()
	th, err := thread.New("bench").Append(longhistory.Messages(size, counter.Message)...)
	if err != nil {
		return nil, err
	}
	m.history = heap() - before
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		return nil, err
	}
	if _, err := c.Compact(ctx, palimpsest.Request{Thread: th, Budget: size / 4, Profile: render.For(wire.Anthropic)}); err != nil {
		return nil, err
	}
	m.known = heap() - before - m.history
	runtime.KeepAlive(c)
	body, err := anthropic.Codec{}.Encode(&prompt.Prompt{Model: "claude-sonnet-4-5", MaxOutput: 8000, Messages: th.Messages()})
	if err != nil {
		return nil, err
	}
	m.text = len(body)
	temp, err := os.MkdirTemp("", "palimpsest-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	program, request := filepath.Join(temp, "palimpsest"), filepath.Join(temp, "request.json")
	if err := os.WriteFile(request, body, 0o600); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/palimpsest")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, program, "compact", request, "--budget", fmt.Sprint(size/4), "-o", filepath.Join(temp, "prompt.json"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("palimpsest compact: %w\n%s", err, out)
	}
	m.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.resident = int(usage.Maxrss) << 10 // Linux counts kilobytes
	}
	return m, nil
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}
