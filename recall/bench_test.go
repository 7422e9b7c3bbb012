package recall_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/cputime"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// log is a thread of n messages of about size bytes each, like an agent's, and a
// plan that drops it.
func log(tb testing.TB, n, size int) (*thread.Thread, *plan.Plan) {
	tb.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the queue worker retries Backoff func return err nil context.Context carrier/client.go ErrLabelRejected t.Fatalf want got order_id ORD timeout 30s fix failing test store dispatch http.StatusTooManyRequests")
	var messages []thread.Message
	for i := range n {
		var b strings.Builder
		for b.Len() < size {
			switch r.IntN(12) {
			case 0:
				fmt.Fprintf(&b, "pkg%d/file_%d.go:%d\n", r.IntN(40), r.IntN(400), r.IntN(900))
			case 1:
				fmt.Fprintf(&b, "handle%cRequest%d ", 'A'+rune(r.IntN(26)), r.IntN(500))
			default:
				b.WriteString(words[r.IntN(len(words))])
				b.WriteByte(" \n"[r.IntN(8)/7])
			}
		}
		fmt.Fprintf(&b, "marker-%d", i)
		role := thread.User
		if i%2 == 1 {
			role = thread.Assistant
		}
		messages = append(messages, thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: b.String()}}})
	}
	th, err := thread.New("bench").Append(messages...)
	if err != nil {
		tb.Fatal(err)
	}
	return th, &plan.Plan{ThreadID: "bench", ThreadVersion: n, Drops: []plan.Removal{{Span: th.Range(0, n)}}}
}

func BenchmarkRemoved(b *testing.B) {
	th, p := log(b, 5000, 400)
	b.ReportAllocs()
	for b.Loop() {
		recall.Removed(th, p)
	}
}

func BenchmarkNewIndex(b *testing.B) {
	entries := recall.Removed(log(b, 5000, 400))
	b.ReportAllocs()
	for b.Loop() {
		recall.NewIndex(entries)
	}
}

func BenchmarkSearch(b *testing.B) {
	x := recall.NewIndex(recall.Removed(log(b, 5000, 400)))
	for _, query := range []string{"marker-4711", "ErrLabelRejected in carrier/client.go", "why did the retries time out", "tatusTooM"} {
		b.Run(strings.ReplaceAll(query, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(x.Search(query, nil)) == 0 {
					b.Fatal("nothing found")
				}
			}
		})
	}
}

// BenchmarkLarge is a log of 100,000 short messages: the index, the first search and the next ones.
func BenchmarkLarge(b *testing.B) {
	entries := recall.All(first(log(b, 100_000, 100)))
	queries := []string{"marker-4711", "ErrLabelRejected in carrier/client.go", "why did the retries time out", "the test that was failing in pkg7/file_200.go"}
	var x *recall.Index
	before := heapMB()
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		var cpu cputime.Clock
		cpu.Start()
		for b.Loop() {
			x = recall.NewIndex(entries)
		}
		cpu.Report(b)
		b.ReportMetric(heapMB()-before, "held-MB")
	})
	for _, query := range queries {
		b.Run(strings.ReplaceAll(strings.ReplaceAll(query, "/", ","), " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			var cpu cputime.Clock
			cpu.Start()
			for b.Loop() {
				x.Search(query, nil)
			}
			cpu.Report(b)
		})
	}
}

// heapMB is what is in use.
func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

func first[A, B any](a A, _ B) A { return a }
