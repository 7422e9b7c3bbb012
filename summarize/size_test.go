package summarize

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestMemoryBytes: what a memory says it keeps is about what it takes, of a session that reads
// and of one that writes.
func TestMemoryBytes(t *testing.T) {
	var lines strings.Builder
	for n := range 300 {
		fmt.Fprintf(&lines, "\tfunc (s *Store) loadItem%d(ctx context.Context, key_%d string) error {\n", n, n)
	}
	for name, add := range map[string]func(k *talk, n int){
		"reads": func(k *talk, n int) {
			k.calls("Read", args{"file_path": fmt.Sprintf("/r/a%d.go", n)}, fmt.Sprint(n, lines.String()), thread.Success)
		},
		"writes": func(k *talk, n int) {
			k.calls("Write", args{"file_path": fmt.Sprintf("/r/a%d.go", n), "content": fmt.Sprint(n, lines.String())}, "ok", thread.Success)
		},
		"says": func(k *talk, n int) {
			k.says(fmt.Sprintf("Step %d. ", n) + strings.Repeat("The cause is that the index of the parser is wrong by one. ", 40))
		},
	} {
		k := new(talk)
		for n := range 60 {
			add(k, n)
		}
		messages := k.done(t)
		memory := NewMemory(0)
		before := heap()
		for i := range messages {
			memory.facts(nil, &messages[i])
		}
		took, said := int(heap()-before), memory.Bytes()
		if said < took*6/10 || said > took*2 {
			t.Errorf("%s: %d bytes taken, %d said", name, took, said)
		}
		t.Logf("%s: %d bytes taken, %d said", name, took, said)
		runtime.KeepAlive(memory)
		runtime.KeepAlive(messages)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCountsAreBounded: what is kept of counted texts is bounded in bytes, however long the texts are.
func TestCountsAreBounded(t *testing.T) {
	e := &Extractive{}
	line := strings.Repeat("x", 20_000)
	before := heap()
	for n := range 2_000 {
		e.tokens(fmt.Sprint(n, line))
	}
	if held := heap() - before; held > 2*countsBytes {
		t.Errorf("%d bytes are held of 40 MB", held)
	}
	if held, _ := e.known.Stats(); held < countsBytes/25_000 {
		t.Errorf("only %d counts are held", held)
	}
}
