package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
)

// conversationChangeOf says what a request does to a conversation.
func conversationChangeOf(r *http.Request) conversationChange {
	path := afterVersion(strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' }))
	if len(path) == 0 || path[0] != "conversations" {
		return conversationChange{}
	}
	switch {
	case r.Method == http.MethodPost && len(path) == 1:
		return conversationChange{kind: conversationCreated}
	case r.Method == http.MethodPost && len(path) == 3 && path[2] == "items":
		return conversationChange{path[1], conversationExtended}
	case r.Method == http.MethodDelete && len(path) > 1:
		return conversationChange{path[1], conversationShortened}
	}
	return conversationChange{}
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

// task is what an endpoint does with a conversation.
type task int

const (
	other      task = iota // not known: forwarded as it is
	generate               // asks the model
	count                  // counts the tokens of a request
	compaction             // compacts a conversation
)

// endpoint is what a path stands for.
type endpoint struct {
	task    task
	dialect *dialect.Dialect // nil for other
	model   string           // if the path names it
}

// endpoints are the paths that ask a model, by how they end: gateways put segments of their own
// in front. Those of whole are the path itself, for base URLs without a version.
var endpoints = []struct {
	suffix, whole string
	endpoint      endpoint
}{
	{"/v1/messages", "/messages", endpoint{task: generate, dialect: dialect.Anthropic}},
	{"/v1/messages/count_tokens", "/messages/count_tokens", endpoint{task: count, dialect: dialect.Anthropic}},
	{suffix: "/chat/completions", endpoint: endpoint{task: generate, dialect: dialect.Chat}},
	{suffix: "/responses", endpoint: endpoint{task: generate, dialect: dialect.Responses}},
	{suffix: "/responses/compact", endpoint: endpoint{task: compaction, dialect: dialect.Responses}},
	{suffix: "/responses/input_tokens", endpoint: endpoint{task: count, dialect: dialect.Responses}},
}

// geminiTasks are those of Gemini's paths, models/NAME:METHOD.
var geminiTasks = map[string]task{"generateContent": generate, "streamGenerateContent": generate, "countTokens": count}

func endpointOf(path string) endpoint {
	for _, e := range endpoints {
		if strings.HasSuffix(path, e.suffix) || e.whole != "" && path == e.whole {
			return e.endpoint
		}
	}
	head, method, _ := strings.Cut(path, ":")
	if task := geminiTasks[method]; task != other {
		return endpoint{task: task, dialect: dialect.Gemini, model: head[strings.LastIndexByte(head, '/')+1:]}
	}
	return endpoint{}
}

// Route names what a path stands for: the API, as package wire names it, with "/count" or
// "/compact" behind it for requests that only count or compact, or "other".
func Route(address string) string { return endpointOf(path.Clean("/" + address)).route() }

// vendorOf tells whose API a request is for: by its path, or where several have the path (such
// as /v1/models; see resources) by the header of its credentials.
func vendorOf(r *http.Request) dialect.Vendor {
	if e := endpointOf(r.URL.Path); e.dialect != nil {
		return e.dialect.Vendor
	}
	if v := lookUpPath(r.URL.Path).vendor; v != severalVendors {
		return v
	}
	switch path := r.URL.Path; {
	case r.Header.Get("anthropic-version") != "" || r.Header.Get("x-api-key") != "" || strings.HasPrefix(path, "/v1/messages"):
		return dialect.AnthropicVendor
	case r.Header.Get("x-goog-api-key") != "" || r.URL.Query().Has("key") || strings.HasPrefix(path, "/v1beta") || strings.HasPrefix(path, "/upload/v1beta"), strings.Contains(path, "/locations/"): // Vertex
		return dialect.GeminiVendor
	}
	return dialect.OpenAIVendor
}

// upstreamURL appends the path of a request to an upstream's. The query stays as the client wrote
// it.
func upstreamURL(v dialect.Vendor, upstream *url.URL, r *url.URL) *url.URL {
	out := *r
	out.Scheme, out.Host, out.User = upstream.Scheme, upstream.Host, upstream.User
	path, raw := r.Path, r.RawPath
	switch {
	case v == dialect.OpenAIVendor:
		path, raw = strings.TrimPrefix(path, "/v1"), strings.TrimPrefix(raw, "/v1")
	case v == dialect.AnthropicVendor && strings.HasPrefix(path, "/messages"):
		path, raw = "/v1"+path, "/v1"+raw // the AI SDK takes its base URL with /v1, or without it as here
	}
	out.Path = strings.TrimSuffix(upstream.Path, "/") + path
	if r.RawPath != "" {
		out.RawPath = strings.TrimSuffix(upstream.EscapedPath(), "/") + raw
	}
	if upstream.RawQuery != "" {
		out.RawQuery = strings.Trim(upstream.RawQuery+"&"+r.RawQuery, "&")
	}
	return &out
}

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

// conversationChange is a request that changes what a conversation of OpenAI's holds.
// https://platform.openai.com/docs/api-reference/conversations
type conversationChange struct {
	id   string                 // empty for a new conversation
	kind conversationChangeKind // empty for requests that change nothing
}

type conversationChangeKind string

const (
	conversationCreated   conversationChangeKind = "created"
	conversationExtended  conversationChangeKind = "extended"  // by items
	conversationShortened conversationChangeKind = "shortened" // items were deleted, or all of it
)

// offersContextTools reports whether the model sees and steers its context: its tools are in every
// request that can have them.
func (co *core) offersContextTools() bool {
	r := co.options.Config.Recall
	return r != nil && r.ContextTools && !co.options.NoTools
}

// declaresOurs reports whether some of the tools have the name of one of ours.
func (e endpoint) declaresOurs(tools []prompt.Tool) bool {
	return slices.ContainsFunc(tools, func(t prompt.Tool) bool { return e.dialect.IsOurTool(t.Name) })
}
