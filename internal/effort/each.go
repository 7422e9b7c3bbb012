package effort

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do with each number below n, in about their order, on as many processors as there are; least calls
// are worth one. It returns when all calls have returned. do must be safe for concurrent use.
func Each(n, least int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n/least) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}
