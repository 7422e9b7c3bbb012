// Package summarize makes structured summaries of spans of a thread.
//
// The default is Extractive: no model, no network, the same bytes for the same
// input. It takes out what later steps are likely to need, in the words of
// those who said it: the user's messages, rules and preferences, the agent's
// plan and conclusions, a ledger of files, commands with their outcome and the
// error lines of failures, and lines that hold identifiers. Records in JSON lose
// their punctuation, not their keys and values. Text from tools is data: it never
// reaches a section of the user's or the assistant's words.
//
// # How a summary is made
//
// Extractive.Summarize (extractive.go) goes through four stages, each of which only
// reads what the one before it returned:
//
// 1. Read. What each message tells by itself is found once and kept (memo.go):
// facts.go reads a message, calls.go a call, error_lines.go what failed in an output,
// paragraphs.go what the assistant said, cues.go the phrases that hint at a rule, a
// choice or a failure. They scan with text.go and stems.go; what is cut short is cut
// by package internal/clip.
//
// 2. Collect. pool.go makes a pool of all that the summary could say, the messages in
// their order: said.go takes words and earlier summaries of the agent's own,
// previous.go the summary that this one replaces, results.go results with their
// calls, failed_attempts.go what failed and what mended it, changes.go what edits
// wrote, ledger.go the files and the plan, plan_file.go the plan that stands in a file. current.go takes out lines that a later
// answer or edit made out of date.
//
// 3. Weigh. names.go finds the identifiers, salience.go how likely each is written in
// a call again, by the learned salience_table.go; ranking.go says what a candidate adds
// for its length.
//
// 4. Choose. selection.go fills the budget: the user's words (requests.go), then each
// section up to its share, then the best of all (greedy.go). build.go writes the
// summary of what was taken.
//
// Beside that, the state of the work is folded over the whole log (work.go): where
// commands ran, commits, files changed since, checks and how they went, what was
// refused, what runs. workshell.go takes what a command line did (package internal/shell
// reads it); shellfiles.go reads the files off any command line, also off those with
// loops. workread.go reads calls and results,
// workgit.go git, workcheck.go which program checks what, workverdict.go with which
// words it reports, workops.go tools that act on a system; workacts.go takes them into
// the state.
//
// # Models
//
// The others are decorators around a summarizer that asks a model (package
// summarize/model): Verified (verify.go and verify_*.go) keeps of its
// answer what stands on the messages, Grounds (prose.go) does so for prose, Chunked
// hands a long span over in pieces, Fallback goes on to the next step. report.go tells
// what became of an answer. Excerpts (excerpt.go) shortens single outputs by the same
// weights.
package summarize
