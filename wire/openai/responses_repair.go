package openai

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// repairItems makes recorded items, separated by commas, fit for the API. Clients keep
// items in files that no request ever held: pictures without an address, made-up or
// repeated ids, objects as outputs. Such ids are removed, and a placeholder stands for
// what cannot be shown. Items of a request are never repaired: they stay as the caller
// sent them.
func (w *responsesWriter) repairItems(text string) string {
	var items []string
	changed := false
	for item := range rawjson.Items(gjson.Parse("[" + text + "]")) {
		fixed := w.repairedItem(item)
		changed = changed || fixed != item.Raw
		items = append(items, fixed)
	}
	if !changed {
		return text
	}
	return strings.Join(items, ",")
}

// responsesIDs are the prefixes of ids, and responsesNeedID the items that must have one.
var (
	responsesIDs    = map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs"}
	responsesNeedID = []string{
		"item_reference", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_list_tools", "mcp_call", "mcp_approval_request",
	}
	// responsesEmpty are the fields that hold the arguments of calls, and their values where there are none.
	responsesEmpty = map[string][2]string{"function_call": {"arguments", `"{}"`}, "custom_tool_call": {"input", `""`}, "tool_search_call": {"arguments", "{}"}}
)

func (w *responsesWriter) repairedItem(item gjson.Result) string {
	if !item.IsObject() {
		return item.Raw
	}
	out, kind := item.Raw, item.Get("type").Str
	if kind == "" && item.Get("role").Exists() {
		kind = "message"
	}
	if id := item.Get("id").Str; id != "" && kind != "item_reference" {
		switch needed := slices.Contains(responsesNeedID, kind); {
		case strings.HasPrefix(id, responsesIDs[kind]) && len(id) <= 64 && !w.ids[id]:
		case needed:
			// The API wants one of these; any that is free does.
			for n := 2; w.ids[id] || len(id) > 64; n++ {
				id = responsesIDs[kind] + "item_" + strconv.Itoa(n)
			}
			out = jsonedit.Set(out, "id", rawjson.Quote(id))
		default:
			out = jsonedit.Delete(out, "id")
		}
		if w.ids == nil {
			w.ids = map[string]bool{}
		}
		w.ids[id] = true
	}
	if name := item.Get("name").Str; name != "" && (kind == "function_call" || kind == "custom_tool_call") && fittedName(name) != name {
		out = jsonedit.Set(out, "name", rawjson.Quote(fittedName(name)))
	}
	if arguments, isCall := responsesEmpty[kind]; isCall && item.Get(arguments[0]).Type == gjson.Null {
		out = jsonedit.Set(out, arguments[0], arguments[1])
	}
	if output := item.Get("output"); output.IsObject() && (kind == "function_call_output" || kind == "custom_tool_call_output") {
		return jsonedit.Set(out, "output", rawjson.Quote(responsesSaid(output)))
	}
	model := item.Get("role").Str == "assistant"
	for _, list := range []string{"content", "output"} {
		n := 0
		for part := range rawjson.Items(item.Get(list)) {
			if text := responsesRepairedPart(part, model); text != "" {
				out = jsonedit.Set(out, list+"."+strconv.Itoa(n), text)
			}
			n++
		}
	}
	return out
}

// responsesSaid is the text of an output that is an object: OpenAI takes only a string or
// a list.
func responsesSaid(output gjson.Result) string {
	for _, name := range []string{"text", "content"} {
		if v := output.Get(name); v.Type == gjson.String {
			return v.Str
		}
	}
	return output.Raw
}

// responsesRepairedPart returns what to send for a content part that OpenAI would refuse:
// a picture or a file without content, or any input part in a message of the model. It
// is "" for all others.
func responsesRepairedPart(part gjson.Result, model bool) string {
	kind, said := part.Get("type").Str, "input_text"
	refused := model
	switch kind {
	case "input_text":
		if model {
			return responsesText("output_text", part.Get("text").Str)
		}
		return ""
	case "input_image":
		refused = refused || part.Get("image_url").Str == "" && part.Get("file_id").Str == ""
	case "input_file":
		refused = refused || part.Get("file_id").Str == "" && part.Get("file_data").Str == "" && part.Get("file_url").Str == ""
	case "input_audio":
	default:
		return ""
	}
	if !refused {
		return ""
	}
	if model {
		said = "output_text"
	}
	m, _ := responsesContentPart(part, thread.Source{}).(thread.Media)
	return responsesText(said, media.Placeholder(m))
}

// responsesUniqueIDs gives a new id to each call whose id an earlier call has, and to the
// results that follow it. Only recordings hold such calls.
func responsesUniqueIDs(messages []thread.Message) []thread.Message {
	used, renamed := map[string]bool{}, map[string]string{}
	out := messages
	for i := range messages {
		for k, part := range messages[i].Parts {
			var now thread.Part
			switch p := part.(type) {
			case thread.ToolCall:
				delete(renamed, p.ID)
				if !used[p.ID] {
					used[p.ID] = true
					continue
				}
				for n := 2; ; n++ {
					if id := p.ID + "\x00" + strconv.Itoa(n); !used[id] {
						used[id], renamed[p.ID], p.ID = true, id, id
						break
					}
				}
				p.Source = thread.Source{}
				now = p
			case thread.ToolResult:
				id, ok := renamed[p.CallID]
				if !ok {
					continue
				}
				p.CallID, p.Source = id, thread.Source{}
				now = p
			default:
				continue
			}
			if &out[0] == &messages[0] {
				out = slices.Clone(messages)
			}
			if out[i].Frame != nil || &out[i].Parts[0] == &messages[i].Parts[0] {
				out[i].Frame, out[i].Parts = nil, slices.Clone(out[i].Parts)
			}
			out[i].Parts[k] = now
		}
	}
	return out
}
