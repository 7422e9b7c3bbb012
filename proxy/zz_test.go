package proxy_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

func TestZZ(t *testing.T) {
	size := 400 << 10
	o := proxy.Options{Base: silent{}, Window: size / 8, Config: palimpsest.Config{Counter: counter()}}
	tr, _ := proxy.NewTransport(&o)
	a := long(t, size)
	first := a.history[0]
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	for step := range 2 {
		a.step(step)
		for n := range 200 {
			a.history[0] = strings.Replace(first, "Read all", fmt.Sprintf("Task %d: read all", n), 1)
			res, _ := tr.RoundTrip(request(t, "https://example.invalid/v1/messages", a.body()))
			io.Copy(io.Discard, res.Body)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&m)
	fmt.Println((m.HeapAlloc-before)/200>>10, "KB per thread")
	f, _ := os.Create("/tmp/heap.prof")
	pprof.Lookup("heap").WriteTo(f, 0)
	f.Close()
	runtime.KeepAlive(tr)
}
