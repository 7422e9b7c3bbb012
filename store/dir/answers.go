package dir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

// Answers is a cache of what models answered; it implements store.Answers. Make
// one with Store.Answers.
type Answers struct{ files durable.Dir }

// Answers returns the cache of the store.
func (s *Store) Answers() *Answers { return &Answers{s.files} }

// folderAnswers is how many answers are kept in each of the 256 folders.
const folderAnswers = 16

// Get implements store.Answers.
func (a *Answers) Get(_ context.Context, key string) ([]byte, bool) {
	data, err := a.files.Root.ReadFile(answerPath(key))
	return data, err == nil
}

// Put implements store.Answers. In a store that is read only nothing is kept.
func (a *Answers) Put(_ context.Context, key string, value []byte) {
	name := answerPath(key)
	// A cache that cannot be written to has nothing: the contract has no error.
	if a.files.Replace(name, value) == nil {
		a.evict(path.Dir(name))
	}
}

// evict removes the oldest answers of a folder when there are too many.
func (a *Answers) evict(folder string) {
	entries, err := a.files.List(folder)
	if err != nil || len(entries) <= folderAnswers {
		return
	}
	age := func(e fs.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{} // somebody else removes it just now
		}
		return info.ModTime()
	}
	slices.SortStableFunc(entries, func(x, y fs.DirEntry) int { return age(y).Compare(age(x)) })
	for _, e := range entries[folderAnswers:] {
		if !durable.IsTemp(e.Name()) {
			_ = a.files.Root.Remove(path.Join(folder, e.Name()))
		}
	}
}

// answerPath is where the answer of a key is. Keys may be any text.
func answerPath(key string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:])
	return path.Join(answersDir, name[:2], name+jsonSuffix)
}
