package native_test

import (
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/native"
)

// BenchmarkMessages is what a request of 1.2 MB costs whose edits have nothing to
// do, as each request of some agents is.
func BenchmarkMessages(b *testing.B) {
	messages := []string{hello}
	for n := range 600 {
		messages = append(messages, step(fmt.Sprint("call_", n), "read", long(fmt.Sprint("part ", n))))
	}
	body := request(edits(`{"type":"clear_thinking_20251015","keep":"all"}`), messages...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		m, err := native.ReadMessages(body)
		if err == nil {
			err = m.ReadCompaction()
		}
		if err == nil {
			err = m.Expand(open, true)
		}
		if err != nil || len(m.Body()) == 0 {
			b.Fatal(err)
		}
	}
}
