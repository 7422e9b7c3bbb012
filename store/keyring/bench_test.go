package keyring_test

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// BenchmarkKeyring seals and opens texts of several sizes, and does the same with
// AES-256-GCM alone into a buffer that is there already, turn by turn, so that
// both see the same machine. It reports GB/s of both and how much longer the
// keyring takes.
func BenchmarkKeyring(b *testing.B) {
	ring := keyring.New(masters(b, keyring.NewMaster()), &keyringtest.Memory{}, nil)
	block, err := aes.NewCipher([]byte("thirty-two bytes of a test's key"))
	if err != nil {
		b.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		b.Fatal(err)
	}
	aad, nonce := []byte("artifact\x00art_0123456789abcdef"), make([]byte, 12)
	for _, size := range []int{1 << 10, 16 << 10, 1 << 20, 16 << 20} {
		text := make([]byte, size)
		sealed, _, err := ring.Seal(b.Context(), "t", aad, text)
		if err != nil {
			b.Fatal(err)
		}
		plain := gcm.Seal(nil, nonce, text, aad)
		into := make([]byte, 0, size+64)
		compare(b, "seal", size, func() error {
			_, _, err := ring.Seal(b.Context(), "t", aad, text)
			return err
		}, func() error {
			into = gcm.Seal(into[:0], nonce, text, aad)
			return nil
		})
		compare(b, "open", size, func() error {
			_, err := ring.Open(b.Context(), "t", aad, sealed)
			return err
		}, func() (err error) {
			into, err = gcm.Open(into[:0], nonce, plain, aad)
			return err
		})
	}
}

func compare(b *testing.B, what string, size int, ours, theirs func() error) {
	b.Run(fmt.Sprintf("%s/%dKiB", what, size>>10), func(b *testing.B) {
		var our, their time.Duration
		b.ReportAllocs()
		for b.Loop() {
			began := time.Now()
			if err := ours(); err != nil {
				b.Fatal(err)
			}
			between := time.Now()
			if err := theirs(); err != nil {
				b.Fatal(err)
			}
			our, their = our+between.Sub(began), their+time.Since(between)
		}
		bytes := float64(size) * float64(b.N)
		b.ReportMetric(bytes/float64(our.Nanoseconds()), "GB/s")
		b.ReportMetric(bytes/float64(their.Nanoseconds()), "gcm-GB/s")
		b.ReportMetric(float64(our)/float64(their), "x-gcm")
		b.ReportMetric(0, "ns/op") // both together say nothing
	})
}
