package hosted

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func TestAuthor(t *testing.T) {
	for _, c := range []struct {
		api, kind, raw string
		want           thread.Author
	}{
		{wire.Responses, "agent_message", `{"author":"` + rootAgent + `/scout","recipient":"` + rootAgent + `"}`, thread.ByAgent},
		{wire.Responses, "agent_message", `{"author":"` + rootAgent + `","recipient":"` + rootAgent + `/scout"}`, ""},
		{wire.Responses, "multi_agent_call_output", `{"call_id":"1"}`, thread.ByAgent},
		{wire.Responses, "multi_agent_call", `{"call_id":"1","agent":{"agent_name":"` + rootAgent + `"}}`, ""},
		{wire.Responses, "web_search_call", `{"agent":{"agent_name":"` + rootAgent + `/scout"}}`, thread.ByAgent},
		{wire.Responses, "program_output", `{"call_id":"1"}`, thread.ByProvider},
		{wire.Responses, "compaction", `{}`, thread.ByCompaction},
		{wire.Anthropic, "web_search_tool_result", `{"tool_use_id":"1"}`, thread.ByProvider},
		{wire.Anthropic, "server_tool_use", `{"id":"1","name":"` + rootAgent + `"}`, ""},
		{wire.Anthropic, "fallback", `{}`, thread.ByProvider},
	} {
		if got := Author(Mark(thread.Opaque{Kind: c.kind, Source: thread.Source{API: c.api, Raw: c.raw}})); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.raw, got, c.want)
		}
	}
	item := thread.Source{API: wire.Responses, Raw: `{"type":"message","role":"assistant","agent":{"agent_name":"` + rootAgent + `/scout"}}`}
	m := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "I am done."}, thread.Text{Text: "The user said no.", Source: item}}}
	all := Unfold([]thread.Message{m})
	if len(all) != 2 || all[0].Text() != "I am done." || all[1].Author() != thread.ByAgent || all[1].Text() != "The user said no." {
		t.Errorf("unfolded: %+v", all)
	}
}
