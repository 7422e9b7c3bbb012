package llm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Classify returns the kind of failure that a provider's answer is, from its status and body;
// the body may also be an error event of a stream that began with 200. It is "" if nothing
// says that it is a failure: the status is below 400 and the body holds no error.
//
// The words count before the status, because statuses lie: a request that does not fit gets
// 400, 413, 422, 429 or 500, and from some servers 400 without a word. An overflow is worth
// one try with a smaller request. provider is the name of the API ("anthropic", "openai",
// "gemini", …) and may be empty. The function is pure.
func Classify(provider string, status int, body []byte) Kind {
	f := readFailure(string(body))
	if status < 400 && !f.said {
		return ""
	}
	if k := f.sizeKind(); k != "" {
		return k
	}
	if isOverflowMessage(&f) {
		return ErrOverflow
	}
	if k := f.kindIn(anyStatus); k != "" {
		return k
	}
	if n, err := strconv.Atoi(f.code); err == nil && status < 400 && n >= 400 && n < 600 {
		status = n // an error inside a stream carries the status that it would have had
	}
	if f.empty && status == 400 && provider != "anthropic" {
		return ErrOverflow // Cerebras, Mistral and gateways refuse requests that are too long without a word
	}
	if k := statusKind(status, &f); k != "" {
		return k
	}
	return cmp.Or(f.kindIn(noStatus), ErrServer)
}

func (f *failure) has(codes []string) bool {
	return slices.Contains(codes, f.code) || slices.Contains(codes, f.kind)
}

// sign is what errors of one kind say: a code or type, or words of the message.
type sign struct {
	kind         Kind
	codes, words []string
}

// anyStatus holds under any status; the first row that fits decides. Codes that say
// nothing without their status (invalid_request_error) are left out.
var anyStatus = []sign{
	{ErrQuota, []string{
		"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance", "exceeded_current_quota_error", "1113",
	}, []string{
		"credit balance is too low",                           // Anthropic
		"exceeded your current quota, please check your plan", // OpenAI, Gemini
		"insufficient balance",                                // DeepSeek, MiniMax
		"insufficient credits", "requires more credits",       // OpenRouter
	}},
	{ErrRefused, []string{
		"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt", "data_inspection_failed",
	}, []string{
		"output blocked by content filtering policy", // Anthropic
		"content management policy",                  // Azure
		"flagged as potentially violating",           // OpenAI
	}},
	{ErrOverloaded, []string{"overloaded_error", "overloaded", "server_overloaded", "engine_overloaded_error", "unavailable", "serviceunavailableexception", "modelnotreadyexception", "slow_down", "compaction_unavailable"}, nil},
	{ErrRateLimited, []string{"rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "throttlingexception", "too_many_requests", "rate_limit_reached_error"}, nil},
	{ErrAuth, []string{"authentication_error", "permission_error", "permission_denied", "unauthenticated", "invalid_api_key", "invalid_authentication_error", "accessdeniedexception", "unrecognizedclientexception"},
		[]string{"api key not valid", "api key expired"}}, // Gemini, with 400
	{ErrNotFound, []string{"not_found_error", "model_not_found", "resourcenotfoundexception"}, nil},
	{ErrTimeout, []string{"timeout_error", "deadline_exceeded", "modeltimeoutexception"}, nil},
	{ErrServer, []string{"api_error", "internal_server_error", "server_error", "internal", "internalserverexception", "modelerrorexception", "modelstreamerrorexception"}, nil},
}

// noStatus is for errors inside streams, which may have neither status nor code.
var noStatus = []sign{
	{ErrOverloaded, nil, []string{"overloaded", "at capacity", "temporarily unavailable"}},
	{ErrRateLimited, nil, []string{"rate limit", "too many requests", "throttl", "too many tokens, please wait"}},
	{ErrTimeout, nil, []string{"timed out", "timeout"}},
}

// kindIn returns the kind of the first row that fits, or "".
func (f *failure) kindIn(table []sign) Kind {
	for _, s := range table {
		if f.has(s.codes) || matchesAny(f.message, s.words) {
			return s.kind
		}
	}
	return ""
}

func statusKind(status int, f *failure) Kind {
	switch status {
	case 401, 403:
		return ErrAuth
	case 402:
		return ErrQuota
	case 404:
		return ErrNotFound
	case 408, 504, 522, 524:
		return ErrTimeout
	case 409:
		return ErrServer // a lock timed out; the providers' own SDKs ask again
	case 413:
		return ErrOverflow
	case 425, 429:
		return ErrRateLimited
	case 499:
		return ErrCanceled
	case 503, 529:
		return ErrOverloaded
	}
	switch {
	case status >= 500:
		return ErrServer
	case status >= 400 && matchesAny(f.message, []string{"throttl", "too many tokens, please wait"}):
		return ErrRateLimited
	case status >= 400 || f.kind == "invalid_request_error" || f.kind == "invalid_argument":
		return ErrInvalid
	case status >= 300:
		return ErrResponse
	}
	return ""
}

// failure is an error body, in lower case.
type failure struct {
	kind, code, message string
	raw                 string // the message as it was written
	rawCode             string
	said                bool // the body holds an error
	empty               bool // the body holds nothing
}

// maxErrorJSON is the largest body that is read as JSON, in bytes: real errors have a few
// hundred, and the reader recurses.
const maxErrorJSON = 256 << 10

// maxWords is how much of other bodies is searched for words, in bytes.
const maxWords = 4 << 10

// readFailure finds type, code and message in the shapes that providers use:
//
//	{"type":"error","error":{"type","message"}}                Anthropic
//	{"error":{"message","type","code"}}                        OpenAI and most others
//	{"error":{"code":400,"message","status"}}, or in an array  Gemini
//	{"error":"…"}                                              Ollama, TGI
//	{"message","__type"}                                       Bedrock
//	{"object":"error","message","type"}                        Mistral, vLLM (older)
//	{"detail":"…"} or [{"msg"}]                                FastAPI
//	{"response":{"error":{…}}}                                 OpenAI Responses, in a stream
//	{"base_resp":{"status_code","status_msg"}}                 MiniMax
//	{"code":"…","message":"…"}                                 Qwen
func readFailure(body string) failure {
	var f failure
	trimmed := strings.TrimSpace(body)
	f.empty = trimmed == "" || trimmed == "{}" || trimmed == "null"
	if len(body) > maxErrorJSON || !rawjson.Valid(trimmed) {
		f.set("", "", clipWords(trimmed))
		return f
	}
	v := gjson.Parse(trimmed)
	if v.IsArray() {
		v = v.Get("0")
	}
	if inner := v.Get("response.error"); inner.IsObject() {
		v = v.Get("response")
	}
	e := v.Get("error")
	switch {
	case e.IsObject() && e.Raw != "{}":
		f.object(e)
		f.said = true
	case e.Type == gjson.String && e.Str != "":
		f.set(v.Get("error_type").String(), v.Get("code").String(), e.Str)
		if m := v.Get("message"); m.Type == gjson.String {
			f.set(e.Str, v.Get("code").String(), m.Str)
		}
		f.said = true
	case v.Get("base_resp.status_code").Int() != 0:
		f.set("", v.Get("base_resp.status_code").String(), v.Get("base_resp.status_msg").String())
		f.said = true
	case v.Get("type").Str == "error" || v.Get("object").Str == "error" || v.Get("__type").Exists():
		f.object(v)
		f.said = true
	case v.Get("message").Type == gjson.String:
		f.object(v)
	case v.Get("detail").Exists():
		f.set("", "", detail(v.Get("detail")))
	case v.Type == gjson.String:
		f.set("", "", clipWords(v.Str))
	}
	return f
}

func (f *failure) object(e gjson.Result) {
	kind := e.Get("type").String()
	if s := e.Get("status"); s.Type == gjson.String {
		kind = s.Str
	}
	if s := e.Get("__type"); s.Type == gjson.String {
		kind = s.Str[strings.LastIndexByte(s.Str, '#')+1:]
	}
	code := e.Get("code").String()
	for _, path := range []string{"details.error_code", "innererror.code", "metadata.error_type"} {
		// The inner code says more than the outer one.
		if c := e.Get(path); c.Type == gjson.String && c.Str != "" {
			code = c.Str
		}
	}
	message := e.Get("message").String()
	if raw := e.Get("metadata.raw"); raw.Type == gjson.String && raw.Str != "" {
		// OpenRouter passes on the error of the provider behind it.
		message += ": " + clipWords(raw.Str)
	}
	f.set(kind, code, message)
}

func (f *failure) set(kind, code, message string) {
	f.kind, f.code, f.message = strings.ToLower(kind), strings.ToLower(code), strings.ToLower(message)
	f.raw, f.rawCode = message, cmp.Or(code, kind)
}

// detail reads FastAPI's detail: a text, or a list of broken rules. The input that those echo
// is left out.
func detail(v gjson.Result) string {
	if !v.IsArray() {
		if m := v.Get("message"); m.Type == gjson.String {
			return m.Str
		}
		return clipWords(v.String())
	}
	var list []string
	for d := range rawjson.Items(v) {
		if m := d.Get("msg"); m.Type == gjson.String {
			list = append(list, m.Str)
		}
	}
	return strings.Join(list, "; ")
}

func clipWords(s string) string {
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "")
	}
	return s
}

// maxMessage bounds the message of an error, in bytes.
const maxMessage = 600

// Failure returns the error for a provider's answer, with its Kind from Classify and the code
// and message of the body. It is nil if Classify finds no failure.
func Failure(provider string, status int, body []byte) *APIError {
	kind := Classify(provider, status, body)
	if kind == "" {
		return nil
	}
	f := readFailure(string(body))
	message := strings.Join(strings.Fields(f.raw), " ")
	return &APIError{Provider: provider, Kind: kind, Status: status, Code: f.rawCode, Message: clip.Short(message, maxMessage)}
}
