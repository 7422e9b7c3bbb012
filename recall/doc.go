// Package recall searches the messages that a plan has removed from prompts.
//
//	entries := recall.Removed(t, p)            // what the plan hides, in full
//	hits := recall.NewIndex(entries).Search("ErrLabelRejected carrier/client.go", nil)
//
// The search is BM25 over tokens made for code: whole identifiers and their parts, paths and
// their base names, numbers; forms of a word count as one, and words such as "the" and "which"
// not at all where the query has others. The score of a message has parts of those of its
// neighbors, of the question before it, and of its section: the messages around it without a
// long pause. A time in the query ("on 3 March", "last week") counts for the sections of that
// time, seen from the latest message. Quoted phrases, and texts that contain the query as it is,
// count more. A short question lists its best messages, those of other sections before more of
// the same; a long one the passages that match most of it, each for what the hits before it do
// not show. Nearby names stand beside them. It needs no model and no network, and is
// deterministic.
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
