package hosted

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func TestRows(t *testing.T) {
	for _, r := range rows {
		kind := r.kind
		if kind[0] == '*' {
			kind = "hosted" + kind[1:]
		}
		got := Mark(thread.Opaque{Kind: kind, Source: thread.Source{API: r.api, Raw: r.example}})
		if got.Call != "1" || got.Answers != r.answers || (got.Tool == "") != (r.tool == "") || got.Parent != "" {
			t.Errorf("%s %s: %+v", r.api, kind, got)
		}
	}
}

func TestMark(t *testing.T) {
	for _, c := range []struct {
		api, kind, raw string
		want           thread.Opaque
	}{
		{wire.Anthropic, "server_tool_use", `{"id":"2","name":"bash","caller":{"type":"code_execution_20260120","tool_id":"1"}}`, thread.Opaque{Call: "2", Tool: "bash", Parent: "1"}},
		{wire.Anthropic, "web_search_tool_result", `{"tool_use_id":"2"}`, thread.Opaque{Call: "2", Answers: true}},
		{wire.Anthropic, "server_tool_use", `{"id":7}`, thread.Opaque{}},
		{wire.Anthropic, "novel_tool_use", `{"id":"1","input":{}}`, thread.Opaque{Call: "1"}},
		{wire.Anthropic, "container_upload", `{"id":"1"}`, thread.Opaque{}},
		{wire.Responses, "web_search_call", `{"id":"1"}`, thread.Opaque{}},
		{wire.Chat, "server_tool_use", `{"id":"1"}`, thread.Opaque{}},
	} {
		c.want.Kind, c.want.Source = c.kind, thread.Source{API: c.api, Raw: c.raw}
		if got := Mark(thread.Opaque{Kind: c.kind, Source: c.want.Source}); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.api, c.kind, got, c.want)
		}
	}
	if got := Parent(wire.Responses, `{"type":"function_call","caller":{"type":"program","caller_id":"7"}}`); got != "7" {
		t.Errorf("the parent is %q", got)
	}
	if got := Parent(wire.Responses, `{"type":"function_call","name":"\"caller\""}`); got != "" {
		t.Errorf("the parent is %q", got)
	}
}
