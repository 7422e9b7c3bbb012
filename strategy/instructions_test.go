package strategy_test

import (
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestInstructions: an instruction that is given again stands once, where it was given last; changes of tools all
// stand, and a summary that another tool wrote in the system's role is no instruction. G3
func TestInstructions(t *testing.T) {
	text := func(role thread.Role, text string) thread.Message {
		return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	change := func(kind string) thread.Message {
		return thread.Message{Role: thread.System, Parts: []thread.Part{thread.Opaque{Kind: kind, Instruction: true, Source: thread.Source{Raw: `{"tool":"weigh"}`}}}}
	}
	recap := text(thread.System, "Compacted context summary: shelves were counted.")
	recap.Kind = thread.Recap
	messages := []thread.Message{
		text(thread.System, "Weights are in grams."), text(thread.User, "Count."), change("tool_addition"), text(thread.System, "Be brief."), recap,
		change("tool_removal"), text(thread.System, "Weights are in grams."), change("tool_addition"), text(thread.User, "Weights are in grams."),
	}
	if got, want := strategy.Instructions(messages), []int{7, 6, 5, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("they stand at %v, want %v", got, want)
	}
}
