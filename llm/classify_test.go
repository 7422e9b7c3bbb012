package llm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/llm"
)

// The bodies follow the shapes that the providers document or are known for;
// names and numbers are ours.
var classifyTests = []struct {
	name     string
	provider string
	status   int
	body     string
	want     llm.Kind
}{
	// Requests that do not fit.
	{"Anthropic", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201234 tokens > 200000 maximum"},"request_id":"req_1"}`, llm.ErrOverflow},
	{"Anthropic with output", "anthropic", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again\"}}", llm.ErrOverflow},
	{"Anthropic bytes", "anthropic", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, llm.ErrBytes},
	{"Anthropic long context as rate limit", "anthropic", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}`, llm.ErrOverflow},
	{"Anthropic in a stream", "anthropic", 200, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`, llm.ErrOverflow},
	{"Chat", "openai", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, llm.ErrOverflow},
	{"Responses", "openai", 400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}`, llm.ErrOverflow},
	{"Responses in a stream", "openai", 200, `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`, llm.ErrOverflow},
	{"OpenAI input limit", "openai", 400, `{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.","type":"invalid_request_error"}}`, llm.ErrOverflow},
	{"OpenAI as rate limit", "openai", 429, `{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 41000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}`, llm.ErrOverflow},
	{"OpenAI huge text", "openai", 400, `{"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a string with length 11000000 instead.","code":"string_above_max_length"}}`, llm.ErrOverflow},
	{"OpenAI messages", "openai", 400, `{"error":{"message":"Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2059 instead.","code":"array_above_max_length"}}`, llm.ErrOverflow},
	{"OpenAI tools", "openai", 400, `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140 instead.","code":"array_above_max_length"}}`, llm.ErrInvalid},
	{"Azure", "openai", 400, `{"error":{"message":"This model's maximum context length is 16385 tokens.","type":"invalid_request_error","code":"context_length_exceeded","innererror":{"code":"other"}}}`, llm.ErrOverflow},
	{"Groq", "", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}`, llm.ErrOverflow},
	{"Groq 413", "", 413, "{\"error\":{\"message\":\"Request too large for model `llama` in organization `org` on tokens per minute (TPM): Limit 6000, Requested 7001, please reduce your message size and try again.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}", llm.ErrOverflow},
	{"Gemini", "gemini", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, llm.ErrOverflow},
	{"Gemini in an array", "gemini", 400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, llm.ErrOverflow},
	{"Gemini bytes", "gemini", 400, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, llm.ErrBytes},
	{"Bedrock", "bedrock", 400, `{"message":"Input is too long for requested model."}`, llm.ErrOverflow},
	{"Bedrock type", "bedrock", 400, `{"__type":"com.amazon.coral#ValidationException","message":"The model returned the following errors: Input is too long for requested model."}`, llm.ErrOverflow},
	{"xAI", "", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, llm.ErrOverflow},
	{"OpenRouter", "", 400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens.","code":400}}`, llm.ErrOverflow},
	{"OpenRouter passing on", "", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}","provider_name":"X"}}}`, llm.ErrOverflow},
	{"llama.cpp", "", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`, llm.ErrOverflow},
	{"llama.cpp as 500", "", 500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, llm.ErrOverflow},
	{"LM Studio", "", 400, `{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, llm.ErrOverflow},
	{"LM Studio tokens to keep", "", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`, llm.ErrOverflow},
	{"Ollama", "", 400, `{"error":{"message":"prompt too long; exceeded max context length by 700 tokens","type":"invalid_request_error"}}`, llm.ErrOverflow},
	{"vLLM", "", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4800 in the messages, 200 in the completion).","type":"BadRequestError","param":null,"code":400}`, llm.ErrOverflow},
	{"vLLM decoder", "", 400, `{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`, llm.ErrOverflow},
	{"SGLang", "", 400, `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","code":400}`, llm.ErrOverflow},
	{"TGI", "", 422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`\",\"error_type\":\"validation\"}", llm.ErrOverflow},
	{"MiniMax", "minimax", 200, `{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}`, llm.ErrOverflow},
	{"MiniMax as error", "minimax", 400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}`, llm.ErrOverflow},
	{"Kimi", "", 400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 280000)","type":"invalid_request_error"}}`, llm.ErrOverflow},
	{"Mistral", "", 400, `{"object":"error","message":"Prompt contains 150000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","code":"3051"}`, llm.ErrOverflow},
	{"z.ai", "", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, llm.ErrOverflow},
	{"DeepSeek", "", 400, `{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.","type":"invalid_request_error","code":"invalid_request_error"}}`, llm.ErrOverflow},
	{"GitHub Copilot", "", 400, `{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, llm.ErrOverflow},
	{"GitHub Models", "", 413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`, llm.ErrOverflow},
	{"Fireworks", "", 400, `{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 140000, model maximum context length: 131071"}}`, llm.ErrOverflow},
	{"Qwen", "", 400, `{"error":{"code":"invalid_parameter_error","message":"Range of input length should be [1, 129024]","type":"invalid_request_error"}}`, llm.ErrOverflow},
	{"LiteLLM", "", 400, `{"error":{"message":"litellm.ContextWindowExceededError: OpenAIException - too long","type":"ContextWindowExceededError","code":"400"}}`, llm.ErrOverflow},
	{"nginx", "", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>", llm.ErrOverflow},
	{"413 without a word", "", 413, "", llm.ErrOverflow},
	{"400 without a word", "", 400, "", llm.ErrOverflow},
	{"400 with an empty object", "", 400, "{}", llm.ErrOverflow},

	// What could be taken for it.
	{"Anthropic never sends nothing", "anthropic", 400, "", llm.ErrInvalid},
	{"Bedrock throttling", "bedrock", 429, `{"message":"Too many tokens, please wait before trying again."}`, llm.ErrRateLimited},
	{"Bedrock throttling as 400", "bedrock", 400, `{"__type":"ThrottlingException","message":"Too many tokens, please wait before trying again."}`, llm.ErrRateLimited},
	{"Anthropic tokens per minute", "anthropic", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute."}}`, llm.ErrRateLimited},
	{"OpenAI tokens per minute", "openai", 429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.","type":"tokens","code":"rate_limit_exceeded"}}`, llm.ErrRateLimited},
	{"tokens of a day", "", 429, `{"error":{"message":"Token limit exceeded: 500000 tokens per day are used up.","code":"rate_limit"}}`, llm.ErrRateLimited},
	{"Bedrock throttling of input", "bedrock", 429, `{"message":"Throttled: too many input tokens per minute."}`, llm.ErrRateLimited},
	{"OpenAI short limits", "openai", 400, `{"error":{"message":"Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 60 instead.","code":"string_above_max_length"}}`, llm.ErrInvalid},
	{"too many images", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.3: image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}`, llm.ErrPictures},
	{"echoed input", "", 422, `{"detail":[{"loc":["body","temperature"],"msg":"Input should be less than 2","input":"prompt is too long"}]}`, llm.ErrInvalid},
	{"max_tokens alone", "", 400, `{"error":{"message":"max_tokens is too large: 99999. This model supports at most 16384 completion tokens.","type":"invalid_request_error","code":"invalid_value"}}`, llm.ErrOutput},

	// The other kinds.
	{"Anthropic overloaded", "anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.ErrOverloaded},
	{"Anthropic overloaded in a stream", "anthropic", 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.ErrOverloaded},
	{"Anthropic server", "anthropic", 500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, llm.ErrServer},
	{"Anthropic key", "anthropic", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, llm.ErrAuth},
	{"Anthropic money", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, llm.ErrQuota},
	{"Anthropic filter", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`, llm.ErrRefused},
	{"Anthropic model", "anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, llm.ErrNotFound},
	{"OpenAI money", "openai", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, llm.ErrQuota},
	{"OpenAI server in a stream", "openai", 200, `{"error":{"message":"The server had an error while processing your request.","type":"server_error"}}`, llm.ErrServer},
	{"Azure filter", "openai", 400, `{"error":{"message":"The response was filtered due to the prompt triggering the content management policy.","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, llm.ErrRefused},
	{"Gemini overloaded", "gemini", 503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, llm.ErrOverloaded},
	{"Gemini rate", "gemini", 429, `{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}`, llm.ErrRateLimited},
	{"Gemini key", "gemini", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, llm.ErrAuth},
	{"DeepSeek money", "", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, llm.ErrQuota},
	{"OpenRouter code in a stream", "", 200, `{"id":"gen-1","error":{"code":429,"message":"slow"},"choices":[]}`, llm.ErrRateLimited},
	{"words in a stream", "", 200, `{"error":"the model is at capacity"}`, llm.ErrOverloaded},
	{"unknown in a stream", "", 200, `{"error":{"message":"oops"}}`, llm.ErrServer},
	{"gateway page", "", 502, "<html>Bad gateway</html>", llm.ErrServer},
	{"gateway timeout", "", 524, "", llm.ErrTimeout},
	{"nested too deep", "", 400, strings.Repeat("[", 300000), llm.ErrInvalid},

	// No failures.
	{"message", "anthropic", 200, `{"type":"message","content":[{"type":"text","text":"prompt is too long"}]}`, ""},
	{"completion", "openai", 200, `{"object":"chat.completion","error":null,"choices":[{"message":{"content":"maximum context length"}}]}`, ""},
	{"empty error", "openai", 200, `{"error":{},"choices":[]}`, ""},
	{"MiniMax success", "minimax", 200, `{"choices":[],"base_resp":{"status_code":0,"status_msg":""}}`, ""},
	{"nothing", "", 204, "", ""},
}

func TestClassify(t *testing.T) {
	for _, test := range classifyTests {
		if got := llm.Classify(test.provider, test.status, []byte(test.body)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		e := llm.Failure(test.provider, test.status, []byte(test.body))
		if (e == nil) != (test.want == "") || e != nil && e.Kind != test.want {
			t.Errorf("%s: Failure gives %v", test.name, e)
		}
	}
}

func TestFailure(t *testing.T) {
	e := llm.Failure("openai", 400, []byte(`{"error":{"message":"This\nis   wrong","type":"invalid_request_error","code":"Bad_Code"}}`))
	e.RequestID = "req_7"
	const want = "openai: invalid request (status 400, Bad_Code, request req_7): This is wrong"
	if e.Error() != want {
		t.Errorf("%q, want %q", e.Error(), want)
	}
	long := llm.Failure("", 400, []byte(`{"error":{"message":"`+strings.Repeat("é", 5000)+`"}}`))
	if n := len(long.Message); n > 700 {
		t.Errorf("a message of %d bytes", n)
	}
}

func TestAPIError(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("summarize: %w", &llm.APIError{Kind: llm.ErrOverflow, Err: cause})
	if !llm.IsOverflow(err) || !errors.Is(err, cause) || errors.Is(err, llm.ErrServer) {
		t.Errorf("%v is not what it is", err)
	}
	if llm.IsOverflow(nil) || llm.IsOverflow(cause) {
		t.Error("no overflow was taken for one")
	}
	for kind, want := range map[llm.Kind]bool{
		llm.ErrRateLimited: true, llm.ErrOverloaded: true, llm.ErrServer: true, llm.ErrTimeout: true, llm.ErrConnection: true,
		llm.ErrOverflow: false, llm.ErrQuota: false, llm.ErrAuth: false, llm.ErrCanceled: false, llm.ErrResponse: false, llm.ErrRefused: false,
	} {
		if got := (&llm.APIError{Kind: kind}).Temporary(); got != want {
			t.Errorf("%s: Temporary() = %v", kind, got)
		}
	}
	if (&llm.APIError{Kind: llm.ErrServer, NoRetry: true}).Temporary() {
		t.Error("the provider said not to ask again")
	}
}

func FuzzClassify(f *testing.F) {
	for _, test := range classifyTests {
		f.Add(test.provider, test.status, test.body)
	}
	f.Fuzz(func(t *testing.T, provider string, status int, body string) {
		kind := llm.Classify(provider, status, []byte(body))
		if status >= 400 && kind == "" {
			t.Error("a status of failure is no failure")
		}
		if e := llm.Failure(provider, status, []byte(body)); (e == nil) != (kind == "") {
			t.Errorf("Failure %v, Classify %q", e, kind)
		}
	})
}
