package llmtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Provider is how a Server behaves that stands for a real one: it refuses what
// the real API refuses, with the error that the API documents, and what it
// accepts it has Reply answer.
type Provider struct {
	// Windows are the models, and the context window of each in tokens: the
	// request and the limit of its answer must fit into it.
	Windows map[string]int
	// Reply answers a request. It is called on the goroutine of the request and
	// must be safe for concurrent use when requests are concurrent. Usage that is
	// not Known is counted.
	Reply func(Request) Answer
}

// Refusal is a request that a provider did not take.
type Refusal struct {
	Request Request
	Status  int
	// Message is the provider's message.
	Message string
}

// NewProvider starts a server that behaves like a provider and is closed when
// the test ends. Unlike one of NewServer it does not fail the test for a bad
// request: it refuses it, and Refused tells.
//
// Beside what the validators find it refuses a request without key or, for
// Anthropic, version; one for a model that it does not have; one that does not fit into the window; a thinking block
// that was altered or that stands behind another system, other tools or other
// messages than it was written for, as Anthropic's newer models do; a reasoning
// item that OpenAI cannot know, because it was not stored and brings nothing
// encrypted.
func NewProvider(tb testing.TB, p Provider) *Server {
	counter, err := token.New("o200k", nil)
	if err != nil {
		tb.Fatal(err)
	}
	s := newServer(tb)
	s.provider = &provider{Provider: p, counter: counter, counts: map[string]int{}, sealed: map[string]bool{}}
	s.start()
	return s
}

// Refused returns the requests that were refused so far, in order.
func (s *Server) Refused() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Refusal(nil), s.refused...)
}

// Fault is an answer in the shape of the API's errors. Code may be empty.
func Fault(api string, status int, code, message string) Answer {
	a := Answer{Status: status}
	switch api {
	case wire.Anthropic:
		a.Body = fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s}}`, rawjson.Quote(anthropicErrors[status]), rawjson.Quote(message))
		return a
	case wire.Gemini:
		a.Body = fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":"INVALID_ARGUMENT"}}`, status, rawjson.Quote(message))
		return a
	}
	kind := "invalid_request_error"
	switch {
	case status >= 500:
		kind = "server_error"
	case status == http.StatusTooManyRequests:
		kind = "requests"
	}
	if code = rawjson.Quote(code); code == `""` {
		code = "null"
	}
	a.Body = fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":null,"code":%s}}`, rawjson.Quote(message), rawjson.Quote(kind), code)
	return a
}

// anthropicErrors are the types of errors by status.
// https://docs.anthropic.com/en/api/errors
var anthropicErrors = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}

// Overflow is the refusal of a request that does not fit.
func Overflow(api string, tokens, window int) Answer {
	switch api {
	case wire.Anthropic:
		return Fault(api, http.StatusBadRequest, "", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, window))
	case wire.Gemini:
		return Fault(api, http.StatusBadRequest, "", fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", tokens, window))
	case wire.Responses:
		return Fault(api, http.StatusBadRequest, "context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	}
	return Fault(api, http.StatusBadRequest, "context_length_exceeded", fmt.Sprintf(
		"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", window, tokens))
}

// provider is the state behind a server of NewProvider, guarded by the server's
// lock.
type provider struct {
	Provider
	counter *token.Counter
	counts  map[string]int  // by the JSON of a message, tool or system block
	sealed  map[string]bool // encrypted reasoning that was given out
}

// checkRequest counts the request and says whether it is refused.
func (p *provider) checkRequest(codec wire.Codec, r *Request, body gjson.Result) (Answer, bool) {
	switch {
	case codec.API() != wire.Anthropic && r.Header.Get("Authorization") == "":
		return Fault(r.API, http.StatusUnauthorized, "", "You didn't provide an API key."), true
	case codec.API() != wire.Anthropic:
	case r.Header.Get("X-Api-Key") == "" && r.Header.Get("Authorization") == "":
		return Fault(r.API, http.StatusUnauthorized, "", "x-api-key header is required"), true
	case r.Header.Get("Anthropic-Version") == "":
		return Fault(r.API, http.StatusBadRequest, "", "anthropic-version: header is required"), true
	}
	for _, problem := range codec.Validate([]byte(r.Body)) {
		if !problem.Advice {
			return Fault(r.API, http.StatusBadRequest, "", problem.Error()), true
		}
	}
	window, known := p.Windows[body.Get("model").Str]
	if !known {
		return Fault(r.API, http.StatusNotFound, "model_not_found", "model: "+body.Get("model").Str), true
	}
	for _, field := range []string{"system", "tools", "messages", "instructions", "input"} {
		r.Tokens += p.count(body.Get(field))
	}
	output := 0
	for _, field := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		output = max(output, int(body.Get(field).Int()))
	}
	switch {
	case r.Tokens > window:
		return Overflow(r.API, r.Tokens, window), true
	case r.Tokens+output > window && r.API == wire.Anthropic:
		return Fault(r.API, http.StatusBadRequest, "", fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", r.Tokens, output, window)), true
	case r.Tokens+output > window:
		return Overflow(r.API, r.Tokens+output, window), true
	}
	if r.API == wire.Anthropic {
		if path := ForeignThinking(r.Body); path != "" {
			return Fault(r.API, http.StatusBadRequest, "", path+": Invalid `signature` in `thinking` block: it is bound to a different conversation"), true
		}
	}
	for i, item := range body.Get("input").Array() {
		if item.Get("type").Str != "reasoning" {
			continue
		}
		switch sealed := item.Get("encrypted_content").Str; {
		case sealed == "" && body.Get("store").Type == gjson.False:
			return Fault(r.API, http.StatusNotFound, "", fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", item.Get("id").Str)), true
		case sealed != "" && !p.sealed[sealed]:
			return Fault(r.API, http.StatusBadRequest, "invalid_encrypted_content", fmt.Sprintf("input[%d]: the encrypted content could not be verified", i)), true
		}
	}
	return Answer{}, false
}

// count adds up the tokens of every text and number that a model reads, and four
// for each element of a list.
func (p *provider) count(v gjson.Result) int {
	if !v.IsArray() {
		return p.texts(v)
	}
	n := 0
	for _, e := range v.Array() {
		known, ok := p.counts[e.Raw]
		if !ok {
			known = p.texts(e) + 4
			p.counts[e.Raw] = known
		}
		n += known
	}
	return n
}

func (p *provider) texts(v gjson.Result) int {
	if !v.IsObject() && !v.IsArray() {
		return p.counter.Text(v.String())
	}
	n := 0
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "signature", "encrypted_content", "cache_control", "id", "call_id", "tool_use_id", "tool_call_id", "type", "status", "role":
		default:
			n += p.texts(value)
		}
		return true
	})
	return n
}

// seal is the signature of a thinking block behind what h has read.
func seal(h hash.Hash, thinking string) string {
	sum := sha256.Sum256(h.Sum([]byte(thinking)))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// hashBlocks adds the system, the tools and the blocks of the messages to a hash, and
// gives each thinking block to check before it. Where messages of one role begin
// and end, and where cache marks stand, is the same to the model.
func hashBlocks(body gjson.Result, check func(path string, block gjson.Result, h hash.Hash) bool) hash.Hash {
	h := sha256.New()
	write := func(what string, v any) {
		b, _ := json.Marshal(withoutCacheMarks(v)) // what was read as JSON can be written
		fmt.Fprintf(h, "%s %d %s\n", what, len(b), b)
	}
	write("system", body.Get("system").Value())
	write("tools", body.Get("tools").Value())
	for i, m := range body.Get("messages").Array() {
		content := m.Get("content")
		if content.Type == gjson.String {
			write(m.Get("role").Str, map[string]any{"type": "text", "text": content.Str})
			continue
		}
		for j, block := range content.Array() {
			if block.Get("type").Str == "thinking" && !check(fmt.Sprintf("messages.%d.content.%d", i, j), block, h) {
				return h
			}
			write(m.Get("role").Str, block.Value())
		}
	}
	return h
}

// withoutCacheMarks returns a JSON value without cache marks.
func withoutCacheMarks(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutCacheMarks(v[i])
		}
	case map[string]any:
		delete(v, "cache_control")
		for k := range v {
			v[k] = withoutCacheMarks(v[k])
		}
	}
	return v
}

// SealThinking is the signature of thinking that answers a request to Anthropic's API.
func SealThinking(body, thinking string) string {
	return seal(hashBlocks(gjson.Parse(body), func(string, gjson.Result, hash.Hash) bool { return true }), thinking)
}

// ForeignThinking is the path of the first thinking block in a request to Anthropic's API that
// was not written for what stands before it, as SealThinking tells; empty when there is none.
func ForeignThinking(body string) (wrong string) {
	if !strings.Contains(body, "thinking") {
		return "" // most requests: nothing has to be hashed
	}
	hashBlocks(gjson.Parse(body), func(path string, block gjson.Result, h hash.Hash) bool {
		if block.Get("signature").Str != seal(h, block.Get("thinking").Str) {
			wrong = path
		}
		return wrong == ""
	})
	return wrong
}

// finish gives an answer what a provider adds: usage, ids of its own, seals.
func (p *provider) finish(a *Answer, r *Request, body gjson.Result, n int) {
	a.serial = fmt.Sprint(n)
	if !a.Usage.Known {
		output := p.counter.Text(a.Text) + p.counter.Text(a.Reasoning)
		for _, c := range a.Calls {
			output += p.counter.Text(c.Name) + p.counter.Text(c.Arguments)
		}
		a.Usage = wire.Usage{Input: r.Tokens, Output: output, Reasoning: p.counter.Text(a.Reasoning), Known: true}
	}
	switch {
	case a.Reasoning == "":
	case r.API == wire.Anthropic:
		a.seal = SealThinking(r.Body, a.Reasoning)
	case strings.Contains(body.Get("include").Raw, `"reasoning.encrypted_content"`):
		h := sha256.New()
		fmt.Fprint(h, r.Body, n)
		a.seal = seal(h, a.Reasoning)
		p.sealed[a.seal] = true
	}
}
