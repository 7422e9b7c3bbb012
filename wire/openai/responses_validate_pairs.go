package openai

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// responsesPrefixes are the prefixes of item ids, from OpenAI's errors ("Expected an ID that
// begins with 'fc'").
var responsesPrefixes = map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs"}

// responsesChecked is what the rules across items need to know of one.
type responsesChecked struct {
	at                            int
	typ, role, callID, id, caller string
	encrypted                     bool
}

func (i *responsesChecked) read(item gjson.Result) {
	str := func(name string) string { return item.Get(name).Str }
	i.typ, i.role, i.id, i.callID = str("type"), str("role"), str("id"), str("call_id")
	i.caller = str("caller.caller_id")
	i.encrypted = str("encrypted_content") != ""
	switch {
	case i.typ == "" && i.role != "":
		i.typ = "message"
	case i.callID == "" && i.typ == "mcp_approval_response":
		i.callID = str("approval_request_id")
	case i.callID == "" && i.typ == "local_shell_call_output":
		i.callID = i.id
	}
}

// model reports whether the item was made by the model.
func (i responsesChecked) model() bool {
	switch i.typ {
	case "message":
		return i.role == "assistant"
	case "compaction_trigger", "mcp_approval_response", "additional_tools", "configuration_update":
		return false
	case "tool_search_output":
		return i.callID == ""
	}
	return !strings.HasSuffix(i.typ, "_output") || responsesRan[i.typ] != ""
}

// responsesAnswers says which items answer a call.
var responsesAnswers = map[string][]string{
	"function_call":        {"function_call_output"},
	"custom_tool_call":     {"custom_tool_call_output"},
	"local_shell_call":     {"local_shell_call_output", "function_call_output"}, // Codex sends the latter
	"shell_call":           {"shell_call_output"},
	"apply_patch_call":     {"apply_patch_call_output"},
	"computer_call":        {"computer_call_output"},
	"tool_search_call":     {"tool_search_output"},
	"mcp_approval_request": {"mcp_approval_response"},
}

// responsesRan says of which item of OpenAI's own an item is the result. That may still come.
var responsesRan = map[string]string{"program_output": "program", "multi_agent_call_output": "multi_agent_call"}

// order checks the places of items, and that ids are unique.
func (c *responsesChecker) order() {
	ids := map[string]bool{}
	for i, it := range c.items {
		path := "input[" + strconv.Itoa(i) + "]"
		last := i == len(c.items)-1
		switch {
		case it.typ == "reasoning" && (last || !c.items[i+1].model()):
			c.Refuse(it.at, path, "reasoning-follower", "reasoning without the item that followed it; leave it out or send the item")
		case it.typ == "compaction_trigger" && !last:
			c.Refuse(it.at, path, "trigger-last", "compaction_trigger must be the last item")
		}
		if it.id != "" && it.typ != "local_shell_call_output" {
			if ids[it.id] {
				c.Refuse(it.at, path+".id", "item-id", "another item has the id %q; send each item once", it.id)
			}
			ids[it.id] = true
		}
		if last && it.model() && it.typ != "reasoning" && responsesAnswers[it.typ] == nil {
			c.Advise(it.at, path, "ends-with-assistant", "the input ends with the model's own words; it goes on as if nothing was asked")
		}
	}
}

// pairs checks that each call has one result of the right type after it.
func (c *responsesChecker) pairs() {
	type asked struct {
		item     int
		answered bool
	}
	calls := map[string]*asked{}
	hosted := map[[2]string]bool{} // type and id
	answers := map[string]string{} // type of result -> field that names the call
	for typ, outputs := range responsesAnswers {
		for _, output := range outputs {
			answers[output] = "call_id"
			if typ == "mcp_approval_request" {
				answers[output] = "approval_request_id"
			}
		}
	}
	open := c.remote
	for _, it := range c.items {
		open = open || it.typ == "item_reference"
	}
	for i, it := range c.items {
		path := "input[" + strconv.Itoa(i) + "]"
		if it.caller != "" && !hosted[[2]string{"program", it.caller}] && !open {
			c.Refuse(it.at, path+".caller", "caller", "the program that made this call, %q, is not in the request", it.caller)
		}
		id := it.callID
		if ran := responsesRan[it.typ]; ran != "" && id != "" && !hosted[[2]string{ran, id}] && !open {
			c.Refuse(it.at, path+".call_id", "tool-pairing", "no %s before this result has the id %q; leave the result out or send the item", ran, id)
		}
		hosted[[2]string{it.typ, id}] = true
		if it.typ == "mcp_approval_request" {
			id = it.id
		}
		if id == "" {
			continue // reported as a missing field, or made by OpenAI
		}
		if responsesAnswers[it.typ] != nil {
			if calls[id] != nil {
				c.Refuse(it.at, path+".call_id", "tool-pairing", "another call has the id %q", id)
				continue
			}
			calls[id] = &asked{item: i}
			continue
		}
		field, answer := answers[it.typ]
		if !answer {
			continue
		}
		path += "." + field
		call := calls[id]
		switch {
		case call == nil && !open:
			c.Refuse(it.at, path, "tool-pairing", "no call before this result has the id %q; leave the result out or send the call", id)
		case call == nil:
			calls[id] = &asked{item: -1, answered: true} // the call is kept by OpenAI
		case call.answered:
			c.Refuse(it.at, path, "tool-pairing", "another result answers the call %q; send one", id)
		default:
			call.answered = true
			if typ := c.items[call.item].typ; !slices.Contains(responsesAnswers[typ], it.typ) {
				c.Refuse(it.at, path, "tool-pairing", "a %s is not answered by a %s", typ, it.typ)
			}
		}
	}
	if open {
		return
	}
	for i, it := range c.items {
		if call := calls[it.callID]; call != nil && call.item == i && !call.answered {
			c.Refuse(it.at, "input["+strconv.Itoa(i)+"].call_id", "tool-pairing", "no result answers the call %q; send one, such as that it was aborted", it.callID)
		}
	}
}
