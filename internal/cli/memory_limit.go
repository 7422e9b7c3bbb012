package cli

import (
	"bytes"
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
)

// memoryLimits says how a daemon divides its memory, in bytes.
type memoryLimits struct {
	process  int
	bounds   proxy.MemoryOptions
	sessions int // what is kept between steps
	threads  int // loaded threads
}

// memoryLimitsOf takes the settings; what they leave out depends on the whole.
func memoryLimitsOf(c *config.Config) memoryLimits {
	m := memoryLimits{process: cmp.Or(c.Bytes("memory"), machineMemory("/"))}
	m.bounds.All = cmp.Or(c.Bytes("proxy-memory"), min(m.process/8, 256<<20))
	m.bounds.Tenant = cmp.Or(c.Bytes("proxy-tenant-memory"), m.bounds.All/2)
	m.bounds.Bodies = cmp.Or(c.Bytes("proxy-bodies"), min(m.process/8, 512<<20))
	m.bounds.TenantBodies = min(cmp.Or(c.Bytes("tenant-bodies"), m.bounds.Bodies/2), m.bounds.Bodies)
	m.bounds.Work = m.process / 2
	m.sessions, m.threads = min(m.process/16, palimpsest.DefaultMemory), min(m.process/32, store.DefaultCacheBytes)
	return m
}

// garbage is how much garbage, in percent of what is in use, the daemon lets pile up, and a command that
// read much: a large request takes a tenth less than with 50, and a third less than with Go's usual 100.
const garbage = 35

// fallbackMachineMemory is for machines that do not say how much memory they have.
const fallbackMachineMemory = 4 << 30

// machineMemory is the limit of the process's control group, else half of the machine's
// memory. It reads the system's files below root.
func machineMemory(root string) int {
	names := []string{"sys/fs/cgroup/memory/memory.limit_in_bytes"}
	own, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if _, group, ok := strings.Cut(string(own), "0::"); ok { // version 2: the group and its parents
		group, _, _ = strings.Cut(group, "\n")
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			names = append(names, path.Join("sys/fs/cgroup", group, "memory.max"))
			if group == "/" {
				break
			}
		}
	}
	least := 0
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		// No limit is "max", or a number beyond any machine.
		if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && n > 0 && n < 1<<50 && (least == 0 || n < least) {
			least = n
		}
	}
	if least > 0 {
		return least
	}
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("MemTotal:")); ok {
			if n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB")); err == nil && n > 0 {
				return n << 10 / 2
			}
		}
	}
	return fallbackMachineMemory
}
