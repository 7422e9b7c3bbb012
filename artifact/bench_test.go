package artifact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
)

// BenchmarkStore puts and gets an artifact of 64 KiB, the size of a large tool
// result, over memory: as it is, sealed, and sealed with keyed ids.
func BenchmarkStore(b *testing.B) {
	text := strings.Repeat("a line of output, as tools write it\n", 64<<10/36)
	for _, mode := range []string{"plain", "sealed", "keyed"} {
		o := &artifact.Options{KeyedIDs: mode == "keyed"}
		if mode != "plain" {
			o.Keyring = newRing(b)
		}
		s := artifact.NewStore(new(artifact.Memory), o)
		ids := make([]string, 0, 64)
		b.Run("put/"+mode, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			n := 0
			for b.Loop() {
				n++
				id, err := s.Put(b.Context(), artifact.Metadata{ThreadID: fmt.Sprint(n % cap(ids)), TenantID: "t", TTLSeconds: n}, text)
				if err != nil {
					b.Fatal(err)
				}
				if len(ids) < cap(ids) {
					ids = append(ids, id)
				}
			}
		})
		b.Run("get/"+mode, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			n := 0
			for b.Loop() {
				n++
				if _, _, err := s.Get(b.Context(), artifact.Requester{TenantID: "t"}, ids[n%len(ids)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
