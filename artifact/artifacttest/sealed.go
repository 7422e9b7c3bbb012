package artifacttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// sealed: a Store with keys over this backend. Nothing readable reaches the
// backend, what was there before stays readable, keys change while others read,
// and what was erased is gone. A20
func sealed(t *testing.T, b artifact.Backend) {
	ctx, who := t.Context(), artifact.Requester{TenantID: "acme"}
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(masters, &keyring.Memory{}, nil)
	plain := artifact.NewStore(b, nil)
	s := artifact.NewStore(b, &artifact.Options{Sealer: ring})

	contents := map[string]string{}
	for n := range 6 {
		into := plain
		if n >= 2 {
			into = s
		}
		content := strings.Repeat(fmt.Sprint("canary ", n, " "), 100)
		id, err := into.Put(ctx, artifact.Metadata{ThreadID: "t", TenantID: "acme", MessageIDs: []thread.ID{"m"}}, content)
		if err != nil {
			t.Fatal(err)
		}
		contents[id] = content
	}
	readAll := func(when string) {
		t.Helper()
		for id, content := range contents {
			m, got, err := s.Get(ctx, who, id)
			if err != nil || got != content || m.Bytes != len(content) {
				t.Errorf("%s: %s: %d bytes of %d, %v", when, id, len(got), len(content), err)
			}
		}
	}
	keysOf := func() map[string]int {
		keys := map[string]int{}
		for id := range contents {
			m, data, err := b.Get(ctx, "acme", id)
			if err != nil {
				t.Fatal(err)
			}
			keys[m.EncryptionKeyID]++
			if hidden := !bytes.Contains(data, []byte("canary")); hidden != (m.EncryptionKeyID != "") {
				t.Errorf("%s: key %q, hidden: %v", id, m.EncryptionKeyID, hidden)
			}
		}
		return keys
	}
	readAll("some plain")
	if keys := keysOf(); keys[""] != 2 || keys["dk-1"] != 4 {
		t.Errorf("keys %v", keys)
	}
	if _, err := ring.Rotate(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	readAll("after Rotate")
	reading, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for reading.Err() == nil {
			readAll("during Reseal")
		}
	}()
	n, err := s.Reseal(ctx, who)
	stop()
	<-done
	if n != 6 || err != nil {
		t.Errorf("sealed %d anew, %v", n, err)
	}
	if keys := keysOf(); keys["dk-2"] != 6 {
		t.Errorf("keys %v", keys)
	}
	if n, err := s.Reseal(ctx, who); n != 0 || err != nil {
		t.Errorf("sealed %d anew for the second time, %v", n, err)
	}
	for id := range contents {
		if _, content, err := plain.Get(ctx, who, id); !errors.Is(err, artifact.ErrSealed) || content != "" {
			t.Errorf("without keys: %q, %v", content, err)
		}
	}
	if n, err := s.Erase(ctx, who); n != 6 || err != nil {
		t.Errorf("erased %d, %v", n, err)
	}
	if found := list(t, b, artifact.Filter{TenantID: "acme"}); len(found) != 0 {
		t.Errorf("left: %v", found)
	}
	if _, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", TenantID: "acme"}, "again"); !errors.Is(err, keyring.ErrErased) {
		t.Errorf("after Erase: %v", err)
	}
}
