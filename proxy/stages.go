package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// core is what all stages have: the settings, what was read last, and the totals.
type core struct {
	options  Options // with the defaults filled in
	requests *identify.Tenant

	byVendor [dialect.Vendors]atomic.Int64 // of requests

	asked, edited, compactions, recovered, faults, tokensBefore, tokensSent atomic.Int64
}

// models knows models: by the table and the options, and by what their providers said.
type models struct {
	*core
	models         token.ModelSet
	windows        records[knownWindow]
	reasoningRules records[reasoningRule]
	toldWindows    *lru.Cache[string, int]         // of which an event has told, by id
	assumed        *lru.Cache[string, token.Model] // of models that the table does not know, by name
}

// compactors are those of the models, made when they are needed.
type compactors struct {
	*core
	models *models

	mu         sync.Mutex
	compactors map[compactorKey]*palimpsest.Compactor
}

// conversations finds the logs of conversations.
type conversations struct {
	*core
	log         store.Log
	plans       store.Plans
	openLookups openLookups
	beginnings  records[[]string] // conversations by their first message
	lineage     lineage
}

// histories are those that requests do not hold, because the provider does, or because a compaction
// that was made here stands for them.
type histories struct {
	*core
	conversations *conversations
	responses     responseLog
	providerIDs   *lru.Cache[string, string] // the provider's ids of responses, by the client's
	// lostConversations are conversations of which something could not be stored, so that the
	// documents are wrong about them.
	lostConversations *lru.Cache[string, bool]
	tokenSecret       secret
}

// parser decodes requests, and names their clients and conversations.
type parser struct {
	*core
	models        *models
	conversations *conversations
}

// stepper decides what is sent.
type stepper struct {
	*core
	models        *models
	compactors    *compactors
	conversations *conversations
	parser        *parser
}

// sender sends it, and reads how it was taken.
type sender struct {
	*core
	models    *models
	histories *histories
}
