// Package storetest tests implementations of package store: Test for a whole store.DB, TestTenant for the data of
// one tenant, and TestDurable for stores that outlive a process.
package storetest

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/internal/test/artifacttest"
	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// Test runs all suites. open returns a new, empty store, and closes it with Cleanup.
func Test(t *testing.T, open func(testing.TB) store.DB) {
	TestTenant(t, func(tb testing.TB) store.Tenant { return open(tb).Tenant("acme") })
	group(t, "tenants", func(t *testing.T) { tenants(t, open(t)) })
	if _, ok := open(t).(keeper); ok {
		group(t, "API keys", func(t *testing.T) {
			apikeytest.TestStore(t, func(tb testing.TB) apikey.Store { return open(tb).(keeper).APIKeys() })
		})
		group(t, "data keys", func(t *testing.T) {
			keyringtest.TestKeys(t, func(tb testing.TB) keyring.Keys { return open(tb).(keeper).DataKeys() })
		})
	}
	group(t, "artifacts", func(t *testing.T) {
		artifacttest.TestBackend(t, func(tb testing.TB) artifact.Backend { return open(tb).Artifacts() })
	})
}

// keeper is a store that keeps keys: each but those in memory.
type keeper interface {
	store.Keyed
	DataKeys() keyring.Keys
}

// TestTenant runs the suites for one tenant. open returns a new, empty one.
func TestTenant(t *testing.T, open func(testing.TB) store.Tenant) {
	for _, suite := range []struct {
		name  string
		cases map[string]func(tenant)
	}{
		{"log", logs}, {"plans", plans}, {"commit", commits}, {"catalog", catalogs},
		{"events", events}, {"documents", documents}, {"answers", cachedAnswers},
	} {
		group(t, suite.name, func(t *testing.T) {
			for name, proves := range suite.cases {
				t.Run(name, func(t *testing.T) { proves(tenant{open(t), test{t}}) })
			}
		})
	}
}

// group runs tests in parallel with other groups: most of them wait for the disk or a server.
func group(t *testing.T, name string, run func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		run(t)
	})
}
