package keyring_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"pgregory.net/rapid"
)

func TestMemory(t *testing.T) {
	keyringtest.TestKeys(t, func(testing.TB) keyring.Keys { return &keyringtest.Memory{} })
}

func masters(t testing.TB, text string) keyring.Masters {
	ms, err := keyring.ParseMasters(text)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func Example() {
	ctx := context.Background()
	masters, _ := keyring.ParseMasters(keyring.NewMaster())
	ring := keyring.New(masters, &keyringtest.Memory{}, nil)
	sealed, keyID, _ := ring.Seal(ctx, "acme", []byte("note/17"), []byte("the door code is 4711"))
	text, err := ring.Open(ctx, "acme", []byte("note/17"), sealed)
	fmt.Printf("%s %s %v\n", keyID, text, err)
	_, err = ring.Open(ctx, "acme", []byte("note/18"), sealed)
	fmt.Println(errors.Is(err, keyring.ErrOpen))
	// Output:
	// dk-1 the door code is 4711 <nil>
	// true
}

// TestBinding: sealed text opens for its tenant and record only, and no changed
// byte goes unnoticed. A20
func TestBinding(t *testing.T) {
	ring := keyring.New(masters(t, keyring.NewMaster()), &keyringtest.Memory{}, nil)
	property.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		names := rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00b"})
		tenant, other := names.Draw(t, "tenant"), names.Draw(t, "other")
		aad, otherAAD := names.Draw(t, "aad"), names.Draw(t, "other aad")
		text := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "text")
		sealed, id, err := ring.Seal(ctx, tenant, []byte(aad), text)
		if err != nil || len(sealed) != len(text)+keyring.Overhead {
			t.Fatal(len(sealed), err)
		}
		if got, err := keyring.KeyID(sealed); err != nil || got != id {
			t.Errorf("key %s, %v, want %s", got, err, id)
		}
		if len(text) > 8 && bytes.Contains(sealed, text) {
			t.Error("the text stands in what is sealed")
		}
		if _, _, err := ring.Seal(ctx, other, nil, nil); err != nil { // the other tenant has a key too
			t.Fatal(err)
		}
		got, err := ring.Open(ctx, other, []byte(otherAAD), sealed)
		if same := tenant == other && aad == otherAAD; same != (err == nil) || same && !bytes.Equal(got, text) || !same && !errors.Is(err, keyring.ErrOpen) {
			t.Errorf("sealed for %q %q, opened for %q %q: %q, %v", tenant, aad, other, otherAAD, got, err)
		}
		at, bit := rapid.IntRange(0, len(sealed)-1).Draw(t, "at"), rapid.IntRange(0, 7).Draw(t, "bit")
		sealed[at] ^= 1 << bit
		if got, err := ring.Open(ctx, tenant, []byte(aad), sealed); !errors.Is(err, keyring.ErrOpen) || got != nil {
			t.Errorf("byte %d changed: %q, %v", at, got, err)
		}
		sealed[at] ^= 1 << bit
		if got, err := ring.Open(ctx, tenant, []byte(aad), sealed[:at]); !errors.Is(err, keyring.ErrOpen) || got != nil {
			t.Errorf("cut at %d: %q, %v", at, got, err)
		}
	})
}

// TestMessageLimit: no key seals more than its limit, over several processes and
// restarts; then there is the next one, and everything still opens.
func TestMessageLimit(t *testing.T) {
	const limit, messages = 40, 500
	keys, ms := &keyringtest.Memory{}, masters(t, keyring.NewMaster())
	var mu sync.Mutex
	uses := map[string]int{}
	nonces := map[string]bool{}
	all := make([][]byte, 0, messages)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var ring *keyring.Keyring
			for n := range messages / 4 {
				if n%30 == 0 { // a restart
					ring = keyring.New(ms, keys, &keyring.Options{MaxMessages: limit})
				}
				sealed, id, err := ring.Seal(context.Background(), "t", nil, []byte("x"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				uses[id]++
				nonces[id+string(sealed[5:17])] = true
				all = append(all, sealed)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range uses {
		if n > limit {
			t.Errorf("%s sealed %d messages of %d", id, n, limit)
		}
	}
	if len(uses) < messages/limit || len(nonces) != messages {
		t.Errorf("%d keys, %d nonces", len(uses), len(nonces))
	}
	ring := keyring.New(ms, keys, nil)
	for _, sealed := range all {
		if text, err := ring.Open(t.Context(), "t", nil, sealed); err != nil || string(text) != "x" {
			t.Fatal(text, err)
		}
	}
}

// TestReservesInBlocks: what a process seals costs few writes to Keys, and what
// is reserved is never less than what was sealed.
func TestReservesInBlocks(t *testing.T) {
	keys := &keyringtest.Memory{}
	ring := keyring.New(masters(t, keyring.NewMaster()), keys, nil)
	for n := 1; n <= 10_000; n++ {
		if _, _, err := ring.Seal(t.Context(), "t", nil, nil); err != nil {
			t.Fatal(err)
		}
		if n%1000 != 0 {
			continue
		}
		held, err := keys.Load(t.Context(), "t")
		if err != nil || len(held) != 1 || held[0].Used < uint64(n) || held[0].Used > uint64(n)*3+2048 || held[0].Revision > 10 {
			t.Fatalf("after %d messages: %+v, %v", n, held, err)
		}
	}
}

// TestFresh: another process notices a new key and an erasure in time, and asks
// Keys no more often than that.
func TestFresh(t *testing.T) {
	now := time.Unix(1e9, 0)
	keys := &counting{Keys: &keyringtest.Memory{}}
	ms := masters(t, keyring.NewMaster())
	here := keyring.New(ms, keys, nil)
	there := keyring.New(ms, keys, &keyring.Options{Fresh: time.Minute, Now: func() time.Time { return now }})
	_, first, err := there.Seal(t.Context(), "t", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Rotate(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	keys.loads = 0
	sealed, id, err := there.Seal(t.Context(), "t", nil, []byte("x"))
	if err != nil || id != first || keys.loads != 0 {
		t.Errorf("within the minute: %s, %v, %d loads", id, err, keys.loads)
	}
	newer, newerID, err := here.Seal(t.Context(), "t", nil, []byte("y"))
	if err != nil || newerID == first {
		t.Fatal(newerID, err)
	}
	if text, err := there.Open(t.Context(), "t", nil, newer); err != nil || string(text) != "y" {
		t.Errorf("a key that it has not seen yet: %q, %v", text, err)
	}
	if err := here.Erase(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if _, err := there.Open(t.Context(), "t", nil, sealed); !errors.Is(err, keyring.ErrErased) {
		t.Errorf("a minute after Erase: %v", err)
	}
}

type counting struct {
	keyring.Keys
	loads int
}

func (c *counting) Load(ctx context.Context, tenant string) ([]keyring.Wrapped, error) {
	c.loads++
	return c.Keys.Load(ctx, tenant)
}

// TestCacheIsBounded: with more tenants than are held, all still work, and what
// was let go is asked for again.
func TestCacheIsBounded(t *testing.T) {
	keys := &counting{Keys: &keyringtest.Memory{}}
	ring := keyring.New(masters(t, keyring.NewMaster()), keys, &keyring.Options{Tenants: 4})
	sealed := make([][]byte, 10)
	for n := range sealed {
		var err error
		if sealed[n], _, err = ring.Seal(t.Context(), fmt.Sprint(n), nil, []byte{byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
	keys.loads = 0
	for _, n := range []int{9, 8, 7, 6, 9} {
		if text, err := ring.Open(t.Context(), fmt.Sprint(n), nil, sealed[n]); err != nil || text[0] != byte(n) {
			t.Error(text, err)
		}
	}
	if keys.loads != 0 {
		t.Errorf("%d loads for tenants that are held", keys.loads)
	}
	if _, err := ring.Open(t.Context(), "0", nil, sealed[0]); err != nil || keys.loads != 1 {
		t.Errorf("%v, %d loads", err, keys.loads)
	}
}

// TestSecret: the same for a tenant and purpose after rotation and restart,
// another for all else.
func TestSecret(t *testing.T) {
	keys, ms := &keyringtest.Memory{}, masters(t, keyring.NewMaster())
	ring := keyring.New(ms, keys, nil)
	secret := func(ring *keyring.Keyring, tenant, purpose string) string {
		s, err := ring.Secret(t.Context(), tenant, purpose)
		if err != nil || len(s) != 32 {
			t.Fatal(len(s), err)
		}
		return string(s)
	}
	want := secret(ring, "t", "ids")
	if _, err := ring.Rotate(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if secret(ring, "t", "ids") != want || secret(keyring.New(ms, keys, nil), "t", "ids") != want {
		t.Error("the secret has changed")
	}
	if secret(ring, "t", "other") == want || secret(ring, "u", "ids") == want {
		t.Error("the secret is shared")
	}
	if err := ring.Erase(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if s, err := ring.Secret(t.Context(), "t", "ids"); !errors.Is(err, keyring.ErrErased) || s != nil {
		t.Errorf("%x, %v", s, err)
	}
}

// TestMovedKeys: a wrapped key does not open in the place of another tenant's or
// of another number.
func TestMovedKeys(t *testing.T) {
	keys, ms := &keyringtest.Memory{}, masters(t, keyring.NewMaster())
	ring := keyring.New(ms, keys, nil)
	sealed, _, err := ring.Seal(t.Context(), "victim", nil, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	held, err := keys.Load(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	stolen := held[0]
	stolen.Tenant, stolen.Revision = "thief", 1
	if err := keys.Put(t.Context(), stolen); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"thief", "victim "} {
		if text, err := keyring.New(ms, keys, nil).Open(t.Context(), tenant, nil, sealed); !errors.Is(err, keyring.ErrOpen) {
			t.Errorf("%s: %q, %v", tenant, text, err)
		}
	}
	if _, _, err := keyring.New(ms, keys, nil).Seal(t.Context(), "thief", nil, nil); !errors.Is(err, keyring.ErrOpen) {
		t.Errorf("sealing with it: %v", err)
	}
}

// TestParseMasters reads every written form, and no error or print shows a key.
func TestParseMasters(t *testing.T) {
	key := bytes.Repeat([]byte{0xfb, 0xef, 1}, 11)[:32]
	other := keyring.NewMaster()
	id := masters(t, hex.EncodeToString(key)).IDs()[0]
	for _, text := range []string{
		strings.ToUpper(hex.EncodeToString(key)) + "\r\n", base64.StdEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key),
		"# made in May\n\n\t" + base64.URLEncoding.EncodeToString(key) + " \n# the end",
	} {
		if ids := masters(t, text).IDs(); len(ids) != 1 || ids[0] != id {
			t.Errorf("%q has %v, want %s", text, ids, id)
		}
	}
	for _, text := range []string{other + "," + hex.EncodeToString(key), other + "\n" + hex.EncodeToString(key)} {
		if ids := masters(t, text).IDs(); len(ids) != 2 || ids[1] != id {
			t.Errorf("%v, want %s last", ids, id)
		}
	}
	for _, text := range []string{"", "# x", other[1:], other + "00", other + " " + other, "password", other + " hunter2"} {
		if ms, err := keyring.ParseMasters(text); err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), other[1:]) {
			t.Errorf("%q gave %v, %v", text, ms, err)
		}
	}
	ms := masters(t, other)
	for _, shown := range []string{fmt.Sprint(ms), fmt.Sprintf("%+v %#v %x %s", ms, ms, ms, ms)} {
		if strings.Contains(shown, other[:16]) || !strings.Contains(shown, "mk-") {
			t.Errorf("printed as %s", shown)
		}
	}
}

// FuzzParseMasters: any text is keys or an error.
func FuzzParseMasters(f *testing.F) {
	key := strings.Repeat("0f", 32)
	for _, seed := range []string{"", key, "# c\n" + key, key + "," + strings.Repeat("A", 43) + "=", strings.Repeat("-", 43)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ms, err := keyring.ParseMasters(s)
		if (err == nil) != (len(ms.IDs()) > 0) {
			t.Errorf("%v, %v", ms, err)
		}
	})
}

// FuzzOpen: nothing that was not sealed opens.
func FuzzOpen(f *testing.F) {
	ring := keyring.New(masters(f, keyring.NewMaster()), &keyringtest.Memory{}, nil)
	sealed, _, err := ring.Seal(f.Context(), "t", nil, []byte("x"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(sealed[:17])
	f.Add(append(bytes.Clone(sealed), 0))
	f.Add(append([]byte{1, 0xff, 0xff, 0xff, 0xff}, sealed[5:]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, err := ring.Open(context.Background(), "t", nil, data); !errors.Is(err, keyring.ErrOpen) && !bytes.Equal(data, sealed) {
			t.Errorf("%x opened as %q, %v", data, text, err)
		}
	})
}
