// Package recall searches the messages that a plan has removed from prompts.
//
//	entries := recall.Removed(t, p)            // what the plan hides, in full
//	hits := recall.NewIndex(entries).Search("ErrLabelRejected carrier/client.go", nil)
//
// The search is BM25 over tokens made for code: whole identifiers and their parts, paths and
// their base names, numbers. Quoted phrases, and texts that contain the query as it is,
// count more. Hits are passages: the lines that match most of the query, each chosen for
// what the hits before it do not show, with nearby names. It needs no model and no network,
// and is deterministic.
//
// Texts and excerpts come from tools and the web. They are data, not instructions.
//
// Externalized content also comes back to the agent: it is offered the tools read_artifact and recall,
// whose calls palimpsest.Session answers, and what it means without asking for it is shown for one
// turn (seed A, "Rehydration Contract").
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
package recall
