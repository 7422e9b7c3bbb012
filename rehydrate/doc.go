// Package rehydrate gives content that was externalized back to the agent (seed A,
// "Rehydration Contract").
//
// There are two ways. The agent may ask: Tools offers read_artifact and recall, and a
// Handler answers their calls. Where the agent means an artifact but does not ask for it,
// a Rehydrator shows it for one turn:
//
//	contents, turn, err := r.Rehydrate(ctx, who, rehydrate.TurnOf(th, tools), p)
//	out, manifest, err := render.Render(th, p, base, nil)
//	out, manifest = render.Append(out, manifest, contents, render.Profile{})
//
// # When content comes back by itself
//
// Only artifacts of the plan's externalizations can come back, and only for these reasons:
//
//   - turn: the artifact was shown for this turn already, so a retry shows it again;
//   - mention: the agent's message holds the id as a whole token;
//   - argument: a string at any depth of a pending call's arguments holds it so.
//     Calls of read_artifact are left out, and what they name is not shown
//     beside: their own result brings it;
//   - question: a sentence of the agent or of the user that is a question names
//     an id, or shares at least two rare terms with what the plan says of the
//     artifact: two of its rehydrate hint, or two of hint and summary of which
//     one is an identifier, a path or a number;
//   - schema: a pending call is of a tool that takes an artifact (a parameter
//     named artifact_id, or described as the id of an artifact), and the call
//     does not give one that is whole. What it gives is the beginning of one id
//     alone, or it gives nothing for a required parameter and the plan has one
//     artifact alone.
//
// # Why this does not go round in circles
//
// What comes back is shown in one prompt and never enters the log, so no compaction ever
// sees it. It takes its tokens from a reserve of its own, outside of the figure that
// compaction is decided on. A turn that brought something back does not externalize or
// drop anything (TurnContext.Allows). And an artifact that was shown is not shown again by
// itself for some turns.
package rehydrate
