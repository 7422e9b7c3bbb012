package dialect

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
)

// TestJoinedFigures: what belongs to the prompt is the last round's, what was
// written or paid for is summed, and what nobody knows is the last's.
func TestJoinedFigures(t *testing.T) {
	for _, c := range []struct {
		api                 *Dialect
		first, second, want string
	}{
		{
			Anthropic,
			`{"input_tokens":10,"cache_creation_input_tokens":400,"cache_read_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":400},"output_tokens":20,"server_tool_use":{"web_search_requests":1},"service_tier":"standard"}`,
			`{"input_tokens":12,"cache_creation_input_tokens":50,"cache_read_input_tokens":3400,"cache_creation":{"ephemeral_5m_input_tokens":50},"output_tokens":30,"server_tool_use":{"web_search_requests":2},"service_tier":"priority"}`,
			`{"input_tokens":12,"cache_creation_input_tokens":50,"cache_read_input_tokens":3400,"cache_creation":{"ephemeral_5m_input_tokens":50},"output_tokens":50,"server_tool_use":{"web_search_requests":3},"service_tier":"priority",` +
				`"iterations":[{"type":"message","input_tokens":10,"output_tokens":20,"cache_creation_input_tokens":400,"cache_read_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":400}},` +
				`{"type":"message","input_tokens":12,"output_tokens":30,"cache_creation_input_tokens":50,"cache_read_input_tokens":3400,"cache_creation":{"ephemeral_5m_input_tokens":50}}]}`,
		},
		{
			Chat,
			`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5},"cost":0.5}`,
			`{"prompt_tokens":130,"completion_tokens":30,"total_tokens":160,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":6},"cost":0.25}`,
			`{"prompt_tokens":130,"completion_tokens":50,"total_tokens":180,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":11},"cost":0.75}`,
		},
		{
			Responses,
			`{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}`,
			`{"input_tokens":130,"input_tokens_details":{"cached_tokens":96},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":6},"total_tokens":160}`,
			`{"input_tokens":130,"input_tokens_details":{"cached_tokens":96},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":11},"total_tokens":180}`,
		},
		{
			Gemini,
			`{"promptTokenCount":100,"candidatesTokenCount":20,"thoughtsTokenCount":7,"totalTokenCount":127}`,
			`{"promptTokenCount":130,"cachedContentTokenCount":90,"candidatesTokenCount":30,"totalTokenCount":160}`,
			`{"promptTokenCount":130,"cachedContentTokenCount":90,"candidatesTokenCount":50,"totalTokenCount":187,"thoughtsTokenCount":7}`,
		},
		{Chat, ``, `{"prompt_tokens":1}`, `{"prompt_tokens":1}`},
		{Chat, `{"prompt_tokens":1}`, ``, `{"prompt_tokens":1}`},
		{Chat, `{"prompt_tokens":1,"completion_tokens":2}`, `null`, `{"prompt_tokens":1,"completion_tokens":2}`},
		{Responses, `{"output_tokens":2}`, `{"input_tokens":9,"output_tokens":null}`, `{"input_tokens":9,"output_tokens":2}`},
	} {
		if got := c.api.usageFields.joinUsage(c.first, c.second); got != c.want || !gjson.Valid(got) {
			t.Errorf("%T:\n got %s\nwant %s", c.api.codec, got, c.want)
		}
	}
}

// TestUsage: counts are added, and what a stream says last counts.
func TestUsage(t *testing.T) {
	sums := func(a, b string) string {
		return addCounts(gjson.Parse(a), gjson.Parse(b), countLevels, func(string) bool { return true })
	}
	for _, c := range []struct{ a, b, want string }{
		{`{"n":1,"d":{"x":2},"s":"a"}`, `{"n":2,"d":{"x":3,"y":1},"s":"b","m":null}`, `{"n":3,"d":{"x":5,"y":1},"s":"b","m":null}`},
		{`{"n":1.5}`, `{"n":2}`, `{"n":3.5}`},
		{`{"n":1}`, `{"n":null}`, `{"n":1}`},
	} {
		if got := sums(c.a, c.b); got != c.want {
			t.Errorf("%s and %s = %s, want %s", c.a, c.b, got, c.want)
		}
	}
	// Counts that nest without an end, in both, are not gone through.
	deep := strings.Repeat(`{"a":`, 200_000)
	if got := sums(deep, deep); len(got) < 200_000 {
		t.Errorf("deep counts: %d bytes", len(got))
	}
	if got := native.MergeUsage(`{"in":5,"out":1}`, `{"out":7,"new":2,"none":null}`); got != `{"in":5,"out":7,"new":2}` {
		t.Errorf("over: %s", got)
	}
}
