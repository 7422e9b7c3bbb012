package openai

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// responsesShapes are the fields that items must have in an input. Fields that
// the published schema wants but real clients leave out and OpenAI does not miss
// (ids and states of its own items) are not among them.
var responsesShapes = map[string][]responsesField{
	"function_call":           {{"call_id", "string"}, {"name", "string"}, {"arguments", "string"}},
	"function_call_output":    {{"call_id", "string"}, {"output", ""}},
	"custom_tool_call":        {{"call_id", "string"}, {"name", "string"}, {"input", "string"}},
	"custom_tool_call_output": {{"call_id", "string"}, {"output", ""}},
	"local_shell_call":        {{"call_id", "string"}, {"action", "object"}},
	"local_shell_call_output": {{"output", "string"}},
	"shell_call":              {{"call_id", "string"}, {"action", "object"}},
	"shell_call_output":       {{"call_id", "string"}, {"output", "array"}},
	"apply_patch_call":        {{"call_id", "string"}, {"operation", "object"}},
	"apply_patch_call_output": {{"call_id", "string"}, {"status", "string"}},
	"computer_call":           {{"call_id", "string"}},
	"computer_call_output":    {{"call_id", "string"}, {"output", "object"}},
	"tool_search_call":        {{"arguments", ""}},
	"tool_search_output":      {{"tools", "array"}},
	"reasoning":               {{"summary", "array"}},
	"compaction":              {{"encrypted_content", "string"}},
	"compaction_trigger":      nil,
	"item_reference":          {{"id", "string"}},
	"web_search_call":         nil,
	"file_search_call":        {{"id", "string"}, {"queries", "array"}},
	"code_interpreter_call":   {{"id", "string"}, {"container_id", "string"}},
	"image_generation_call":   {{"id", "string"}},
	"mcp_list_tools":          {{"id", "string"}, {"server_label", "string"}, {"tools", "array"}},
	"mcp_call":                {{"id", "string"}, {"server_label", "string"}, {"name", "string"}, {"arguments", "string"}},
	"mcp_approval_request":    {{"id", "string"}, {"server_label", "string"}, {"name", "string"}, {"arguments", "string"}},
	"mcp_approval_response":   {{"approval_request_id", "string"}, {"approve", "bool"}},
}

// responsesPrefixes are what the ids of items begin with; OpenAI says so when
// it refuses others ("Expected an ID that begins with 'fc'").
var responsesPrefixes = map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs"}

// responsesChecked is what the checks across items need to know of one.
type responsesChecked struct {
	at                    int
	typ, role, callID, id string
	encrypted             bool
}

// model reports whether the item was made by the model.
func (i responsesChecked) model() bool {
	switch i.typ {
	case "message":
		return i.role == "assistant"
	case "compaction_trigger", "mcp_approval_response":
		return false
	case "tool_search_output":
		return i.callID == ""
	}
	return !strings.HasSuffix(i.typ, "_output")
}

func (c *responsesChecker) input(input gjson.Result) {
	switch {
	case input.Type == gjson.String:
		return
	case input.Type == gjson.Null:
		if !c.remote && !c.given("prompt") {
			c.problem(0, "input", "required", "give an input, or a history to go on with")
		}
		return
	case !input.IsArray():
		c.problem(input.Index, "input", "type", "want a string or an array of items")
		return
	}
	input.ForEach(func(_, item gjson.Result) bool {
		c.item(item, "input["+strconv.Itoa(len(c.items))+"]")
		return true
	})
	if len(c.items) == 0 && !c.remote && !c.given("prompt") {
		c.problem(input.Index, "input", "required", "the input is empty")
	}
	c.order()
	c.pairs()
}

func (c *responsesChecker) item(item gjson.Result, path string) {
	it := responsesChecked{at: item.Index}
	if !item.IsObject() {
		c.problem(it.at, path, "type", "want an item object")
		c.items = append(c.items, it)
		return
	}
	item.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			it.typ = v.Str
		case "role":
			it.role = v.Str
		case "call_id":
			it.callID = v.Str
			if len(v.Str) > 64 {
				c.problem(it.at, path+".call_id", "call-id", "longer than 64 characters")
			}
		case "approval_request_id":
			it.callID = v.Str
		case "id":
			it.id = v.Str
			if len(v.Str) > 64 {
				c.problem(it.at, path+".id", "item-id", "longer than 64 characters")
			}
		case "encrypted_content":
			it.encrypted = v.Type == gjson.String && v.Str != ""
		}
		return true
	})
	if it.typ == "" && it.role != "" {
		it.typ = "message"
	}
	if it.typ == "local_shell_call_output" && it.callID == "" {
		it.callID = it.id
	}
	c.items = append(c.items, it)

	if prefix := responsesPrefixes[it.typ]; it.id != "" && !strings.HasPrefix(it.id, prefix) {
		c.problem(it.at, path+".id", "item-id", "%q: ids of this type begin with %s; leave it out if you have none", it.id, prefix)
	}
	if it.typ == "message" {
		c.message(item, it, path)
		return
	}
	fields, known := responsesShapes[it.typ]
	if !known {
		if it.typ == "" {
			c.problem(it.at, path+".type", "required", "name the type of the item")
		} else {
			c.advice(it.at, path+".type", "item-type", "%q is no item type that is published", it.typ)
		}
		return
	}
	c.required(item, it.at, path, fields)
	switch it.typ {
	case "function_call", "custom_tool_call":
		c.itemName(item, it, path)
	case "function_call_output", "custom_tool_call_output":
		c.output(item.Get("output"), it, path+".output")
	case "local_shell_call_output":
		if it.callID == "" {
			c.problem(it.at, path+".call_id", "required", "name the call that it answers")
		}
	case "shell_call":
		if v := item.Get("action"); v.IsObject() && !v.Get("commands").IsArray() {
			c.problem(it.at, path+".action.commands", "required", "want an array of commands")
		}
	case "apply_patch_call_output":
		if s := item.Get("status").Str; s != "" && s != "completed" && s != "failed" {
			c.problem(it.at, path+".status", "value", "want completed or failed, got %q", s)
		}
	case "computer_call":
		if !item.Get("action").IsObject() && !item.Get("actions").IsArray() {
			c.problem(it.at, path+".action", "required", "give an action, or an array of actions")
		}
	case "computer_call_output":
		c.screenshot(item.Get("output"), it, path+".output")
	case "reasoning":
		c.reasoning(item, it, path)
	case "item_reference":
		if !c.stored {
			c.advice(it.at, path, "item-reference", "store is false: the item is only found when an earlier request stored it; send the item itself")
		}
	}
}

func (c *responsesChecker) itemName(item gjson.Result, it responsesChecked, path string) {
	if name := item.Get("name"); name.Type == gjson.String {
		c.name(it.at, path+".name", name.Str)
	}
}

func (c *responsesChecker) reasoning(item gjson.Result, it responsesChecked, path string) {
	n := 0
	item.Get("summary").ForEach(func(_, part gjson.Result) bool {
		if part.Get("type").Str != "summary_text" || part.Get("text").Type != gjson.String {
			c.problem(it.at, path+".summary["+strconv.Itoa(n)+"]", "content-type", "want {type: summary_text, text}")
		}
		n++
		return true
	})
	if !c.stored && !it.encrypted {
		c.advice(it.at, path+".encrypted_content", "reasoning-encrypted",
			"nothing is stored, so reasoning is lost without its encrypted content; ask for it with include: [reasoning.encrypted_content]")
	}
}

func (c *responsesChecker) screenshot(output gjson.Result, it responsesChecked, path string) {
	if !output.IsObject() {
		return // reported as a missing field or a wrong type
	}
	if output.Get("type").Str != "computer_screenshot" {
		c.problem(it.at, path+".type", "content-type", "want computer_screenshot")
	}
	if output.Get("image_url").Str == "" && output.Get("file_id").Str == "" {
		c.problem(it.at, path+".image_url", "required", "give an image_url or a file_id")
	}
}

func (c *responsesChecker) output(output gjson.Result, it responsesChecked, path string) {
	switch {
	case output.Type == gjson.String || output.Type == gjson.Null: // null is reported as missing
	case output.IsArray():
		n := 0
		output.ForEach(func(_, part gjson.Result) bool {
			c.part(part, it.at, path+"["+strconv.Itoa(n)+"]", "tool")
			n++
			return true
		})
	default:
		c.problem(it.at, path, "type", "want a string or an array of content parts")
	}
}

func (c *responsesChecker) message(item gjson.Result, it responsesChecked, path string) {
	switch it.role {
	case "user", "system", "developer", "assistant":
	default:
		c.problem(it.at, path+".role", "role", "want user, assistant, system or developer, got %q", it.role)
		return
	}
	content := item.Get("content")
	switch {
	case content.Type == gjson.String:
	case content.Type == gjson.Null:
		c.problem(it.at, path+".content", "required", "this field is missing")
	case !content.IsArray():
		c.problem(it.at, path+".content", "type", "want a string or an array of content parts")
	default:
		n := 0
		content.ForEach(func(_, part gjson.Result) bool {
			c.part(part, it.at, path+".content["+strconv.Itoa(n)+"]", it.role)
			n++
			return true
		})
		if n == 0 {
			c.problem(it.at, path+".content", "empty-content", "the array is empty; leave the message out")
		}
	}
}

// part checks a content part of a message of the role, or of a result ("tool").
func (c *responsesChecker) part(part gjson.Result, at int, path, role string) {
	if !part.IsObject() {
		c.problem(at, path, "type", "want a content part object")
		return
	}
	kind := part.Get("type").Str
	output := kind == "output_text" || kind == "refusal"
	switch kind {
	case "":
		c.problem(at, path+".type", "required", "name the type of the content part")
		return
	case "output_text", "refusal", "input_text", "input_image", "input_file", "input_audio":
		if output != (role == "assistant") {
			c.problem(at, path+".type", "content-type", "%s cannot stand in a message of the role %s", kind, role)
			return
		}
	case "text", "image_url", "file": // the types of Chat Completions
		c.problem(at, path+".type", "content-type", "%q is not a type of this API; want input_… or output_text", kind)
		return
	default:
		c.advice(at, path+".type", "content-type", "%q is no content type that is published", kind)
		return
	}
	switch kind {
	case "output_text", "input_text":
		c.required(part, at, path, []responsesField{{"text", "string"}})
	case "refusal":
		c.required(part, at, path, []responsesField{{"refusal", "string"}})
	case "input_image":
		if part.Get("image_url").Str == "" && part.Get("file_id").Str == "" {
			c.problem(at, path+".image_url", "required", "give an image_url (as a string) or a file_id")
		}
	case "input_file":
		if part.Get("file_id").Str == "" && part.Get("file_data").Str == "" && part.Get("file_url").Str == "" {
			c.problem(at, path+".file_id", "required", "give one of file_id, file_data and file_url")
		}
	case "input_audio":
		c.required(part, at, path, []responsesField{{"input_audio", "object"}})
	}
}
