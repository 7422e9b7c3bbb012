package sqlite_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestCorpus: real sessions come back from the file as they were put in, with
// the bytes they came from, and what care says of them is that all is well. A1
func TestCorpus(t *testing.T) {
	root := corpus.Dir(t, "transcripts")
	path := filepath.Join(t.TempDir(), "p.db")
	db := open(t, path, &sqlite.Options{CacheBytes: -1})
	s := db.Tenant("")
	threads := map[string]*thread.Thread{}
	perFolder, most := map[string]int{}, 1
	if corpus.Long() {
		most = 2
	}
	var bytes, messages int
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		folder := filepath.Dir(name)
		if err != nil || info.Size() < 20_000 || info.Size() > 1_000_000 || perFolder[folder] >= most {
			return err
		}
		f, err := transcript.Open(name, nil)
		if err != nil || len(f.Transcripts) == 0 {
			return nil // README and index files; reading is tested elsewhere
		}
		perFolder[folder]++
		id := filepath.ToSlash(strings.TrimPrefix(name, root))
		th, err := thread.New(id).Append(f.Transcripts[0].Thread.Messages()...)
		if err != nil {
			return err
		}
		if _, err := s.Log.Append(t.Context(), id, 0, th.Messages()); err != nil {
			return err
		}
		threads[id], bytes, messages = th, bytes+int(info.Size()), messages+th.Len()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(threads) < 10 {
		t.Fatalf("only %d sessions were read", len(threads))
	}
	for id, want := range threads {
		got, err := s.Log.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Same(t, got, want)
	}
	if all := problems(t, db); len(all) > 0 {
		t.Errorf("%d problems, such as %s", len(all), all[0])
	}
	size, err := db.Bytes(t.Context())
	t.Logf("%d sessions, %d messages, %d bytes in files, %d in the database (%v)", len(threads), messages, bytes, size, err)
}
