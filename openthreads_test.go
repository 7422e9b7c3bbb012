package palimpsest_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// BenchmarkOpenThreads is the memory that a thousand open threads of forty
// messages each take, after a step each: with the store's cache and without.
func BenchmarkOpenThreads(b *testing.B) {
	const threads, messages = 1000, 40
	for name, cache := range map[string]int{"cached": 1 << 30, "uncached": -1} {
		b.Run(name, func(b *testing.B) {
			db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "p.db"), &sqlite.Options{CacheBytes: cache})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			s := db.Tenant("")
			c, err := palimpsest.New(palimpsest.Config{Log: s.Log, Plans: s.Plans})
			if err != nil {
				b.Fatal(err)
			}
			for round := 0; b.Loop(); round++ {
				size := 0
				before := heap()
				var open []*palimpsest.Session
				for n := range threads {
					var list []thread.Message
					for i := range messages {
						m := plain([]thread.Role{thread.User, thread.Assistant}[i%2], fmt.Sprint(n, " ", i, strings.Repeat(" what is said in a message", 20)))
						size += len(m.Text())
						list = append(list, m)
					}
					th := c.Session(fmt.Sprint("thread ", n, " of round ", round))
					if _, err := th.PrepareStep(b.Context(), palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 100_000, Messages: list}); err != nil {
						b.Fatal(err)
					}
					open = append(open, th)
				}
				b.ReportMetric(float64(heap()-before)/(1<<20), "MiB/1000threads")
				b.ReportMetric(float64(size)/(1<<20), "MiB-of-text")
				runtime.KeepAlive(open)
			}
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
