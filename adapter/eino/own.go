package eino

import (
	"github.com/cloudwego/eino/schema"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Holding returns the codec that writes the blocks of a history as they are: models ask
// what their own servers' tools said for a type of theirs, which JSON does not keep.
func (AgenticCodec) Holding(history []*schema.AgenticMessage) adapter.Codec[*schema.AgenticMessage] {
	own := blocks{}
	for _, m := range history {
		for _, b := range m.ContentBlocks {
			own.add(b)
		}
	}
	return AgenticCodec{own}
}

// blocks are those of a history that have to be written as they are, by what their parts
// are known by.
type blocks map[string]*schema.ContentBlock

func (all blocks) add(b *schema.ContentBlock) {
	switch {
	case b == nil:
	// These have no shorter form: a model would take it for something else.
	case b.MCPToolApprovalRequest != nil, b.MCPToolApprovalResponse != nil, b.ToolSearchFunctionToolResult != nil:
		all[key(blockPart(b))] = b
	case typed(b):
		all[source(AgenticAPI, b).Raw] = b
	}
}

func (all blocks) of(p thread.Part) *schema.ContentBlock {
	if len(all) == 0 {
		return nil
	}
	if b := all[p.From().Raw]; b != nil {
		return b
	}
	return all[key(p)]
}

// key is what a call or a result is known by when its bytes were taken off.
func key(p thread.Part) string {
	switch p := p.(type) {
	case thread.ToolCall:
		return p.Type + " " + p.ID
	case thread.ToolResult:
		return p.Tool + " result " + p.CallID
	}
	return ""
}

// typed reports whether a block holds what JSON brings back as something else.
func typed(b *schema.ContentBlock) bool {
	values := []any{b.Extra}
	switch {
	case b.AssistantGenText != nil:
		values = append(values, b.AssistantGenText.Extension)
	case b.ServerToolCall != nil:
		values = append(values, b.ServerToolCall.Arguments)
	case b.ServerToolResult != nil:
		values = append(values, b.ServerToolResult.Content)
	case b.FunctionToolResult != nil:
		for _, c := range b.FunctionToolResult.Content {
			if c != nil {
				values = append(values, c.Extra)
			}
		}
	}
	return !plain(values)
}

func plain(v any) bool {
	switch v := v.(type) {
	case nil, string, bool, float64:
		return true
	case []any:
		for _, e := range v {
			if !plain(e) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, e := range v {
			if !plain(e) {
				return false
			}
		}
		return true
	}
	return false
}
