package cli

import (
	"context"
	"sync"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/store/dsn"
)

// keptAnswers is the cache of answers of a store, which is opened when a model is
// first to be asked: most compactions ask none. A store that cannot be opened has
// nothing; whoever keeps something there is told why.
type keptAnswers struct {
	store *storeFlag

	mu     sync.Mutex
	opened bool
	cache  llm.Cache
	closer func() error
}

// Get implements llm.Cache.
func (k *keptAnswers) Get(ctx context.Context, key string) ([]byte, bool) {
	if cache := k.open(ctx); cache != nil {
		return cache.Get(ctx, key)
	}
	return nil, false
}

// Put implements llm.Cache.
func (k *keptAnswers) Put(ctx context.Context, key string, value []byte) {
	if cache := k.open(ctx); cache != nil {
		cache.Put(ctx, key, value)
	}
}

func (k *keptAnswers) open(ctx context.Context) llm.Cache {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opened {
		return k.cache
	}
	k.opened = true
	if dsn.Is(k.store.dir) {
		if kept, err := openKept(ctx, k.store.dir, k.store.tenant, false); err == nil {
			k.cache, k.closer = kept.tenant.Answers, kept.Close
		}
		return k.cache
	}
	path, err := k.store.path()
	if err != nil {
		return nil
	}
	if kept, err := dir.Open(path, nil); err == nil {
		k.cache, k.closer = kept.Answers(), kept.Close
	}
	return k.cache
}

// Close gives the store back. The cache is empty after it.
func (k *keptAnswers) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	closer := k.closer
	k.opened, k.cache, k.closer = true, nil, nil
	if closer == nil {
		return nil
	}
	return closer()
}
