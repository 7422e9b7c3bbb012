package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// TestMachineMemory: the limit of the control group, or of one that it is in, goes
// before half of the machine.
func TestMachineMemory(t *testing.T) {
	const machine = "MemTotal:        8000 kB\nMemFree: 1 kB\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  int
	}{
		"half of the machine": {map[string]string{"proc/meminfo": machine}, 4000 << 10},
		"no limit":            {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 4000 << 10},
		"container":           {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000\n"}, 1000000},
		"service": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "1:name=systemd:/x\n0::/system.slice/p.service\n",
			"sys/fs/cgroup/system.slice/p.service/memory.max": "3000000\n", "sys/fs/cgroup/system.slice/memory.max": "2000000\n",
		}, 2000000},
		"first version": {map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": "5000000\n"}, 5000000},
		"unlimited":     {map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4000 << 10},
		"nothing said":  {nil, fallbackMachineMemory},
	} {
		root := t.TempDir()
		for file, text := range tt.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := machineMemory(root); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestMemoryOf: what is not set follows from the whole, and never exceeds it.
func TestMemoryOf(t *testing.T) {
	for _, tt := range []struct {
		flags                               map[string]string
		all, tenant, bodies, each, sessions int
	}{
		{map[string]string{"memory": "64GB"}, 256 << 20, 128 << 20, 512 << 20, 256 << 20, 128 << 20},
		{map[string]string{"memory": "512MB"}, 64 << 20, 32 << 20, 64 << 20, 32 << 20, 32 << 20},
		{map[string]string{"memory": "512MB", "proxy-memory": "1MB", "tenant-bodies": "2MB"}, 1 << 20, 512 << 10, 64 << 20, 2 << 20, 32 << 20},
		{map[string]string{"proxy-bodies": "1MB", "tenant-bodies": "2MB", "memory": "64GB"}, 256 << 20, 128 << 20, 1 << 20, 1 << 20, 128 << 20},
	} {
		c, err := config.Load(config.Sources{Flags: tt.flags})
		if err != nil {
			t.Fatal(err)
		}
		m := memoryLimitsOf(c)
		if m.sessions != tt.sessions || m.threads != tt.sessions/2 {
			t.Errorf("%v: %d for sessions, %d for threads", tt.flags, m.sessions, m.threads)
		}
		if b := m.bounds; b.All != tt.all || b.Tenant != tt.tenant || b.Bodies != tt.bodies || b.TenantBodies != tt.each {
			t.Errorf("%v: %+v", tt.flags, b)
		}
	}
}

// TestReadFits: what is read of a conversation of short lines of code fits the memory of a command.
func TestReadFits(t *testing.T) {
	var messages []thread.Message
	for n := range 40 {
		id := fmt.Sprint("c", n)
		var lines strings.Builder
		for l := range 200 {
			fmt.Fprintf(&lines, "\tvalue%d := part%d.Read(name%d, \"k%d\", %d)\n", l, n, l%7, n, l*n)
		}
		messages = append(messages,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "exec_command", Arguments: `{"cmd":"cat src/a.go"}`}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "exec_command", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: lines.String()}}}}})
	}
	log, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	memory := palimpsest.NewMemory(1 << 30)
	if _, err := memory.Summarizer(counter).Summarize(t.Context(), summarize.Input{Messages: log.Messages(), Log: log.Messages(), Budget: 2000}); err != nil {
		t.Fatal(err)
	}
	took, texts := memory.Bytes(), textBytes(log)
	t.Logf("%.1f times the texts", float64(took)/float64(texts))
	if took < texts || took > readFactor*texts {
		t.Errorf("%d bytes are kept of %d of texts; %d times as much is taken for enough", took, texts, readFactor)
	}
}
