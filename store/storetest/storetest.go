// Package storetest proves that a store keeps what package store promises. Run
// it from the tests of an implementation: Test for a whole store.DB, the others
// for a store that implements a part.
package storetest

import (
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/apikey/apikeytest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/artifacttest"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/keyring/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Test runs all suites; open gives an empty store each time it is called. What
// must be closed it closes itself, with Cleanup.
func Test(t *testing.T, open func(testing.TB) store.DB) {
	tenant := func(tb testing.TB) store.Tenant { return open(tb).Tenant("acme") }
	t.Run("log", func(t *testing.T) {
		TestLog(t, func(tb testing.TB) store.Log { return tenant(tb).Log })
	})
	t.Run("messages", func(t *testing.T) {
		TestMessages(t, func(tb testing.TB) store.Log { return tenant(tb).Log })
	})
	t.Run("plans", func(t *testing.T) {
		TestPlans(t, func(tb testing.TB) store.Plans { return tenant(tb).Plans })
	})
	t.Run("commit", func(t *testing.T) { TestCommit(t, tenant) })
	t.Run("catalog", func(t *testing.T) { TestCatalog(t, tenant) })
	t.Run("events", func(t *testing.T) {
		TestEvents(t, func(tb testing.TB) store.Events { return tenant(tb).Events })
	})
	t.Run("documents", func(t *testing.T) {
		TestDocuments(t, func(tb testing.TB) store.Documents { return tenant(tb).Documents })
	})
	t.Run("answers", func(t *testing.T) {
		TestAnswers(t, func(tb testing.TB) store.Answers { return tenant(tb).Answers })
	})
	t.Run("tenants", func(t *testing.T) { TestTenants(t, open) })
	t.Run("API keys", func(t *testing.T) {
		apikeytest.TestStore(t, func(tb testing.TB) apikey.Store { return keyed(tb, open(tb)).APIKeys() })
	})
	t.Run("data keys", func(t *testing.T) {
		keyringtest.TestKeys(t, func(tb testing.TB) keyring.Keys { return keyed(tb, open(tb)).DataKeys() })
	})
	t.Run("artifacts", func(t *testing.T) {
		artifacttest.TestBackend(t, func(tb testing.TB) artifact.Backend { return open(tb).Artifacts() })
	})
}

func keyed(tb testing.TB, db store.DB) store.Keyed {
	tb.Helper()
	k, ok := db.(store.Keyed)
	if !ok {
		tb.Fatalf("%T keeps no keys", db)
	}
	return k
}

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

// badNames are names of threads that not every store can hold; the first is
// empty.
var badNames = []string{"", "a\x00b", "a\xffb", string(make([]byte, 600))}

// race runs n writers at once and counts those that did not meet a conflict.
func race(n int, write func(int) error) int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range n {
		wg.Go(func() {
			if err := write(i); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return won
}
