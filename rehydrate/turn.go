package rehydrate

import (
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Turn is what is known when the prompt of a turn is about to be made.
type Turn struct {
	// ThreadID is the thread that cooldowns are kept for.
	ThreadID string
	// Number counts the turns that limits and cooldown are about. A turn is one
	// message of the agent and what follows it, as the seed has it; TurnOf
	// counts so. Asking again for the same number, as a retry does, gives the
	// same again.
	Number int
	// Agent is the agent's last message, User what the user has said since.
	Agent, User string
	// Calls are the calls of the agent's last message.
	Calls []thread.ToolCall
	// Tools are the tools on offer; their schemas say which take an artifact.
	Tools []prompt.Tool
	// Room is how many tokens the request can still take; what comes back will
	// not be more. 0 leaves it to Options.TotalTokens; negative is none.
	Room int
	// MaxArtifacts is how many artifacts can come back. 0 leaves it to
	// Options.MaxArtifacts; negative is none.
	MaxArtifacts int
}

// TurnOf reads the turn from the end of a thread: the agent's last message, its
// calls, and what the user has said after it. Number is the number of messages
// of the agent.
func TurnOf(t *thread.Thread, tools []prompt.Tool) Turn {
	turn := Turn{ThreadID: t.ID(), Tools: tools}
	messages := uncopied.Messages(t)
	last := -1
	for i := range messages {
		if m := &messages[i]; m.Role == thread.Assistant && m.Kind == thread.Plain {
			turn.Number++
			last = i
		}
	}
	if last >= 0 {
		turn.Agent, turn.Calls = messages[last].Text(), messages[last].Calls()
	}
	for i := range messages[last+1:] {
		if m := &messages[last+1+i]; m.StartsTurn() {
			if turn.User != "" {
				turn.User += "\n"
			}
			turn.User += m.Text()
		}
	}
	return turn
}

// TurnContext is what a turn has been given (seed A, "Rehydration Loop
// Breaking"; A11). The zero value is a turn that was given nothing.
type TurnContext struct {
	Number int `json:"turn_number"`
	// Happened is true when anything came back.
	Happened bool `json:"rehydration_happened"`
	// Tokens is what it takes in the prompt, headings included. They are not
	// part of the figure that compaction is decided on.
	Tokens      int      `json:"rehydrated_tokens"`
	ArtifactIDs []string `json:"rehydrated_artifact_ids"`
}

// Allows reports whether a strategy may be used in this turn, by its name: all
// but "externalize" and "drop" where anything came back, so that the agent can finish
// what it asked for. Where nothing else makes the prompt fit, the limit of the model
// goes first and the caller climbs the whole ladder.
func (c TurnContext) Allows(strategy string) bool {
	return !c.Happened || strategy != plan.Externalize.String() && strategy != plan.Drop.String()
}
