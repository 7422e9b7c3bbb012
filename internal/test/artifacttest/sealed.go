package artifacttest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// sealed: a Store with keys over this backend. Nothing readable reaches the
// backend, what was there before stays readable, keys change while others read,
// and what was erased is gone. A20
func sealed(b tested) {
	ctx, who, ring := b.Context(), artifact.Requester{TenantID: "acme"}, newRing(b)
	plain := over{artifact.NewStore(b.Backend, nil), b}
	s := over{artifact.NewStore(b.Backend, &artifact.Options{Keyring: ring}), b}
	contents := map[string]string{}
	for n := range 6 {
		into := plain
		if n >= 2 {
			into = s
		}
		content := strings.Repeat(fmt.Sprint("canary ", n, " "), 100)
		contents[into.puts(artifact.Metadata{TenantID: "acme", MessageIDs: []thread.ID{"m"}}, content)] = content
	}
	readAll := func() {
		b.Helper()
		for id, content := range contents {
			if m := s.reads(who, id, content); m.Bytes != len(content) {
				b.Errorf("%+v", m)
			}
		}
	}
	keys := func(want map[string]int) {
		b.Helper()
		got := map[string]int{}
		for id := range contents {
			m, data, err := b.Get(ctx, "acme", id)
			b.need(err)
			got[m.EncryptionKeyID]++
			if hidden := !bytes.Contains(data, []byte("canary")); hidden != (m.EncryptionKeyID != "") {
				b.Errorf("%s: key %q, hidden: %v", id, m.EncryptionKeyID, hidden)
			}
		}
		if !maps.Equal(got, want) {
			b.Errorf("keys %v, want %v", got, want)
		}
	}
	readAll()
	keys(map[string]int{"": 2, "dk-1": 4})
	_, err := ring.Rotate(ctx, "acme")
	b.need(err)
	readAll()
	reading, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for reading.Err() == nil {
			readAll()
		}
	}()
	n, err := s.Reseal(ctx, who)
	stop()
	<-done
	if n != 6 || err != nil {
		b.Errorf("sealed %d anew, %v", n, err)
	}
	keys(map[string]int{"dk-2": 6})
	if n, err := s.Reseal(ctx, who); n != 0 || err != nil {
		b.Errorf("sealed %d anew for the second time, %v", n, err)
	}
	for id := range contents {
		b.is(artifact.ErrSealed, plain.fails(who, id))
	}
	if err := ring.Erase(ctx, "acme"); err != nil {
		b.Error(err)
	}
	for id := range contents {
		b.is(keyring.ErrErased, s.fails(who, id))
	}
	_, err = s.Store.Put(ctx, artifact.Metadata{ThreadID: "t", TenantID: "acme"}, "again")
	b.is(keyring.ErrErased, err)
}
