// Package apikeytest tests implementations of apikey.Store, and apikey.Keys over them.
package apikeytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// TestStore runs the suite. open returns a new, empty store, and closes it with Cleanup.
func TestStore(t *testing.T, open func(testing.TB) apikey.Store) {
	t.Run("records", func(t *testing.T) { records(t, open(t)) })
	t.Run("listing", func(t *testing.T) { listing(t, open(t)) })
	t.Run("cancelled", func(t *testing.T) { cancelled(t, open(t)) })
	t.Run("concurrent", func(t *testing.T) { concurrent(t, open(t)) })
	t.Run("keys", func(t *testing.T) { keys(t, open(t)) })
}

var began = time.Date(2025, 5, 12, 9, 30, 0, 0, time.UTC)

func key(n int) apikey.Key {
	k := apikey.Key{
		ID:    fmt.Sprintf("aaaaaaaaaaaaaa%c%c", 'a'+n/26, 'a'+n%26),
		Grant: apikey.Grant{Tenant: fmt.Sprint("tenant/", n%3), Rights: apikey.Read | apikey.Admin, Name: "näme\n"},
	}
	k.Created = began.Add(time.Duration(n) * time.Second)
	if n%2 == 0 {
		k.Expires = began.Add(time.Hour)
	}
	for i := range k.Hash {
		k.Hash[i] = byte(n + i)
	}
	return k
}

func records(t *testing.T, s apikey.Store) {
	ctx := t.Context()
	if _, err := s.Get(ctx, key(0).ID); !errors.Is(err, apikey.ErrNotFound) {
		t.Fatalf("an empty store gave %v", err)
	}
	if err := s.Revoke(ctx, key(0).ID, began); !errors.Is(err, apikey.ErrNotFound) {
		t.Fatalf("revoking what is not there: %v", err)
	}
	for n := range 2 {
		if err := s.Add(ctx, key(n)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(ctx, key(n).ID); err != nil || got != key(n) {
			t.Errorf("got %+v, %v, want %+v", got, err, key(n))
		}
	}
	changed := key(0)
	changed.Rights = apikey.Write
	if err := s.Add(ctx, changed); !errors.Is(err, apikey.ErrExists) {
		t.Errorf("an id that is taken: %v", err)
	}
	for _, at := range []time.Time{began.Add(time.Minute), began.Add(time.Hour)} {
		if err := s.Revoke(ctx, key(0).ID, at); err != nil {
			t.Fatal(err)
		}
	}
	want := key(0)
	want.Revoked = began.Add(time.Minute)
	if got, err := s.Get(ctx, want.ID); err != nil || got != want {
		t.Errorf("after revoking twice: %+v, %v, want %+v", got, err, want)
	}
	for _, id := range []string{"", "..", "../" + key(1).ID, key(1).ID + ".json", strings.ToUpper(key(1).ID)} {
		if _, err := s.Get(ctx, id); !errors.Is(err, apikey.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func listing(t *testing.T, s apikey.Store) {
	for n := 29; n >= 0; n-- {
		if err := s.Add(t.Context(), key(n)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for k, err := range s.List(t.Context()) {
		if err != nil || k != key(n) {
			t.Errorf("%d: %+v, %v", n, k, err)
		}
		n++
	}
	if n != 30 {
		t.Errorf("%d listed", n)
	}
	for range s.List(t.Context()) {
		break // a listing must stop when its reader does
	}
}

func cancelled(t *testing.T, s apikey.Store) {
	if err := s.Add(t.Context(), key(0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Add(ctx, key(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Add: %v", err)
	}
	if _, err := s.Get(ctx, key(0).ID); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	if err := s.Revoke(ctx, key(0).ID, began); !errors.Is(err, context.Canceled) {
		t.Errorf("Revoke: %v", err)
	}
	if k, err := s.Get(t.Context(), key(0).ID); err != nil || !k.Revoked.IsZero() {
		t.Errorf("a cancelled Revoke left %+v, %v", k, err)
	}
	for k, err := range s.List(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("List: %+v, %v", k, err)
		}
	}
}

// concurrent: of several writers of one id exactly one wins.
func concurrent(t *testing.T, s apikey.Store) {
	const writers = 8
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			k := key(0)
			k.Name = fmt.Sprint(n)
			errs[n] = s.Add(t.Context(), k)
		})
	}
	wg.Wait()
	won, err := s.Get(t.Context(), key(0).ID)
	if err != nil {
		t.Fatal(err)
	}
	for n, err := range errs {
		if winner := won.Name == fmt.Sprint(n); winner != (err == nil) || !winner && !errors.Is(err, apikey.ErrExists) {
			t.Errorf("writer %d: %v; the key is that of %s", n, err, won.Name)
		}
	}
}

// keys: what apikey.Keys promises, over this store.
func keys(t *testing.T, s apikey.Store) {
	ctx, now := t.Context(), began
	keys := apikey.New(s, &apikey.Options{Now: func() time.Time { return now }})
	token, made, err := keys.Add(ctx, apikey.Grant{Tenant: "acme", Rights: apikey.Read, Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := keys.Add(ctx, apikey.Grant{Tenant: "other", Rights: apikey.Read | apikey.Write})
	if err != nil {
		t.Fatal(err)
	}
	if k, err := keys.Check(ctx, token); err != nil || k != made || k.Tenant != "acme" || k.Rights != apikey.Read {
		t.Errorf("the key that was made: %+v, %v", k, err)
	}
	secret := strings.LastIndexByte(token, '_') + 1
	first := "a" // another first character of the secret than it has
	if token[secret] == 'a' {
		first = "b"
	}
	for _, forged := range []string{
		"", "plk_", token[:len(token)-1], token + "a", token[1:], strings.ToUpper(token), " " + token,
		token[:secret] + other[secret:], other[:secret] + token[secret:],
		token[:secret] + first + token[secret+1:], "plk_" + strings.Repeat("a", secret-5) + "_" + token[secret:],
	} {
		_, err := keys.Check(ctx, forged)
		if !errors.Is(err, apikey.ErrUnauthorized) {
			t.Errorf("%q: %v", forged, err)
		}
		if len(forged) > secret && strings.Contains(fmt.Sprint(err), forged[secret:]) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
	now = now.Add(time.Hour)
	if _, err := keys.Check(ctx, token); !errors.Is(err, apikey.ErrExpired) || !errors.Is(err, apikey.ErrUnauthorized) {
		t.Errorf("after its time: %v", err)
	}
	k, err := keys.Check(ctx, other)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(ctx, k.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Check(ctx, other); !errors.Is(err, apikey.ErrRevoked) || !errors.Is(err, apikey.ErrUnauthorized) {
		t.Errorf("after Revoke: %v", err)
	}
	if err := keys.Revoke(ctx, "../"+k.ID); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("a bad id: %v", err)
	}
}
