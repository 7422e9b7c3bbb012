package proxy

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
)

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

// endpointOf reads a path.
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

// tasks names the tasks behind an API in a Route.
var tasks = map[task]string{count: "/count", compaction: "/compact"}

// Route names what a path stands for: the API, as package wire names it, with "/count" or
// "/compact" behind it for requests that only count or compact, or "other".
func Route(address string) string { return endpointOf(path.Clean("/" + address)).route() }

func (e endpoint) route() string {
	if e.dialect == nil {
		return "other"
	}
	return e.dialect.API() + tasks[e.task]
}

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
