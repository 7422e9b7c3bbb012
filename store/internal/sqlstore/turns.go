package sqlstore

import (
	"context"
	"slices"
	"sync"
)

// writeQueue shares the only connection that writes between tenants. They take turns, so
// that a tenant with many waiting writes does not block the others. The zero value is
// ready to use.
type writeQueue struct {
	mu      sync.Mutex
	taken   bool
	line    []string                   // tenants with waiting writes, the next one first
	waiting map[string][]chan struct{} // by tenant, the first to come first
}

// take waits for a turn of the tenant; end gives it up. The error is that of ctx.
func (t *writeQueue) take(ctx context.Context, tenant string) (end func(), err error) {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return t.next, nil
	}
	if t.waiting == nil {
		t.waiting = map[string][]chan struct{}{}
	}
	if len(t.waiting[tenant]) == 0 {
		t.line = append(t.line, tenant)
	}
	mine := make(chan struct{})
	t.waiting[tenant] = append(t.waiting[tenant], mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return t.next, nil
	case <-ctx.Done():
	}
	if !t.leave(tenant, mine) { // the turn was given at the same moment
		t.next()
	}
	return nil, ctx.Err()
}

// next gives the turn to the next tenant in line.
func (t *writeQueue) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) == 0 {
		t.taken = false
		return
	}
	tenant := t.line[0]
	t.line = t.line[1:]
	all := t.waiting[tenant]
	close(all[0])
	if len(all) > 1 {
		t.waiting[tenant] = all[1:]
		t.line = append(t.line, tenant)
	} else {
		delete(t.waiting, tenant)
	}
}

// leave removes a waiting write. It is false if the write is no longer waiting.
func (t *writeQueue) leave(tenant string, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting[tenant]
	at := slices.Index(all, mine)
	if at < 0 {
		return false
	}
	if t.waiting[tenant] = slices.Delete(slices.Clone(all), at, at+1); len(all) == 1 {
		delete(t.waiting, tenant)
		t.line = slices.DeleteFunc(t.line, func(one string) bool { return one == tenant })
	}
	return true
}
