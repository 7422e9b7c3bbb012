package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Benchmark measures what an agent does at each step, with messages of about 1
// kB: appending one message, a batch of a hundred, and loading a thread of 5,000
// messages that is not in memory, or is; and what an encrypted store costs to be
// looked through for what is under an older key, and to be sealed anew. open opens
// an empty store, one that is cold keeps no threads in memory, and the keyring may
// be nil.
func Benchmark(b *testing.B, open func(tb testing.TB, cold bool, ring *keyring.Keyring) store.DB) {
	text := strings.Repeat("0123456789", 100)
	many := func(from, n int) []thread.Message {
		list := make([]thread.Message, n)
		for i := range list {
			list[i] = say(thread.User, fmt.Sprint(from+i, text))
		}
		return list
	}
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprint("append/", batch), func(b *testing.B) {
			log := open(b, false, nil).Tenant("").Log
			at := 0
			for b.Loop() {
				if _, err := log.Append(b.Context(), "t", at, many(at, batch)); err != nil {
					b.Fatal(err)
				}
				at += batch
			}
			b.ReportMetric(float64(at)/b.Elapsed().Seconds(), "messages/s")
		})
	}
	for name, cold := range map[string]bool{"cold": true, "warm": false} {
		b.Run("load 5000/"+name, func(b *testing.B) {
			log := open(b, cold, nil).Tenant("").Log
			if _, err := log.Append(b.Context(), "t", 0, many(0, 5000)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if th, err := log.Load(b.Context(), "t"); err != nil || th.Len() != 5000 {
					b.Fatal(th.Len(), err)
				}
			}
		})
	}
	for _, stale := range []bool{false, true} {
		name := "reseal 5000/nothing to do"
		if stale {
			name = "reseal 5000/all"
		}
		b.Run(name, func(b *testing.B) {
			ring := NewRing(b)
			db := open(b, true, ring)
			if _, err := db.Tenant("").Log.Append(b.Context(), "t", 0, many(0, 5000)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				want := 0
				if stale {
					want = 5000
					if _, err := ring.Rotate(b.Context(), ""); err != nil {
						b.Fatal(err)
					}
				}
				if n, err := db.(store.Sealed).Reseal(b.Context(), ""); n != want || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}
