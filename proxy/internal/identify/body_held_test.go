package identify

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestForgottenBytes: of conversations that become short again, whose first message is still that of the long request,
// the long one is not held beyond the bound.
func TestForgottenBytes(t *testing.T) {
	const conversations, long, most = 16, 4 << 20, 16 << 20
	tenant := NewIndex(most, most).Tenant(nil)
	sent := make([]Similar, 0, conversations)
	for n := range conversations {
		first := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}`, n)
		for _, rest := range []string{strings.Repeat("x", long), "y", "yy"} {
			text := first + `,{"role":"assistant","content":"ok"},{"role":"user","content":"` + rest + `"}]}`
			s := tenant.Similar(wire.Anthropic, text)
			if s.String() != text {
				t.Fatal("the body is not that which was sent")
			}
			if _, err := tenant.Read(anthropic.Codec{}, s, waiting); err != nil {
				t.Fatal(err)
			}
			if len(rest) == 1 {
				sent = append(sent, s)
			}
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > most {
		t.Errorf("%d MB are held, counted as %d", m.HeapAlloc>>20, tenant.bytes>>20)
	}
	runtime.KeepAlive(sent)
	runtime.KeepAlive(tenant)
}
