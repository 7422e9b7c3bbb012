package openai

import "testing"

// TestChatCompatible: what compatible servers take is no mistake, and advice says that OpenAI refuses it.
func TestChatCompatible(t *testing.T) {
	const ask = `{"role":"user","content":"hi"}`
	body := func(tools, messages string) string {
		return `{"model":"m","tools":[{"type":"function","function":{"name":"read"}}` + tools + `],"messages":[` + ask + messages + `,` + ask + `]}`
	}
	for name, c := range map[string]string{
		"a search":         body(`,{"type":"web_search","web_search":{"enable":true}}`, ""),
		"a search of Kimi": body(`,{"type":"builtin_function","function":{"name":"$web_search"}}`, `,{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"builtin_function","function":{"name":"$web_search","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}`),
		"MCP":              body(`,{"type":"mcp","server_label":"notes","server_url":"https://a.example"}`, ""),
		"no calls":         body("", `,{"role":"assistant","content":"so","tool_calls":null}`),
		"an empty list":    body("", `,{"role":"assistant","content":"so","tool_calls":[]}`),
		"only reasoning":   body("", `,{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[]}`),
		"thinking":         body("", `,{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"so"}]}`),
	} {
		problems := Chat{}.Validate([]byte(c))
		for _, p := range problems {
			if !p.Advice || p.Rule != "compatible" {
				t.Errorf("%s: %s", name, p)
			}
		}
		if len(problems) == 0 {
			t.Errorf("%s: nothing says that OpenAI refuses it", name)
		}
	}
	for name, c := range map[string]string{
		"nothing at all":       body("", `,{"role":"assistant","content":null,"tool_calls":null}`),
		"nothing but a list":   body("", `,{"role":"assistant","content":null,"tool_calls":[]}`),
		"thinking of the user": body("", `,{"role":"user","content":[{"type":"thinking","thinking":"hm"}]}`),
	} {
		refused := false
		for _, p := range (Chat{}).Validate([]byte(c)) {
			refused = refused || !p.Advice
		}
		if !refused {
			t.Errorf("%s: not refused", name)
		}
	}
}
