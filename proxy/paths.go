package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
)

// resource is a path of a provider's API, and the methods that it takes.
type resource struct {
	// path is what follows the version; "*" is any one segment.
	path string
	// methods are those of the path itself, and below those of all paths below it; empty if there
	// are none.
	methods, below string
	vendor         dialect.Vendor
}

// severalVendors says that several providers have a path; headers then decide.
const severalVendors dialect.Vendor = -1

// The methods of most collections and their members. HEAD is allowed with GET, and OPTIONS everywhere:
// browsers ask with it what they may do.
const (
	get     = "GET"
	post    = "POST"
	listed  = "GET POST"
	single  = "GET DELETE"
	changed = "GET POST DELETE"
	edited  = "GET POST PATCH PUT DELETE"
)

// resources are the paths of the providers' public APIs, and those that their agents request under the
// same base URL. Other paths are refused: a browser's look for a page, or a typing error, is not
// sent to a provider.
var resources = []resource{
	// Anthropic
	{"messages", post, "", dialect.AnthropicVendor},
	{"messages/count_tokens", post, "", dialect.AnthropicVendor},
	{"messages/batches", listed, "", dialect.AnthropicVendor},
	{"messages/batches/*", single, "", dialect.AnthropicVendor},
	{"messages/batches/*/cancel", post, "", dialect.AnthropicVendor},
	{"messages/batches/*/results", get, "", dialect.AnthropicVendor},
	{"complete", post, "", dialect.AnthropicVendor},
	{"experimental", "", post, dialect.AnthropicVendor},
	{"organizations", "", changed, severalVendors}, // Anthropic's administration
	{"environments", listed, changed, dialect.AnthropicVendor},
	{"environment_providers", "", changed, dialect.AnthropicVendor},
	{"agents", listed, changed, dialect.AnthropicVendor},
	{"sessions", listed, edited, dialect.AnthropicVendor},
	{"session_ingress", "", edited, dialect.AnthropicVendor},
	{"vaults", listed, changed, dialect.AnthropicVendor},
	{"memory_stores", listed, edited, dialect.AnthropicVendor},
	{"mcp_servers", listed, changed, dialect.AnthropicVendor},
	{"oauth", "", listed, dialect.AnthropicVendor},
	{"code", "", edited, dialect.AnthropicVendor},

	// Anthropic and OpenAI, or all three
	{"models", get, "GET POST DELETE PATCH", severalVendors}, // POST is Gemini's: models/NAME:METHOD
	{"files", listed, changed, severalVendors},
	{"files:register", post, "", dialect.GeminiVendor},
	{"skills", listed, changed, severalVendors},
	{"batches", listed, "GET POST PATCH DELETE", severalVendors},

	// OpenAI
	{"chat/completions", listed, changed, dialect.OpenAIVendor},
	{"responses", post, changed, dialect.OpenAIVendor},
	{"conversations", listed, changed, dialect.OpenAIVendor},
	{"completions", post, "", dialect.OpenAIVendor},
	{"edits", post, "", dialect.OpenAIVendor},
	{"embeddings", post, "", dialect.OpenAIVendor},
	{"rerank", post, "", dialect.OpenAIVendor},
	{"moderations", post, "", dialect.OpenAIVendor},
	{"uploads", post, listed, dialect.OpenAIVendor},
	{"audio", "", changed, dialect.OpenAIVendor},
	{"images", "", post, dialect.OpenAIVendor},
	{"videos", listed, changed, dialect.OpenAIVendor},
	{"realtime", get, listed, dialect.OpenAIVendor},
	{"fine_tuning", "", changed, dialect.OpenAIVendor},
	{"fine-tunes", "", changed, dialect.OpenAIVendor},
	{"vector_stores", listed, changed, dialect.OpenAIVendor},
	{"assistants", listed, changed, dialect.OpenAIVendor},
	{"threads", post, changed, dialect.OpenAIVendor},
	{"evals", listed, changed, dialect.OpenAIVendor},
	{"containers", listed, changed, dialect.OpenAIVendor},
	{"chatkit", "", changed, dialect.OpenAIVendor},
	{"organization", "", changed, dialect.OpenAIVendor},
	{"projects", "", changed, severalVendors}, // Vertex has its models there
	{"dashboard/billing", "", get, dialect.OpenAIVendor},
	{"memories", "", listed, dialect.OpenAIVendor}, // Codex
	{"alpha", "", listed, dialect.OpenAIVendor},    // Codex

	// Gemini
	{"tunedModels", listed, edited, dialect.GeminiVendor},
	{"cachedContents", listed, "GET PATCH DELETE", dialect.GeminiVendor},
	{"operations", get, changed, dialect.GeminiVendor},
	{"interactions", listed, changed, dialect.GeminiVendor},
	{"fileSearchStores", listed, edited, dialect.GeminiVendor},
	{"corpora", listed, edited, dialect.GeminiVendor},
	{"generatedFiles", get, get, dialect.GeminiVendor},
	{"dynamic", "", post, dialect.GeminiVendor},
	{"auth_tokens", post, "", dialect.GeminiVendor},
}

// unversionedPaths are paths without a version that agents request under a base URL.
var unversionedPaths = []resource{
	// Claude Code: its check of the connection, telemetry, account.
	{"api/hello", get, "", dialect.AnthropicVendor},
	{"api/event_logging", "", post, dialect.AnthropicVendor},
	{"api/claude_code", "", edited, dialect.AnthropicVendor},
	{"api/claude_cli", "", edited, dialect.AnthropicVendor},
	{"api/claude_cli_feedback", post, "", dialect.AnthropicVendor},
	{"api/claude_code_grove", edited, "", dialect.AnthropicVendor},
	{"api/claude_code_penguin_mode", get, "", dialect.AnthropicVendor},
	{"api/claude_code_shared_session_transcripts", post, "", dialect.AnthropicVendor},
	{"api/oauth", "", edited, dialect.AnthropicVendor},
	{"api/organizations", "", edited, dialect.AnthropicVendor},
	{"api/web/domain_info", get, "", dialect.AnthropicVendor},
	// Codex with an account of ChatGPT.
	{"api/codex", "", edited, dialect.OpenAIVendor},
	{"backend-api", "", edited, dialect.OpenAIVendor},
	// Files of Gemini, and its live sessions.
	{"upload/*", "", "GET POST PUT", dialect.GeminiVendor},
	{"resumable/upload/*", "", "GET POST PUT", dialect.GeminiVendor},
	{"download/*", "", get, dialect.GeminiVendor},
	{"ws", "", get, dialect.GeminiVendor},
	// Gemini CLI with an account of Google.
	{"v1internal", "", listed, dialect.GeminiVendor},
}

// pathMethods is what is known of a path.
type pathMethods struct {
	vendor  dialect.Vendor
	methods []string // nil if the path is not known
}

// lookUpPath finds the methods that a path takes. Gateways put their own segments in front, so the end of
// the path decides for an endpoint, and otherwise what follows a version.
func lookUpPath(path string) pathMethods {
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if slices.Contains(segments, "..") || slices.Contains(segments, ".") {
		return pathMethods{}
	}
	f := pathMethods{vendor: severalVendors}
	f.addFrom(resources, afterVersion(segments))
	f.addFrom(unversionedPaths, segments)
	if len(segments) > 0 && strings.HasPrefix(segments[0], "v1internal:") {
		f.vendor, f.methods = dialect.GeminiVendor, append(f.methods, http.MethodGet, http.MethodPost)
	}
	if e := endpointOf(path); e.task != other && (len(f.methods) == 0 || e.model != "") {
		f.methods = []string{http.MethodPost}
	}
	return f
}

// addFrom adds what one table says.
func (f *pathMethods) addFrom(table []resource, segments []string) {
	for _, p := range table {
		methods := p.methodsAt(segments)
		if methods == "" {
			continue
		}
		f.vendor = p.vendor
		for method := range strings.FieldsSeq(methods) {
			if !slices.Contains(f.methods, method) {
				f.methods = append(f.methods, method)
			}
		}
	}
}

// methodsAt are the methods of a path; empty if it is not the resource's.
func (p resource) methodsAt(segments []string) string {
	n := 0
	for want := range strings.SplitSeq(p.path, "/") {
		if n == len(segments) || want != "*" && want != segments[n] {
			return ""
		}
		n++
	}
	if n == len(segments) {
		return p.methods
	}
	return p.below
}

// allows reports whether a path takes a method.
func (f pathMethods) allows(method string) bool {
	switch method {
	case http.MethodOptions:
		return len(f.methods) > 0
	case http.MethodHead:
		method = http.MethodGet
	}
	return slices.Contains(f.methods, method)
}

// Methods are the methods of a path that a Proxy forwards to a provider; nil for a path that it does not
// know, and refuses with 404. HEAD and OPTIONS are not listed.
func Methods(path string) []string { return lookUpPath(path).methods }

// Takes reports whether a Proxy forwards a method and path to a provider.
func Takes(method, path string) bool { return lookUpPath(path).allows(method) }

// refuseUnknown refuses a path or a method that no provider has.
func refuseUnknown(w http.ResponseWriter, r *http.Request) {
	status, kind := http.StatusNotFound, "not_found_error"
	say := fmt.Sprintf("there is nothing at %s; only the paths of the Anthropic, OpenAI and Gemini APIs are sent on", r.URL.Path)
	if methods := Methods(r.URL.Path); len(methods) > 0 {
		status, kind = http.StatusMethodNotAllowed, "invalid_request_error"
		say = fmt.Sprintf("%s takes %s, not %s", r.URL.Path, strings.Join(methods, ", "), r.Method)
		w.Header().Set("Allow", strings.Join(methods, ", "))
	}
	refuseHere(w, status, kind, say)
}
