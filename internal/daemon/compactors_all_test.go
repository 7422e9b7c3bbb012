package daemon

import (
	"context"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// TestDeletedForAll: a thread is not deleted while a step of it is at work, whichever model that is counted for, and then no
// compactor remembers anything of it.
func TestDeletedForAll(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	models := token.Models()
	for _, byModel := range []bool{false, true} {
		memory := palimpsest.NewMemory(0)
		tenant := mem.New().Tenant("a")
		c := palimpsest.Config{Counter: counter, Memory: memory, Store: tenant}
		cs, err := newCompactors(&Config{Models: &models, countsByModel: byModel, Memory: proxy.NewMemory(nil)}, c, tenant.Answers)
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{"", "claude-sonnet-4-5"} {
			for _, one := range []*palimpsest.Compactor{cs.of(model).online, cs.of(model).offline} {
				m := thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "hello"}}}
				if _, err := one.Session("t").PrepareStep(t.Context(), palimpsest.Step{Messages: []thread.Message{m}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if memory.Bytes() == 0 {
			t.Fatal("nothing is remembered")
		}
		removed := false
		remove := func(context.Context) error {
			removed = true
			return nil
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for _, pair := range cs.all() { // at work on the thread
			if err := pair.online.Session("t").Delete(t.Context(), func(context.Context) error { return cs.delete(canceled, "t", remove) }); err == nil || removed {
				t.Errorf("counts by model: %v: it is removed while a step is at work: %v", byModel, err)
			}
		}
		if err := cs.delete(t.Context(), "t", remove); err != nil || !removed || memory.Bytes() > 0 {
			t.Errorf("counts by model: %v: %v, %d bytes are remembered", byModel, err, memory.Bytes())
		}
	}
}

// TestCountersAreShared: tenants whose models count alike share a counter, and so what was counted.
func TestCountersAreShared(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	models := token.Models()
	o := &Config{Models: &models, countsByModel: true, Memory: proxy.NewMemory(nil)}
	made := map[*token.Counter]bool{}
	for _, name := range []string{"a", "b"} {
		tenant := mem.New().Tenant(name)
		cs, err := newCompactors(o, palimpsest.Config{Counter: counter, Store: store.Tenant{Log: tenant.Log, Plans: tenant.Plans}}, tenant.Answers)
		if err != nil {
			t.Fatal(err)
		}
		make := cs.make
		cs.make = func(c *token.Counter) (compactorPair, error) {
			made[c] = true
			return make(c)
		}
		cs.of("claude-sonnet-4-5")
	}
	if len(made) != 1 {
		t.Errorf("%d counters", len(made))
	}
}
