package dir_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// TestAnswers: the cache of answers keeps the contract, lasts longer than the
// process, and stays small. A15
func TestAnswers(t *testing.T) {
	open := func(tb testing.TB, path string) *dir.Store {
		tb.Helper()
		s, err := dir.Open(path, nil)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { s.Close() })
		return s
	}
	storetest.TestAnswers(t, func(tb testing.TB) store.Answers { return open(tb, tb.TempDir()).Answers() })

	path := t.TempDir()
	a := open(t, path).Answers()
	var keys []string // of one folder
	for n := 0; len(keys) < 40; n++ {
		if key := fmt.Sprint(n); sha256.Sum256([]byte(key))[0] == 7 {
			keys = append(keys, key)
			a.Put(t.Context(), key, []byte("answer"))
		}
	}
	again := open(t, path).Answers()
	if _, ok := again.Get(t.Context(), keys[len(keys)-1]); !ok {
		t.Error("the newest answer is gone")
	}
	held := 0
	for _, key := range keys {
		if _, ok := again.Get(t.Context(), key); ok {
			held++
		}
	}
	if held*256 != store.MaxAnswers {
		t.Errorf("%d answers are held in one of 256 folders, %d in all", held, store.MaxAnswers)
	}
	if damage, err := open(t, path).Check(t.Context()); err != nil || len(damage) > 0 {
		t.Error(damage, err)
	}
}
