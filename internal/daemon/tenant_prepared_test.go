package daemon

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestPreparedIsBounded: what is kept of last prompts is bounded over all tenants, and holds no
// messages.
func TestPreparedIsBounded(t *testing.T) {
	shared := lru.New[[2]string, *palimpsest.Prepared](preparedBytes)
	const tenants, threads = 30, 30
	base := &prompt.Prompt{Tools: []prompt.Tool{{Name: "Bash", Schema: strings.Repeat("x", 50_000)}}}
	for n := range tenants * threads {
		of := &tenant{name: fmt.Sprint(n % tenants), prepared: shared}
		of.keepPrepared(fmt.Sprint(n), &palimpsest.Prepared{Prompt: &prompt.Prompt{Messages: make([]thread.Message, 100)}, Version: n, Step: palimpsest.Step{Base: base}})
		if p := of.keptPrepared(fmt.Sprint(n)); p == nil || p.Version != n || p.Step.Base != base || p.Prompt != nil {
			t.Fatalf("kept is %+v", p)
		}
	}
	if held, bytes := shared.Stats(); held > preparedBytes/50_000 || held < preparedBytes/60_000 || bytes > preparedBytes {
		t.Errorf("%d are held, of %d bytes", held, bytes)
	}
	if p := (&tenant{name: "0", prepared: shared}).keptPrepared(fmt.Sprint(tenants*threads - 1)); p != nil {
		t.Error("a tenant has the prompt of another")
	}
}

// TestPreparedCountsAll: what a client can make long of a step counts, also the number of its tools.
func TestPreparedCountsAll(t *testing.T) {
	const long = 1 << 20
	for name, base := range map[string]*prompt.Prompt{
		"model":  {Model: strings.Repeat("m", long)},
		"name":   {Tools: []prompt.Tool{{Name: strings.Repeat("n", long)}}},
		"tools":  {Tools: make([]prompt.Tool, long/int(reflect.TypeFor[prompt.Tool]().Size()))},
		"system": {System: make([]prompt.System, long/int(reflect.TypeFor[prompt.System]().Size()))},
	} {
		of := &tenant{prepared: lru.New[[2]string, *palimpsest.Prepared](preparedBytes)}
		of.keepPrepared("t", &palimpsest.Prepared{Step: palimpsest.Step{Base: base}})
		if _, bytes := of.prepared.Stats(); bytes < long {
			t.Errorf("%s: %d bytes are counted", name, bytes)
		}
	}
}
