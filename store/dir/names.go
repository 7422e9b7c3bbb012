package dir

import (
	"path"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

// KeysDir is the folder of a store that is left to those who keep keys there.
const KeysDir = "keys"

const (
	artifactsDir = "artifacts"
	answersDir   = "answers"
	threadsDir   = "threads"
	tenantsDir   = "tenants"
	readmeFile   = "README.txt"
	removedFile  = "removed.jsonl"
	firstFile    = "first.txt"
	plansDir     = "plans"
	jsonSuffix   = ".json"
)

// threadDir is where a thread is kept. On file systems that do not tell
// capitals from small letters two threads may share one; every line and plan
// says whose it is.
func threadDir(id string) string { return path.Join(threadsDir, durable.Escape(id, true)) }

// artifactRoot is where a tenant's artifacts are. Two tenants never share one,
// so capitals are escaped too.
func artifactRoot(tenant string) string {
	if tenant == "" {
		return artifactsDir
	}
	return path.Join(tenantsDir, durable.Escape(tenant, false), artifactsDir)
}

// shard is the folder of an id: the two digits behind the prefix of every id.
func shard(id string) string { return id[len(id)-16 : len(id)-14] }

// artifactPath is where content is; its metadata is there with jsonSuffix. It is
// false for what is no artifact id.
func artifactPath(tenant, id string) (string, bool) {
	if !artifact.IsID(id) {
		return "", false
	}
	return path.Join(artifactRoot(tenant), shard(id), id), true
}
