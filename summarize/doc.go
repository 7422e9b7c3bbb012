// Package summarize makes structured summaries of spans of a thread.
//
// The default is Extractive: no model, no network, the same bytes for the same
// input. It picks out what later steps are likely to need, in the words of those who
// said it: the user's messages, rules and preferences, the agent's plan and
// conclusions, files, commands with their outcome, the error lines of failures, and
// lines that hold identifiers. Text from tools is data: it never reaches a section
// that speaks for the user or the assistant.
//
// # How a summary is made
//
// Extractive.Summarize (extractive.go) runs four stages. Each reads only what the
// stage before it returned.
//
// 1. Read. facts.go reads a message into facts, which depend on no other message and
// are cached. calls.go reads a tool call, tasks.go task lists, lines.go lines of outputs,
// paragraphs.go and cues.go what the assistant said. All of them scan with package internal/scan.
//
// 2. Collect. pool.go goes through the messages in order and fills a pool of candidates:
// everything that the summary could say. said.go takes the words of the user and
// the assistant, previous.go earlier summaries, results.go the outcomes of calls, failures.go
// failed attempts and how the agent went on, ledger.go the files. current.go drops lines that
// a later answer or edit made out of date.
//
// 3. Weigh. names.go finds the identifiers and estimates how likely the agent writes each
// of them again (the learned salience_table.go). ranking.go turns that into a
// candidate's value for its length, and divides the budget.
//
// 4. Choose. selection.go fills the budget: first the user's words (requests.go), then
// each section up to its share, then the best of what is left. build.go writes the
// summary.
//
// # Where the work stands
//
// Package internal/work folds the whole log into a state.Work: where commands ran, commits,
// files edited since the last one, checks and their outcome, what was refused, what still
// runs. Of a message it needs what facts.go keeps for it, and of a call what calls.go read.
//
// # Models
//
// The other summarizers wrap one that asks a model (package summarize/model). Verified
// (verify.go, evidence.go, check.go) keeps of its answer what the messages
// support, and Grounds (prose.go) does so for prose. Chunked summarises a long span in
// pieces. Once asks about no message twice. Fallback tries one summarizer after the other. A Report (report.go) says what
// became of an answer. Excerpts (excerpt.go) shortens single outputs by the same weights.
package summarize
