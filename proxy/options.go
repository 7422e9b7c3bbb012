package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/redact"
	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Options say where requests go and how conversations are kept. The zero value sends them to the
// providers and keeps everything in memory.
type Options struct {
	// Anthropic, OpenAI and Gemini are the upstreams, as the providers' SDKs take them: Anthropic
	// without /v1, OpenAI with it, Gemini without a version. Empty is the provider itself. A
	// Transport does not use them: its requests name their server.
	Anthropic, OpenAI, Gemini string

	// Config is what conversations are compacted with. If its Counter is nil, each model is counted
	// with its own. Its Events get faults as well. Of Store, Documents also hold Secret, windows that
	// providers named in refusals, responses that they hold, and which conversation continues
	// which; nil keeps them in memory. See Forget for deleting a log.
	Config palimpsest.Config
	// Models is the table of models; nil is token.Models. Window is the context window of every
	// model, in tokens; 0 leaves it to the table, and DefaultWindow is that of models which the
	// table does not have. A window that a provider names in a refusal replaces that of the
	// built-in table; of one that is given here, by these two or by Models, only if it is smaller.
	// Conversations with a model whose window is unknown are compacted only once the provider
	// refuses a request.
	Models                *token.ModelSet
	Window, DefaultWindow int

	// Emulate names the APIs whose upstreams cannot compact by themselves, as native.APIs reads
	// them: wire.Anthropic and wire.Responses (or "openai"). The native compaction that their
	// requests ask for is then done here. Other APIs leave it to the provider, and only
	// compactions that were made here before are replaced by what they stand for.
	Emulate []string
	// Secret signs the tokens that emulated compactions give the client. If it is empty a key is
	// made once and kept in the Documents. If those are nil too, the key is of this process, and
	// tokens of an earlier one cannot be verified.
	Secret []byte

	// Memory bounds what is remembered of conversations between steps; the proxies of several
	// tenants may share one. Nil is one of its own, with the default bounds.
	Memory *Memory

	// NoTools offers the model no tools to read again what was removed.
	NoTools bool
	// Rounds is how many requests one request of the client's may become while the model reads
	// again what was removed; 0 is 8. A model that asks for more is told in one last request to do
	// with what it has.
	Rounds int
	// MaxBody is the largest request that is read, in bytes; a larger one passes untouched. 0 is
	// 64 MB.
	MaxBody int64
	// Agent makes a client of the agent's own model, by its API and name, over connections that
	// carry the credentials of the agent's request: for a Config whose summarizers are the agent's
	// (llm.Agent). Compactions are then made on the way, since a job has no request. Nil if the
	// model is not used so.
	Agent func(api, model string, over *http.Client) (llm.Generator, error)
	// Deadline bounds how long a request waits for its compaction; after it the request goes on as
	// it is. 0 is 30 seconds, or three minutes with Agent.
	Deadline time.Duration
	// Stop is done when the process is to end: a request whose compaction takes two more seconds
	// goes on as it is. Nil is never.
	Stop context.Context
	// Base sends the requests. Nil is a transport of its own that leaves answers compressed.
	Base http.RoundTripper

	retry retry.Policy // of rounds; tests set its clock
}

// The providers' own addresses.
const (
	anthropicURL = "https://api.anthropic.com"
	openaiURL    = "https://api.openai.com/v1"
	geminiURL    = "https://generativelanguage.googleapis.com"
)

const (
	defaultRounds   = 8
	defaultDeadline = 30 * time.Second
)

// upstreams are the parsed addresses, by vendor.
func (o *Options) upstreams() (map[dialect.Vendor]*url.URL, error) {
	all := map[dialect.Vendor]*url.URL{}
	for v, address := range map[dialect.Vendor]string{
		dialect.AnthropicVendor: strings.TrimSuffix(strings.TrimSuffix(cmp.Or(o.Anthropic, anthropicURL), "/"), "/v1"), // as the AI SDK writes it
		dialect.OpenAIVendor:    cmp.Or(o.OpenAI, openaiURL),
		dialect.GeminiVendor:    cmp.Or(o.Gemini, geminiURL),
	} {
		u, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("upstream %q: %w", redact.URL(address), errors.Unwrap(err)) // err has the address
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("upstream %q: it must be a URL with http or https and a host", redact.URL(address))
		}
		all[v] = u
	}
	return all, nil
}
