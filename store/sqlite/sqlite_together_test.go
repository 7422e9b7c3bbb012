package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// TestOpenedTogether: whoever makes the file, all who open it at the same time
// get it. SQLite refuses what changes the journal meanwhile.
func TestOpenedTogether(t *testing.T) {
	folder := t.TempDir()
	times := 20
	if corpus.Long() {
		times = 100
	}
	for n := range times {
		path := filepath.Join(folder, fmt.Sprint(n))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				db, err := sqlite.Open(t.Context(), path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
