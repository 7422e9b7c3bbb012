package apikey_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

func TestMemory(t *testing.T) {
	apikeytest.TestStore(t, func(testing.TB) apikey.Store { return &apikeytest.Memory{} })
}

func Example() {
	ctx := context.Background()
	keys := apikey.New(&apikeytest.Memory{}, nil)
	token, _, _ := keys.Add(ctx, apikey.Grant{Tenant: "acme", Rights: apikey.Read | apikey.Write, Name: "build server"})
	key, err := keys.Check(ctx, token)
	fmt.Println(key.Tenant, key.Rights, key.Rights.Has(apikey.Admin), err)
	keys.Revoke(ctx, key.ID)
	_, err = keys.Check(ctx, token)
	fmt.Println(errors.Is(err, apikey.ErrUnauthorized))
	// Output:
	// acme read,write false <nil>
	// true
}

// TestAddRefuses names what is wrong with a grant, and keeps nothing.
func TestAddRefuses(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	for _, g := range []apikey.Grant{
		{}, {Rights: 8}, {Rights: 255}, {Rights: apikey.Read, Name: strings.Repeat("x", 201)},
		{Rights: apikey.Read, Tenant: strings.Repeat("x", 1001)}, {Rights: apikey.Read, Expires: time.Unix(1, 0)},
	} {
		if token, _, err := keys.Add(t.Context(), g); err == nil || token != "" {
			t.Errorf("%+v was granted", g)
		}
	}
	for k, err := range keys.List(t.Context()) {
		t.Errorf("kept %+v, %v", k, err)
	}
}

// lying is a store that gives a key without a hash for every id.
type lying struct{ *apikeytest.Memory }

func (lying) Get(_ context.Context, id string) (apikey.Key, error) {
	return apikey.Key{ID: id, Grant: apikey.Grant{Rights: apikey.Admin}}, nil
}

// failing is a store that cannot be asked.
type failing struct{ *apikeytest.Memory }

var errDown = errors.New("down")

func (failing) Get(context.Context, string) (apikey.Key, error) { return apikey.Key{}, errDown }

// TestCheckOverBadStores: an empty hash opens nothing, and a store that cannot be
// asked is not the client's fault.
func TestCheckOverBadStores(t *testing.T) {
	token, _, err := apikey.New(&apikeytest.Memory{}, nil).Add(t.Context(), apikey.Grant{Rights: apikey.Read})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apikey.New(lying{}, nil).Check(t.Context(), token); !errors.Is(err, apikey.ErrUnauthorized) {
		t.Errorf("a key without a hash: %v", err)
	}
	if _, err := apikey.New(failing{}, nil).Check(t.Context(), token); !errors.Is(err, errDown) || errors.Is(err, apikey.ErrUnauthorized) {
		t.Errorf("a store that is down: %v", err)
	}
}

func TestRights(t *testing.T) {
	for s, want := range map[string]apikey.Rights{"read": apikey.Read, "write, read": apikey.Read | apikey.Write, "admin,admin": apikey.Admin} {
		if got, err := apikey.ParseRights(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", ",", "read,", "Read", "all", "read write"} {
		if got, err := apikey.ParseRights(s); err == nil || got != 0 {
			t.Errorf("%q is %v", s, got)
		}
	}
}

// FuzzCheck: no text but the token itself opens the key.
func FuzzCheck(f *testing.F) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	token, _, err := keys.Add(f.Context(), apikey.Grant{Rights: apikey.Read})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", token, token[:20], "plk_" + strings.Repeat("_", 69), token + "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := keys.Check(context.Background(), s); (err == nil) != (s == token) {
			t.Errorf("%q: %v", s, err)
		}
	})
}

// TestFirstForm takes a key that the first version kept. What is kept of a key may
// not change.
func TestFirstForm(t *testing.T) {
	hash, err := hex.DecodeString("90b36ea863a02d7f7a7584c5b84b8d47dc4af717f4ff80baf4c52fa127f5cf77")
	if err != nil {
		t.Fatal(err)
	}
	s := &apikeytest.Memory{}
	k := apikey.Key{ID: "mzuxq5dvojsscztj", Grant: apikey.Grant{Tenant: "acme", Rights: apikey.Read | apikey.Admin}, Hash: [32]byte(hash)}
	if err := s.Add(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	got, err := apikey.New(s, nil).Check(t.Context(), "plk_mzuxq5dvojsscztj_pb2hk4tfeftgs6duovzgkilgnf4hi5lsmuqwm2lyor2xezjbmzuq")
	if err != nil || got != k {
		t.Errorf("%+v, %v", got, err)
	}
}
