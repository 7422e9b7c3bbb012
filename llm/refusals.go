package llm

import (
	"regexp"
	"strconv"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// sizeRefusal is how a provider refuses a request for a size that is not that of its text, so
// that compacting the text does not help.
type sizeRefusal struct {
	provider string
	status   int
	words    string // in lower case, as in overflowMessages
	kind     Kind
	example  string // a body that the row recognises
}

// sizeRefusals hold under any status; the first row that fits decides.
var sizeRefusals = []sizeRefusal{
	{"anthropic", 400, "many-image requests", ErrPictures, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.3: image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}`},
	{"anthropic", 400, "too many images", ErrPictures, `{"type":"error","error":{"type":"invalid_request_error","message":"Too many images and documents: 102 + 0 > 100"}}`},
	{"anthropic", 400, "image*exceeds*maximum", ErrPictures, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 7000000 bytes > 5242880 bytes"}}`},
	{"anthropic", 400, "image dimensions exceed", ErrPictures, `{"type":"error","error":{"type":"invalid_request_error","message":"At least one of the image dimensions exceed max allowed size: 8000 pixels"}}`},
	{"anthropic", 400, "pdf pages may be provided", ErrPictures, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.2.pdf.source.base64.data: A maximum of 100 PDF pages may be provided."}}`},
	{"openai", 400, "maximum number of images", ErrPictures, `{"error":{"message":"Exceeded the maximum number of images per request: 500.","type":"invalid_request_error"}}`},
	{"vllm", 400, "at most*image(s) may be provided", ErrPictures, `{"object":"error","message":"At most 4 image(s) may be provided in one prompt.","code":400}`},
	{"anthropic", 413, "request exceeds the maximum size", ErrBytes, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`},
	{"gemini", 400, "request payload size exceeds the limit", ErrBytes, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`},
	{"openai", 400, "max_tokens is too large", ErrOutput, `{"error":{"message":"max_tokens is too large: 99999. This model supports at most 16384 completion tokens.","type":"invalid_request_error","code":"invalid_value"}}`},
	{"anthropic", 400, "maximum allowed number of output tokens", ErrOutput, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens for this model"}}`},
	{"openai", 400, "invalid 'max_output_tokens'", ErrOutput, `{"error":{"message":"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 200000 instead.","type":"invalid_request_error","code":"integer_above_max_value"}}`},
	{"deepseek", 400, "invalid max_tokens value", ErrOutput, `{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]","type":"invalid_request_error"}}`},
	{"gemini", 400, "maxoutputtokens value*supported range", ErrOutput, `{"error":{"code":400,"message":"Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive).","status":"INVALID_ARGUMENT"}}`},
}

// fullOutput are refusals that name the window and the answer that was asked for, each with an
// example. An answer that fills the window alone leaves no room for any input.
var fullOutput = []struct {
	pattern func() *regexp.Regexp // with groups window and output
	example string
}{
	{lazyregexp.New(`maximum context length is (?P<window>\d{1,9}) tokens.*?(?P<output>\d{1,9}) in the (?:output|completion)`),
		`{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (3964 of text input, 500 of tool input, 65536 in the output)."}}`},
	{lazyregexp.New(`is too large: (?P<output>\d{1,9})\. this model's maximum context length is (?P<window>\d{1,9})`),
		`{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 16384 tokens and your request has 4000 input tokens (32000 > 16384 - 4000).","code":400}`},
	{lazyregexp.New(`exceed context limit: \d+ \+ (?P<output>\d{1,9}) > (?P<window>\d{1,9})`),
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 90 + 200000 > 200000\"}}"},
}

// sizeKind is the kind of a refusal for another size than that of the text; "" for none.
func (f *failure) sizeKind() Kind {
	for _, row := range sizeRefusals {
		if matches(f.message, row.words) {
			return row.kind
		}
	}
	for _, row := range fullOutput {
		if found := row.pattern().FindStringSubmatch(f.message); found != nil {
			named := func(group string) int {
				n, _ := strconv.Atoi(found[row.pattern().SubexpIndex(group)]) // nine digits at most
				return n
			}
			if named("output") >= named("window") {
				return ErrOutput
			}
		}
	}
	return ""
}
