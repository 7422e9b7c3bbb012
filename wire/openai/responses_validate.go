package openai

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

// The shapes of parts of the body. Fields that the published schema demands but OpenAI does
// without (ids and states of its own items, which real clients leave out) are not required.
var (
	anything  = &shape.Shape{}
	anyArray  = &shape.Shape{Is: shape.Array}
	anyObject = &shape.Shape{Is: shape.Object}

	// The pattern of a function's name is published for both APIs, the length for
	// Chat Completions; a longer name may pass here, but not there.
	responsesNameShape = &shape.Shape{Is: shape.String, Rules: []shape.Rule{
		shape.Must("", "name", "want 1 to 64 letters, digits, _ and -", func(v gjson.Result) bool { return shape.IsName(v.Str, 64) }),
	}}
	responsesToolShapes = map[string]*shape.Shape{
		"function":    shape.Members(shape.Required("name", responsesNameShape), shape.Optional("parameters", anyObject)),
		"custom":      shape.Members(shape.Required("name", responsesNameShape)),
		"namespace":   shape.Members(shape.Required("name", responsesNameShape), shape.Required("tools", anyArray)),
		"mcp":         shape.Members(shape.Required("server_label", anyText)),
		"file_search": shape.Members(shape.Required("vector_store_ids", anyArray)),
	}

	responsesCallID     = shape.Required("call_id", anyText)
	responsesID         = shape.Required("id", anyText)
	responsesMCPCall    = shape.Members(responsesID, shape.Required("server_label", anyText), shape.Required("name", anyText), shape.Required("arguments", anyText))
	responsesItemShapes = map[string]*shape.Shape{
		"function_call":           shape.Members(responsesCallID, shape.Required("name", responsesNameShape), shape.Required("arguments", anyText)),
		"function_call_output":    shape.Members(responsesCallID, shape.Required("output", anything)),
		"custom_tool_call":        shape.Members(responsesCallID, shape.Required("name", responsesNameShape), shape.Required("input", anyText)),
		"custom_tool_call_output": shape.Members(responsesCallID, shape.Required("output", anything)),
		"local_shell_call":        shape.Members(responsesCallID, shape.Required("action", anyObject)),
		"local_shell_call_output": shape.Members(shape.Required("output", anyText)),
		"shell_call": shape.Members(responsesCallID, shape.Required("action", shape.Members(
			shape.Required("commands", anyArray.Explain("required", "want an array of commands"))))),
		"shell_call_output":       shape.Members(responsesCallID, shape.Required("output", anyArray)),
		"apply_patch_call":        shape.Members(responsesCallID, shape.Required("operation", anyObject)),
		"apply_patch_call_output": shape.Members(responsesCallID, shape.Required("status", shape.OneOf("completed", "failed"))),
		"computer_call": {Is: shape.Object, Members: []shape.Member{responsesCallID}, Rules: []shape.Rule{
			shape.Must("action", "required", "give an action, or an array of actions", func(v gjson.Result) bool { return v.Get("action").IsObject() || v.Get("actions").IsArray() }),
		}},
		"computer_call_output": shape.Members(responsesCallID, shape.Required("output", &shape.Shape{Is: shape.Object, Image: "image_url", Rules: []shape.Rule{
			shape.Must("type", "content-type", "want computer_screenshot", func(v gjson.Result) bool { return v.Get("type").Str == "computer_screenshot" }),
			shape.Must("image_url", "required", "give an image_url or a file_id", responsesHas("image_url", "file_id")),
		}})),
		"tool_search_call":   shape.Members(shape.Required("arguments", anything)),
		"tool_search_output": shape.Members(shape.Required("tools", anyArray)),
		"reasoning": shape.Members(shape.Required("summary", &shape.Shape{Is: shape.Array, Items: &shape.Shape{Rules: []shape.Rule{
			shape.Must("", "content-type", "want {type: summary_text, text}", func(v gjson.Result) bool {
				return v.Get("type").Str == "summary_text" && v.Get("text").Type == gjson.String
			}),
		}}})),
		"compaction":              shape.Members(shape.Required("encrypted_content", anyText)),
		"compaction_trigger":      anyObject,
		"item_reference":          shape.Members(responsesID),
		"web_search_call":         anyObject,
		"file_search_call":        shape.Members(responsesID, shape.Required("queries", anyArray)),
		"code_interpreter_call":   shape.Members(responsesID, shape.Required("container_id", anyText)),
		"image_generation_call":   shape.Members(responsesID),
		"mcp_list_tools":          shape.Members(responsesID, shape.Required("server_label", anyText), shape.Required("tools", anyArray)),
		"mcp_call":                responsesMCPCall,
		"mcp_approval_request":    responsesMCPCall,
		"additional_tools":        shape.Members(shape.Required("tools", anyArray)),
		"configuration_update":    anyObject,
		"program":                 shape.Members(responsesCallID, shape.Required("code", anyText)),
		"program_output":          shape.Members(responsesCallID, shape.Required("result", anyText)),
		"agent_message":           shape.Members(shape.Required("author", anyText), shape.Required("recipient", anyText), shape.Required("content", anyArray)),
		"multi_agent_call":        shape.Members(responsesCallID, shape.Required("action", anyText), shape.Required("arguments", anyText)),
		"multi_agent_call_output": shape.Members(responsesCallID, shape.Required("action", anyText), shape.Required("output", anyArray)),
		"mcp_approval_response":   shape.Members(shape.Required("approval_request_id", anyText), shape.Required("approve", &shape.Shape{Is: shape.Bool})),
	}

	responsesAnyItem = &shape.Shape{Rules: []shape.Rule{
		shape.Must("id", "item-id", "longer than 64 characters", func(v gjson.Result) bool { return len(v.Get("id").Str) <= 64 }),
		shape.Must("call_id", "call-id", "longer than 64 characters", func(v gjson.Result) bool { return len(v.Get("call_id").Str) <= 64 }),
	}}

	// The types of content parts in the model's own messages, and in all others.
	responsesSaidParts = map[string]*shape.Shape{
		"output_text": shape.Members(shape.Required("text", anyText)),
		"refusal":     shape.Members(shape.Required("refusal", anyText)),
	}
	responsesGivenParts = map[string]*shape.Shape{
		"input_text":  shape.Members(shape.Required("text", anyText)),
		"input_image": {Image: "image_url", Rules: []shape.Rule{shape.Must("image_url", "required", "give an image_url (as a string) or a file_id", responsesHas("image_url", "file_id"))}},
		"input_file":  {Rules: []shape.Rule{shape.Must("file_id", "required", "give one of file_id, file_data and file_url", responsesHas("file_id", "file_data", "file_url"))}},
		"input_audio": shape.Members(shape.Required("input_audio", anyObject)),
	}

	responsesMembers = []shape.Member{
		shape.Optional("instructions", anyText), shape.Optional("previous_response_id", anyText), shape.Optional("context_management", responsesManagement), shape.Optional("tools", anyArray),
	}
	responsesManagement = &shape.Shape{Is: shape.Array, Items: &shape.Shape{Rules: []shape.Rule{
		shape.Must("type", "required", "name the type, such as compaction", responsesHas("type")),
		shape.Must("compact_threshold", "compact-threshold", "want at least 1000 tokens", func(v gjson.Result) bool {
			n := v.Get("compact_threshold")
			return n.Type == gjson.Null || n.Type == gjson.Number && n.Num >= 1000
		}),
	}}}
)

// responsesHas holds where one of the members is a string that is not empty.
func responsesHas(names ...string) func(gjson.Result) bool {
	return func(v gjson.Result) bool {
		for _, name := range names {
			if v.Get(name).Str != "" {
				return true
			}
		}
		return false
	}
}

// Validate checks a body against the rules in the reference and the error messages of the
// Responses API. If OpenAI keeps the history (previous_response_id, conversation), pairs of
// calls and results are not checked.
func (Responses) Validate(body []byte) []wire.Problem {
	c := responsesChecker{Body: shape.Body{Checker: shape.Checker{Absent: true}}}
	if c.Open(body, nil, nil) {
		c.body()
	}
	c.CheckSize(wire.Responses, "", len(body))
	return c.Problems()
}

type responsesChecker struct {
	shape.Body
	items  []responsesChecked
	remote bool // part of the history is kept by OpenAI
	stored bool // the client does not say store: false
}

func (c *responsesChecker) body() {
	model := c.Value("model")
	c.RefuseIf(model.Str == "" && (c.Given("model") || !c.Given("prompt")), "model", "required", "name the model, or a prompt that names it")
	c.remote = c.Given("previous_response_id") || c.Given("conversation")
	c.stored = c.Value("store").Type != gjson.False
	c.RefuseIf(c.Given("previous_response_id") && c.Given("conversation"), "conversation", "one-history", "previous_response_id and conversation exclude each other; send one of them")
	for _, m := range responsesMembers {
		if v := c.Value(m.Name); c.Given(m.Name) {
			c.Check(v.Index, m.Name, v, m.Shape)
		}
	}
	if limit := c.Value("max_output_tokens"); c.Given("max_output_tokens") {
		whole := limit.Type == gjson.Number && !strings.ContainsAny(limit.Raw, ".eE") && limit.Int() >= 1
		c.RefuseIf(!whole, "max_output_tokens", "max-output", "want a whole number of tokens, at least 1")
		c.AdviseIf(whole && limit.Int() < 16, "max_output_tokens", "max-output", "most models refuse less than 16")
	}
	c.tools(c.Value("tools"), "tools")
	c.input(c.Value("input"))
}

func (c *responsesChecker) tools(tools gjson.Result, path string) {
	seen := map[string]bool{}
	shape.Each(tools, path, func(path string, tool gjson.Result) {
		at := tool.Index
		if !c.Check(at, path, tool, shape.Members(shape.Required("type", text.Explain("required", "name the type of the tool")))) {
			return
		}
		kind, name := tool.Get("type").Str, tool.Get("name")
		if s := responsesToolShapes[kind]; s != nil {
			c.Check(at, path, tool, s)
		}
		switch kind {
		case "function", "custom", "namespace":
			if name.Type == gjson.String && seen[name.Str] {
				c.Refuse(at, path+".name", "unique-tools", "another tool is called %q; rename one", name.Str)
			}
			seen[name.Str] = true
		}
		if kind == "namespace" {
			c.tools(tool.Get("tools"), path+".tools")
		}
	})
}

func (c *responsesChecker) input(input gjson.Result) {
	nothing := "give an input, or a history to go on with"
	if input.IsArray() {
		nothing = "the input is empty"
		shape.Each(input, "input", func(path string, item gjson.Result) { c.item(item, path) })
	} else if input.Type != gjson.Null {
		c.Check(input.Index, "input", input, &shape.Shape{Is: shape.String | shape.Array})
		return
	}
	if len(c.items) == 0 && !c.remote && !c.Given("prompt") {
		c.Refuse(input.Index, "input", "required", "%s", nothing)
	}
	c.order()
	c.pairs()
}

func (c *responsesChecker) item(item gjson.Result, path string) {
	it := responsesChecked{at: item.Index}
	if !c.Check(it.at, path, item, anyObject) {
		c.items = append(c.items, it)
		return
	}
	it.read(item)
	c.items = append(c.items, it)
	c.Check(it.at, path, item, responsesAnyItem)
	if prefix := responsesPrefixes[it.typ]; it.id != "" && !strings.HasPrefix(it.id, prefix) {
		c.Refuse(it.at, path+".id", "item-id", "%q: ids of this type begin with %s; leave it out if you have none", it.id, prefix)
	}
	s := responsesItemShapes[it.typ]
	switch {
	case it.typ == "message":
		c.message(item, it, path)
	case it.typ == "":
		c.Refuse(it.at, path+".type", "required", "name the type of the item")
	case s == nil:
		c.Advise(it.at, path+".type", "item-type", "%q is no item type that is published", it.typ)
	default:
		c.Check(it.at, path, item, s)
	}
	switch it.typ {
	case "additional_tools":
		c.tools(item.Get("tools"), path+".tools")
	case "function_call_output", "custom_tool_call_output":
		if output := c.Member(item, "output"); output.Exists() {
			c.content(it.at, path+".output", output, "tool")
		}
	case "local_shell_call_output":
		if it.callID == "" {
			c.Refuse(it.at, path+".call_id", "required", "name the call that it answers")
		}
	case "reasoning":
		if !c.stored && !it.encrypted {
			c.Advise(it.at, path+".encrypted_content", "reasoning-encrypted",
				"nothing is stored, so reasoning is lost without its encrypted content; ask for it with include: [reasoning.encrypted_content]")
		}
	case "item_reference":
		if !c.stored {
			c.Advise(it.at, path, "item-reference", "store is false: the item is only found when an earlier request stored it; send the item itself")
		}
	}
}

func (c *responsesChecker) message(item gjson.Result, it responsesChecked, path string) {
	switch it.role {
	case "user", "system", "developer", "assistant":
	default:
		c.Refuse(it.at, path+".role", "role", "want user, assistant, system or developer, got %q", it.role)
		return
	}
	if !c.Check(it.at, path, item, shape.Members(shape.Required("content", anything))) {
		return
	}
	content := item.Get("content")
	if c.content(it.at, path+".content", content, it.role); content.IsArray() && content.Get("#").Int() == 0 {
		c.Refuse(it.at, path+".content", "empty-content", "the array is empty; leave the message out")
	}
}

// content checks the content of a message of the role, or of a result ("tool").
func (c *responsesChecker) content(at int, path string, content gjson.Result, role string) {
	c.Check(at, path, content, &shape.Shape{Is: shape.String | shape.Array})
	shape.Each(content, path, func(path string, part gjson.Result) { c.part(at, path, part, role) })
}

func (c *responsesChecker) part(at int, path string, part gjson.Result, role string) {
	if !c.Check(at, path, part, shape.Members(shape.Required("type", text.Explain("required", "name the type of the content part")))) {
		return
	}
	may, not := responsesGivenParts, responsesSaidParts
	if role == "assistant" {
		may, not = not, may
	}
	switch kind := part.Get("type").Str; {
	case may[kind] != nil:
		c.Check(at, path, part, may[kind])
	case not[kind] != nil:
		c.Refuse(at, path+".type", "content-type", "%s is not allowed in a message of the role %s", kind, role)
	case kind == "text" || kind == "image_url" || kind == "file": // the types of Chat Completions
		c.Refuse(at, path+".type", "content-type", "%q is not a type of this API; want input_… or output_text", kind)
	default:
		c.Advise(at, path+".type", "content-type", "%q is no content type that is published", kind)
	}
}
