package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// vendor is whose API a request is for, where the path alone decides.
type vendor int

const (
	openaiVendor vendor = iota
	anthropicVendor
	geminiVendor
	vendors // how many there are
)

// task is what an endpoint does with a conversation.
type task int

const (
	other      task = iota // nothing that we know of: forwarded as it is
	generate               // asks the model
	count                  // counts the tokens of a request
	compaction             // compacts a conversation
)

// endpoint is what a path stands for.
type endpoint struct {
	task    task
	dialect *dialect // nil for other
	model   string   // where the path names it
}

// endpointOf reads a path. Gateways put their own segments in front, so that the
// end of the path decides.
func endpointOf(path string) endpoint {
	switch {
	case strings.HasSuffix(path, "/v1/messages") || path == "/messages":
		return endpoint{task: generate, dialect: &dialect{anthropic.Codec{}, messages{}}}
	case strings.HasSuffix(path, "/v1/messages/count_tokens") || path == "/messages/count_tokens":
		return endpoint{task: count, dialect: &dialect{anthropic.Codec{}, messages{}}}
	case strings.HasSuffix(path, "/chat/completions"):
		return endpoint{task: generate, dialect: &dialect{openai.Chat{}, chat{}}}
	case strings.HasSuffix(path, "/responses"):
		return endpoint{task: generate, dialect: &dialect{openai.Responses{}, responses{}}}
	case strings.HasSuffix(path, "/responses/compact"):
		return endpoint{task: compaction, dialect: &dialect{openai.Responses{}, responses{}}}
	case strings.HasSuffix(path, "/responses/input_tokens"):
		return endpoint{task: count, dialect: &dialect{openai.Responses{}, responses{}}}
	}
	head, method, found := strings.Cut(path, ":")
	if !found {
		return endpoint{}
	}
	model := head[strings.LastIndexByte(head, '/')+1:]
	switch method {
	case "generateContent", "streamGenerateContent":
		return endpoint{task: generate, dialect: &dialect{gemini.Codec{}, contents{}}, model: model}
	case "countTokens":
		return endpoint{task: count, dialect: &dialect{gemini.Codec{}, contents{}}, model: model}
	}
	return endpoint{}
}

// vendorOf tells whose request it is, by its path where that is enough and by
// the credentials' header where it is not (/v1/models and the like: see resources).
func vendorOf(r *http.Request) vendor {
	if e := endpointOf(r.URL.Path); e.dialect != nil {
		return e.vendor()
	}
	if v := lookUpPath(r.URL.Path).vendor; v != severalVendors {
		return v
	}
	switch path := r.URL.Path; {
	case r.Header.Get("anthropic-version") != "" || r.Header.Get("x-api-key") != "" || strings.HasPrefix(path, "/v1/messages"):
		return anthropicVendor
	case r.Header.Get("x-goog-api-key") != "" || r.URL.Query().Has("key") || strings.HasPrefix(path, "/v1beta") || strings.HasPrefix(path, "/upload/v1beta"):
		return geminiVendor
	}
	return openaiVendor
}

// vendor is whose API an endpoint with a dialect is of.
func (e endpoint) vendor() vendor {
	switch e.dialect.API() {
	case wire.Anthropic:
		return anthropicVendor
	case wire.Gemini:
		return geminiVendor
	}
	return openaiVendor
}

// upstreamURL puts the path of a request behind an upstream's. The query stays as
// the client wrote it.
func upstreamURL(v vendor, upstream *url.URL, r *url.URL) *url.URL {
	out := *r
	out.Scheme, out.Host, out.User = upstream.Scheme, upstream.Host, upstream.User
	path, raw := r.Path, r.RawPath
	switch {
	case v == openaiVendor:
		path, raw = strings.TrimPrefix(path, "/v1"), strings.TrimPrefix(raw, "/v1")
	case v == anthropicVendor && strings.HasPrefix(path, "/messages"):
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
