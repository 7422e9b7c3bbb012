package anthropic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// Pieces that the rules below are written with.
const (
	hi     = `{"role":"user","content":"hi"}`
	ok     = `{"role":"assistant","content":"ok"}`
	callA  = `{"type":"tool_use","id":"a","name":"t","input":{}}`
	callB  = `{"type":"tool_use","id":"b","name":"t","input":{}}`
	giveA  = `{"type":"tool_result","tool_use_id":"a","content":"1"}`
	giveB  = `{"type":"tool_result","tool_use_id":"b","content":"2"}`
	think  = `{"type":"thinking","thinking":"","signature":"s"}`
	text   = `{"type":"text","text":"x"}`
	marked = `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	long   = `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`
	sealed = `{"type":"compaction","content":"c","signature":"s"}`
	tool   = `"tools":[{"name":"t","input_schema":{"type":"object"}}]`
	goesOn = `"thread":{"type":"continue","previous_message_id":"msg_1"}`
	budget = `"thinking":{"type":"enabled","budget_tokens":1024}`
	called = `{"type":"tool_use","id":"a","name":"t","input":{},"caller":{"type":"code_execution_20260120","tool_id":"s1"}}`
	novel  = `{"type":"novel_tool_use","id":"n1","input":{}}`
	search = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`
	found  = `{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`
)

func user(blocks ...string) string      { return message("user", blocks...) }
func assistant(blocks ...string) string { return message("assistant", blocks...) }
func message(role string, blocks ...string) string {
	return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
}

// chat is a request with the given messages; more holds further members.
func chat(more string, messages ...string) string {
	if more != "" {
		more += ","
	}
	return `{"model":"m","max_tokens":2000,` + more + `"messages":[` + strings.Join(messages, ",") + `]}`
}

func edits(list ...string) string {
	return `"context_management":{"edits":[` + strings.Join(list, ",") + `]}`
}

const (
	clearThinking = `{"type":"clear_thinking_20251015"}`
	clearTools    = `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":5}}`
)

// Each row breaks exactly one rule, and its twin none.
var ruleTests = []struct{ rule, path, bad, good string }{
	{"json", "body", `{"model":"m"`, chat("", hi)},
	{"json", "body", `[]`, chat("", hi)},
	{"duplicate-member", "model", chat(`"model":"m"`, hi), chat("", hi)},
	{"required", "model", `{"max_tokens":1,"messages":[` + hi + `]}`, `{"anthropic_version":"bedrock-2023-05-31","max_tokens":1,"messages":[` + hi + `]}`},
	{"required", "max_tokens", `{"model":"m","messages":[` + hi + `]}`, chat("", hi)},
	{"required", "max_tokens", `{"model":"m","max_tokens":1.5,"messages":[` + hi + `]}`, chat("", hi)},
	{"required", "messages", `{"model":"m","max_tokens":1}`, chat("", hi)},
	{"required", "messages", chat(""), chat("", hi)},

	{"role", "messages[1].role", chat("", hi, `{"role":"tool","content":"x"}`), chat("", hi, `{"role":"system","content":"x"}`)},
	{"first-user", "messages[0].role", chat("", ok, hi), chat("", assistant(sealed), hi)},
	{"first-user", "messages[0].role", chat("", `{"role":"system","content":"x"}`, hi), chat("", hi, ok, hi)},
	{"block", "messages[0].content", chat("", `{"role":"user"}`), chat("", hi)},
	{"block", "messages[0].content[0]", chat("", user(`"x"`)), chat("", user(text))},
	{"block", "messages[0].content[0]", chat("", user(`{"text":"x"}`)), chat("", user(`{"type":"new_in_2031"}`))},
	{"block", "messages[0].content[0].text", chat("", user(`{"type":"text"}`)), chat("", user(text))},
	{"block", "system", chat(`"system":{}`, hi), chat(`"system":"x"`, hi)},
	{"block", "system[0]", chat(`"system":[{"type":"image"}]`, hi), chat(`"system":[`+text+`]`, hi)},
	{"empty-text", "system[0]", chat(`"system":[{"type":"text","text":" "}]`, hi), chat(`"system":[`+text+`]`, hi)},
	{"empty-text", "messages[0].content[1].text", chat("", user(text, `{"type":"text","text":"\n"}`)), chat("", user(text, text))},
	{"empty-text", "messages[2].content[0].content[0].text",
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}`)),
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","content":""}`))},
	{"empty-content", "messages[0].content", chat("", `{"role":"user","content":""}`), chat("", hi)},
	{"empty-content", "messages[1].content", chat("", hi, assistant(), hi), chat("", hi, assistant())},
	{"trailing-whitespace", "messages[1].content", chat("", hi, `{"role":"assistant","content":"so "}`), chat("", hi, `{"role":"assistant","content":"so"}`)},
	{"trailing-whitespace", "messages[1].content", chat("", hi, assistant(`{"type":"text","text":"so\n"}`)), chat("", hi, assistant(`{"type":"text","text":"so\n"}`), hi)},
	{"block-role", "messages[0].content[0]", chat(tool, user(callA)), chat(tool, hi, assistant(callA), user(giveA))},
	{"block-role", "messages[1].content[0]", chat("", hi, assistant(`{"type":"search_result"}`), hi), chat("", user(`{"type":"search_result"}`))},
	{"block-role", "messages[2].content[0].content[0]",
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","content":[`+callB+`]}`)),
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","content":[`+text+`]}`))},

	{"tool-pairing", "messages[1].content[0]", chat(tool, hi, assistant(callA), hi), chat(tool, hi, assistant(callA), user(giveA, text))},
	{"tool-pairing", "messages[1].content[0]", chat(tool, hi, assistant(callA)), chat(tool, hi, assistant(callA), user(giveA))},
	{"tool-pairing", "messages[1].content[1]", chat(tool, hi, assistant(callA, callB), user(giveA)), chat(tool, hi, assistant(callA, callB), user(giveB, giveA))},
	{"tool-orphan", "messages[0].content[0]", chat(tool, user(giveA)), chat(goesOn, user(giveA))},
	{"thread", "thread", chat(`"thread":"create"`, hi), chat(`"thread":{"type":"create"}`, hi)},
	{"thread", "thread", chat(`"thread":{"type":"continue"}`, hi), chat(goesOn, hi)},
	{"thread", "thread", chat(`"thread":{"type":"fork"}`, hi), chat(`"thread":null`, hi)},
	{"thread-fields", "system", chat(goesOn+`,"system":"x"`, hi), chat(`"thread":{"type":"create"},"system":"x"`, hi)},
	{"thread-fields", "tools", chat(goesOn+`,`+tool, hi), chat(goesOn+`,"tool_choice":{"type":"any"}`, hi)},
	{"required", "messages", chat(`"thread":{"type":"create"}`), chat(goesOn)},
	{"first-user", "messages[0].role", chat("", `{"role":"system","content":"x"}`, hi), chat(goesOn, `{"role":"system","content":"x"}`, hi)},
	{"tool-orphan", "messages[4].content[0]", chat(tool, hi, assistant(callA), user(giveA), ok, user(giveA)), chat(tool, hi, assistant(callA), user(giveA), ok, hi)},
	{"tool-duplicate-result", "messages[2].content[1]", chat(tool, hi, assistant(callA), user(giveA, giveA)), chat(tool, hi, assistant(callA), user(giveA))},
	{"tool-order", "messages[2].content[1]", chat(tool, hi, assistant(callA), user(text, giveA)), chat(tool, hi, assistant(callA), user(giveA, text))},
	{"tool-order", "messages[2].content[2]", chat(tool, hi, assistant(callA, callB), user(giveA, text, giveB)), chat(tool, hi, assistant(callA, callB), user(giveA, giveB, text))},
	{"tool-id-unique", "messages[3].content[0].id", chat(tool, hi, assistant(callA), user(giveA), assistant(callA), user(giveA)), chat(tool, hi, assistant(callA), user(giveA), assistant(callB), user(giveB))},
	{"tool-id-unique", "messages[1].content[1].id", chat(tool, hi, assistant(callA, callA), user(giveA)), chat(tool, hi, assistant(callA, callB), user(giveA, giveB))},
	{"tool-name", "messages[1].content[0].name", chat(tool, hi, assistant(strings.Replace(callA, `"t"`, `"t.x"`, 1)), user(giveA)), chat(tool, hi, assistant(callA), user(giveA))},
	{"tool-input", "messages[1].content[0].input", chat(tool, hi, assistant(strings.Replace(callA, `{}`, `"{}"`, 1)), user(giveA)), chat(tool, hi, assistant(callA), user(giveA))},
	{"error-content", "messages[2].content[0].content[0]",
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"u"}}]}`)),
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","is_error":false,"content":[{"type":"image","source":{"type":"url","url":"u"}}]}`))},
	{"error-content", "messages[2].content[0].content",
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","is_error":true}`)),
		chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a"}`))},
	{"server-tool-pairing", "messages[1].content[0]", chat("", hi, assistant(search, text), hi), chat("", hi, assistant(search, found, text), hi)},
	{"server-tool-pairing", "messages[1].content[0]", chat("", hi, assistant(found, text), hi), chat("", hi, assistant(text, search))},
	{"server-tool-pairing", "messages[1].content[0]", chat("", hi, assistant(novel, text), hi), chat("", hi, assistant(novel, `{"type":"novel_tool_result","tool_use_id":"n1"}`, text), hi)},
	{"server-tool-pairing", "messages[1].content[0]", chat("", hi, assistant(search, text), hi, ok, hi, ok, hi), chat("", hi, assistant(search, text), assistant(found), hi)},
	{"server-tool-pairing", "messages[3].content[0]", chat("", hi, assistant(search, found), hi, assistant(found), hi), chat(tool, hi, assistant(search, callA), user(giveA), assistant(found, text), hi)},
	{"caller", "messages[1].content[0].caller", chat(tool, hi, assistant(called, text), user(giveA)), chat(tool, hi, assistant(search, called), user(giveA))},
	{"caller", "messages[1].content[0].caller", chat(tool, hi, assistant(`{"type":"server_tool_use","id":"s2","name":"web_search","input":{},"caller":{"type":"code_execution_20260120","tool_id":"s1"}}`, `{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}`, text), hi), chat(tool, hi, assistant(search, `{"type":"server_tool_use","id":"s2","name":"web_search","input":{},"caller":{"type":"code_execution_20260120","tool_id":"s1"}}`, `{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}`, found, text), hi)},
	{"caller-results", "messages[2].content", chat(tool, hi, assistant(search, called), user(giveA, text)), chat(tool, hi, assistant(search, found, called), user(giveA, text))},

	{"thinking-signature", "messages[1].content[0]", chat("", hi, assistant(`{"type":"thinking","thinking":"x"}`, text), hi), chat("", hi, assistant(think, text), hi)},
	{"thinking-signature", "messages[1].content[0]", chat("", hi, assistant(`{"type":"thinking","signature":"x"}`, text), hi), chat("", hi, assistant(think, text), hi)},
	{"redacted-data", "messages[1].content[0].data", chat("", hi, assistant(`{"type":"redacted_thinking","data":""}`, text), hi), chat("", hi, assistant(`{"type":"redacted_thinking","data":"d"}`, text), hi)},
	{"thinking-first", "messages[1].content[0]",
		chat(budget+","+tool, hi, assistant(callA), user(giveA), assistant(think, callB), user(giveB)),
		chat(budget+","+tool, hi, assistant(think, callA), user(giveA), assistant(callB), user(giveB))},
	{"thinking-first", "messages[1].content[0]",
		chat(budget+","+tool, hi, assistant(text, think, callA), user(giveA)),
		chat(budget+","+tool, hi, assistant(text, callA), user(giveA))},
	{"thinking-first", "messages[3].content[0]",
		chat(budget+","+tool, hi, assistant(think, callA), user(giveA), assistant(callB, think), user(giveB)),
		chat(strings.Replace(budget, "enabled", "adaptive", 1)+","+tool, hi, assistant(think, callA), user(giveA), assistant(callB, think), user(giveB))},
	{"thinking-budget", "thinking.budget_tokens", chat(`"thinking":{"type":"enabled","budget_tokens":100}`, hi), chat(budget, hi)},
	{"thinking-sampling", "temperature", chat(budget+`,"temperature":0.5`, hi), chat(budget+`,"temperature":1`, hi)},
	{"thinking-sampling", "top_k", chat(budget+`,"top_k":5`, hi), chat(`"top_k":5`, hi)},
	{"thinking-sampling", "top_p", chat(budget+`,"top_p":0.5`, hi), chat(budget+`,"top_p":0.97`, hi)},
	{"thinking-tool-choice", "tool_choice", chat(budget+","+tool+`,"tool_choice":{"type":"any"}`, hi), chat(budget+","+tool+`,"tool_choice":{"type":"auto"}`, hi)},
	{"sampling", "temperature", chat(`"temperature":1.5`, hi), chat(`"temperature":0.5`, hi)},

	{"tool", "tools", chat(`"tools":{}`, hi), chat(`"tools":[]`, hi)},
	{"tool", "tools[0]", chat(`"tools":[1]`, hi), chat(tool, hi)},
	{"tool-name", "tools[0].name", chat(`"tools":[{"name":"a b","input_schema":{"type":"object"}}]`, hi), chat(`"tools":[{"type":"mcp_toolset","mcp_server_name":"s"},{"type":"browser_toolset_20260801"}]`, hi)},
	{"tool-name", "tools[0].name", chat(`"tools":[{"name":"`+strings.Repeat("x", 129)+`","input_schema":{"type":"object"}}]`, hi), chat(`"tools":[{"name":"`+strings.Repeat("x", 128)+`","input_schema":{"type":"object"}}]`, hi)},
	{"tool-unique", "tools[1].name", chat(`"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","type":"x_2025"}]`, hi), chat(`"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"b","type":"x_2025"}]`, hi)},
	{"tool-schema", "tools[0].input_schema", chat(`"tools":[{"name":"a"}]`, hi), chat(`"tools":[{"name":"a","type":"memory_20250818"}]`, hi)},
	{"tool-schema", "tools[0].input_schema", chat(`"tools":[{"name":"a","type":"custom","input_schema":{"type":"string"}}]`, hi), chat(tool, hi)},
	{"tool-choice", "tool_choice", chat(`"tool_choice":{"type":"auto"}`, hi), chat(tool+`,"tool_choice":{"type":"auto"}`, hi)},
	{"tool-choice", "tool_choice.name", chat(tool+`,"tool_choice":{"type":"tool","name":"u"}`, hi), chat(tool+`,"tool_choice":{"type":"tool","name":"t"}`, hi)},

	{"cache-limit", "messages[0].content[4].cache_control", chat("", user(marked, marked, marked, marked, marked)), chat("", user(marked, marked, marked, marked))},
	{"cache-limit", "cache_control", chat(`"cache_control":{"type":"ephemeral"}`, user(marked, marked, marked, marked)), chat(`"cache_control":{"type":"ephemeral"}`, user(marked, marked, marked))},
	{"cache-order", "messages[0].content[1].cache_control", chat("", user(marked, long)), chat("", user(long, marked))},
	{"cache-order", "messages[0].content[0].cache_control", chat(`"system":[`+marked+`]`, user(long)), chat(`"system":[`+long+`]`, user(marked))},
	{"cache-order", "system[0].cache_control",
		chat(`"system":[`+long+`],"tools":[{"name":"a","type":"x_1","cache_control":{"type":"ephemeral"}}]`, hi),
		chat(`"system":[`+marked+`],"tools":[{"name":"a","type":"x_1","cache_control":{"type":"ephemeral","ttl":"1h"}}]`, hi)},
	{"cache-ttl", "messages[0].content[0].cache_control", chat("", user(strings.Replace(long, "1h", "2h", 1))), chat("", user(long))},
	{"cache-thinking", "messages[1].content[0].cache_control", chat("", hi, assistant(strings.Replace(think, `}`, `,"cache_control":{"type":"ephemeral"}}`, 1), text), hi), chat("", hi, assistant(think, marked), hi)},
	{"cache-deferred", "tools[0]", chat(`"tools":[{"name":"a","type":"x_1","defer_loading":true,"cache_control":{"type":"ephemeral"}}]`, hi), chat(`"tools":[{"name":"a","type":"x_1","defer_loading":true,"cache_control":null}]`, hi)},

	{"media-type", "messages[0].content[0].source", chat("", user(`{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"x"}}`)), chat("", user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"x"}}`))},
	{"media-type", "messages[0].content[0].source", chat("", user(`{"type":"document","source":{"type":"base64","media_type":"text/html","data":"x"}}`)), chat("", user(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}}`))},
	{"media-source", "messages[0].content[0].source", chat("", user(`{"type":"image","source":{"type":"text","media_type":"text/plain","data":"x"}}`)), chat("", user(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`))},
	{"media-source", "messages[0].content[0].source", chat("", user(`{"type":"image","source":{"type":"url"}}`)), chat("", user(`{"type":"image","source":{"type":"file","file_id":"f"}}`))},

	{"context-order", "context_management.edits[1]", chat(`"thinking":{"type":"adaptive"},`+edits(clearTools, clearThinking), hi), chat(`"thinking":{"type":"adaptive"},`+edits(clearThinking, clearTools), hi)},
	{"context-thinking", "context_management.edits[0]", chat(edits(clearThinking), hi), chat(edits(clearTools), hi)},
	{"context-keep", "context_management.edits[0].keep",
		chat(`"thinking":{"type":"adaptive"},`+edits(`{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":0}}`), hi),
		chat(`"thinking":{"type":"adaptive"},`+edits(`{"type":"clear_thinking_20251015","keep":"all"}`), hi)},
	{"context-trigger", "context_management.edits[0].trigger", chat(edits(strings.Replace(clearTools, "tool_uses\"", "turns\"", 1)), hi), chat(edits(clearTools), hi)},
	{"context-trigger", "context_management.edits[0].trigger",
		chat(edits(`{"type":"compact_20260112","trigger":{"type":"input_tokens","value":49999}}`), hi),
		chat(edits(`{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}`), hi)},
	{"compaction-content", "messages[1].content[0].content", chat("", hi, assistant(`{"type":"compaction","content":""}`, text), hi), chat("", hi, assistant(`{"type":"compaction","content":null}`, text), hi)},
	{"compaction-misplaced", "messages[1].content[0]", chat("", hi, assistant(sealed), hi), chat("", assistant(sealed), ok, hi)},
	{"compaction-fields", "messages[0].content[0]", chat("", assistant(strings.Replace(sealed, `}`, `,"citations":null}`, 1)), hi), chat("", assistant(sealed), hi)},
	{"compaction-fields", "messages[0].content[0]", chat("", assistant(strings.Replace(sealed, `}`, `,"cache_control":null}`, 1)), hi), chat("", assistant(strings.Replace(sealed, `}`, `,"tool_changes":[]}`, 1)), hi)},
	{"compaction-combination", "context_management", chat(edits(clearTools), assistant(sealed), hi), chat(edits(clearTools), assistant(`{"type":"compaction","content":"c"}`), hi)},
	{"compaction-combination", "stop_sequences", chat(`"compaction":{"type":"summarize"},"stop_sequences":["x"]`, hi), chat(`"stop_sequences":["x"]`, hi)},
	{"compaction-combination", "tool_choice", chat(`"compaction":{"type":"summarize"},"tool_choice":{"type":"any"},`+tool, hi), chat(`"compaction":{"type":"summarize"},"tool_choice":{"type":"auto"},`+tool, hi)},
	{"compaction-combination", "output_config.format", chat(`"compaction":{"type":"summarize"},"output_config":{"format":{}}`, hi), chat(`"compaction":{"type":"summarize"},"output_config":{"effort":"low"}`, hi)},
	{"compaction-instructions", "compaction.instructions", chat(`"compaction":{"type":"summarize","instructions":"`+strings.Repeat("é", 16385)+`"}`, hi), chat(`"compaction":{"type":"summarize","instructions":"`+strings.Repeat("é", 16384)+`"}`, hi)},
}

func TestRules(t *testing.T) {
	for _, test := range ruleTests {
		t.Run(test.rule+" "+test.path, func(t *testing.T) {
			got := problems(test.bad)
			if len(got) != 1 || got[0].Rule != test.rule || got[0].Path != test.path {
				t.Errorf("want %s at %s, got %v\n%s", test.rule, test.path, got, test.bad)
			}
			if got := problems(test.good); len(got) != 0 {
				t.Errorf("the twin is valid, got %v\n%s", got, test.good)
			}
		})
	}
}

// problems leaves advice out.
func problems(body string) []wire.Problem {
	return slices.DeleteFunc(anthropic.Codec{}.Validate([]byte(body)), func(p wire.Problem) bool { return p.Advice })
}

// Two signed blocks break two rules at once: one of them is never first.
func TestTwoSignedCompactionBlocks(t *testing.T) {
	var rules []string
	for _, p := range problems(chat("", assistant(sealed, sealed), hi)) {
		rules = append(rules, p.Rule)
	}
	if !slices.Equal(rules, []string{"compaction-misplaced", "compaction-single"}) {
		t.Errorf("got %v", rules)
	}
}

// A call and its result with the same bad id are both named.
func TestBadCallID(t *testing.T) {
	body := chat(tool, hi, assistant(callA), user(giveA))
	got := problems(strings.ReplaceAll(body, `"a"`, `"a|1"`))
	if len(got) != 2 || got[0].Rule != "tool-id" || got[1].Rule != "tool-id" {
		t.Errorf("got %v", got)
	}
}

// An empty text with a mark breaks the rule on texts and that on marks.
func TestMarkedEmptyText(t *testing.T) {
	got := problems(chat("", user(`{"type":"text","text":"","cache_control":{"type":"ephemeral"}}`)))
	if len(got) != 2 || got[0].Rule != "empty-text" || got[1].Rule != "cache-empty" {
		t.Errorf("got %v", got)
	}
}

func TestAdvice(t *testing.T) {
	for rule, body := range map[string]string{
		"prefill":         chat("", hi, ok),
		"tools-missing":   chat("", hi, assistant(callA), user(giveA)),
		"thinking-budget": chat(`"thinking":{"type":"enabled","budget_tokens":2000}`, hi),
	} {
		got := anthropic.Codec{}.Validate([]byte(body))
		if len(got) != 1 || got[0].Rule != rule || !got[0].Advice {
			t.Errorf("%s: want advice only, got %v", rule, got)
		}
	}
}

func TestTooLarge(t *testing.T) {
	pad := strings.Repeat(" ", 32<<20)
	got := problems(chat("", hi) + pad)
	if len(got) != 1 || got[0].Rule != "size" {
		t.Errorf("got %v", got)
	}
}

// Problems come in document order, whatever order the members have.
func TestDocumentOrder(t *testing.T) {
	body := `{"messages":[{"role":"user","content":""}],"system":[{"type":"text","text":""}],"model":"m","max_tokens":-1}`
	var paths []string
	for _, p := range problems(body) {
		paths = append(paths, p.Path)
	}
	if want := []string{"messages[0].content", "system[0]", "max_tokens"}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
}

func FuzzValidate(f *testing.F) {
	for _, test := range ruleTests[:20] {
		f.Add([]byte(test.bad))
		f.Add([]byte(test.good))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range (anthropic.Codec{}).Validate(body) {
			if p.Path == "" || p.Rule == "" || p.Message == "" {
				t.Errorf("a problem that says nothing: %+v", p)
			}
		}
	})
}
