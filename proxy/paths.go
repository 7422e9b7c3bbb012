package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// resource is a path of a provider's API, and the methods that it takes.
type resource struct {
	// path is what follows the version; "*" is any one segment.
	path string
	// methods are those of the path itself, and below those of all paths below it; empty if there
	// are none.
	methods, below string
	vendor         vendor
}

// severalVendors says that several providers have a path; headers then decide.
const severalVendors vendor = -1

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
	{"messages", post, "", anthropicVendor},
	{"messages/count_tokens", post, "", anthropicVendor},
	{"messages/batches", listed, "", anthropicVendor},
	{"messages/batches/*", single, "", anthropicVendor},
	{"messages/batches/*/cancel", post, "", anthropicVendor},
	{"messages/batches/*/results", get, "", anthropicVendor},
	{"complete", post, "", anthropicVendor},
	{"experimental", "", post, anthropicVendor},
	{"organizations", "", changed, severalVendors}, // Anthropic's administration
	{"environments", listed, changed, anthropicVendor},
	{"environment_providers", "", changed, anthropicVendor},
	{"agents", listed, changed, anthropicVendor},
	{"sessions", listed, edited, anthropicVendor},
	{"session_ingress", "", edited, anthropicVendor},
	{"vaults", listed, changed, anthropicVendor},
	{"memory_stores", listed, edited, anthropicVendor},
	{"mcp_servers", listed, changed, anthropicVendor},
	{"oauth", "", listed, anthropicVendor},
	{"code", "", edited, anthropicVendor},

	// Anthropic and OpenAI, or all three
	{"models", get, "GET POST DELETE PATCH", severalVendors}, // POST is Gemini's: models/NAME:METHOD
	{"files", listed, changed, severalVendors},
	{"files:register", post, "", geminiVendor},
	{"skills", listed, changed, severalVendors},
	{"batches", listed, "GET POST PATCH DELETE", severalVendors},

	// OpenAI
	{"chat/completions", listed, changed, openaiVendor},
	{"responses", post, changed, openaiVendor},
	{"conversations", listed, changed, openaiVendor},
	{"completions", post, "", openaiVendor},
	{"edits", post, "", openaiVendor},
	{"embeddings", post, "", openaiVendor},
	{"rerank", post, "", openaiVendor},
	{"moderations", post, "", openaiVendor},
	{"uploads", post, listed, openaiVendor},
	{"audio", "", changed, openaiVendor},
	{"images", "", post, openaiVendor},
	{"videos", listed, changed, openaiVendor},
	{"realtime", get, listed, openaiVendor},
	{"fine_tuning", "", changed, openaiVendor},
	{"fine-tunes", "", changed, openaiVendor},
	{"vector_stores", listed, changed, openaiVendor},
	{"assistants", listed, changed, openaiVendor},
	{"threads", post, changed, openaiVendor},
	{"evals", listed, changed, openaiVendor},
	{"containers", listed, changed, openaiVendor},
	{"chatkit", "", changed, openaiVendor},
	{"organization", "", changed, openaiVendor},
	{"projects", "", changed, severalVendors}, // Vertex has its models there
	{"dashboard/billing", "", get, openaiVendor},
	{"memories", "", listed, openaiVendor}, // Codex
	{"alpha", "", listed, openaiVendor},    // Codex

	// Gemini
	{"tunedModels", listed, edited, geminiVendor},
	{"cachedContents", listed, "GET PATCH DELETE", geminiVendor},
	{"operations", get, changed, geminiVendor},
	{"interactions", listed, changed, geminiVendor},
	{"fileSearchStores", listed, edited, geminiVendor},
	{"corpora", listed, edited, geminiVendor},
	{"generatedFiles", get, get, geminiVendor},
	{"dynamic", "", post, geminiVendor},
	{"auth_tokens", post, "", geminiVendor},
}

// unversionedPaths are paths without a version that agents request under a base URL.
var unversionedPaths = []resource{
	// Claude Code: its check of the connection, telemetry, account.
	{"api/hello", get, "", anthropicVendor},
	{"api/event_logging", "", post, anthropicVendor},
	{"api/claude_code", "", edited, anthropicVendor},
	{"api/claude_cli", "", edited, anthropicVendor},
	{"api/claude_cli_feedback", post, "", anthropicVendor},
	{"api/claude_code_grove", edited, "", anthropicVendor},
	{"api/claude_code_penguin_mode", get, "", anthropicVendor},
	{"api/claude_code_shared_session_transcripts", post, "", anthropicVendor},
	{"api/oauth", "", edited, anthropicVendor},
	{"api/organizations", "", edited, anthropicVendor},
	{"api/web/domain_info", get, "", anthropicVendor},
	// Codex with an account of ChatGPT.
	{"api/codex", "", edited, openaiVendor},
	{"backend-api", "", edited, openaiVendor},
	// Files of Gemini, and its live sessions.
	{"upload/*", "", "GET POST PUT", geminiVendor},
	{"resumable/upload/*", "", "GET POST PUT", geminiVendor},
	{"download/*", "", get, geminiVendor},
	{"ws", "", get, geminiVendor},
	// Gemini CLI with an account of Google.
	{"v1internal", "", listed, geminiVendor},
}

// pathMethods is what is known of a path.
type pathMethods struct {
	vendor  vendor
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
		f.vendor, f.methods = geminiVendor, append(f.methods, http.MethodGet, http.MethodPost)
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

// versionlessPaths are the first segments that need no version before them: some clients have a base URL
// without one.
var versionlessPaths = []string{
	"messages", "chat", "responses", "conversations", "completions", "embeddings", "rerank", "moderations", "models",
	"files", "uploads", "batches", "audio", "images", "realtime", "vector_stores", "memories", "alpha",
}

// afterVersion is what follows the version in a path (v1, v1beta), or the deployment in a path of Azure.
// Without either it is the whole path, if that needs no version.
func afterVersion(segments []string) []string {
	for i, s := range segments {
		switch {
		case len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9' && !strings.Contains(s, ":"):
			segments = segments[i+1:]
			if len(segments) > 1 && segments[0] == "openai" {
				segments = segments[1:] // Gemini's own chat/completions
			}
			return segments
		case s == "openai" && len(segments) > i+3 && segments[i+1] == "deployments":
			return segments[i+3:]
		case s == "openai" && len(segments) > i+1 && segments[i+1] != "v1":
			return segments[i+1:]
		}
	}
	if len(segments) == 0 || !slices.Contains(versionlessPaths, segments[0]) {
		return nil
	}
	return segments
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
