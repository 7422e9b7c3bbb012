package state

import (
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Work is where the work stands, as far as the log of calls proves it; nothing in it comes
// from a model. Each entry names the messages that show it. The zero value says nothing.
type Work struct {
	// Again says that an earlier summary in the prompt described the work too: this is newer.
	Again bool `json:"again,omitempty"`
	// Directory is where commands ran last, Branch the git branch that was seen last,
	// PullRequest the address of the pull request.
	Directory   Seen `json:"directory,omitzero"`
	Branch      Seen `json:"branch,omitzero"`
	PullRequest Seen `json:"pull_request,omitzero"`
	// Commits are those that were made, oldest first.
	Commits []Commit `json:"commits,omitempty"`
	// Edited are the files that were changed after the last commit, or at all where none
	// was made, by the time of their last change.
	Edited []Edit `json:"edited,omitempty"`
	// Unknown is what nobody knows since a command that may have changed it.
	Unknown []Unknown `json:"unknown,omitempty"`
	// Checks are the last runs of builds, tests, linters and formatters.
	Checks []Check `json:"checks,omitempty"`
	// Refused is what the user stopped or did not allow.
	Refused []Seen `json:"refused,omitempty"`
	// Running are processes and agents in the background that were started and not seen to
	// end.
	Running []Seen `json:"running,omitempty"`
	// Next is what the assistant last said that it would do, in its words; empty once it
	// acted on it.
	Next Seen `json:"next,omitzero"`
	// Operations are changes in a system that is no code base (bookings, orders,
	// accounts), with what was refused, and why.
	Operations []Operation `json:"operations,omitempty"`
	// Omitted are how many entries, the oldest, were left out for lack of room.
	Omitted Omitted `json:"omitted,omitzero"`
}

// Omitted counts entries of Work that were left out, by slot.
type Omitted struct {
	Commits    int `json:"commits,omitempty"`
	Edited     int `json:"edited,omitempty"`
	Checks     int `json:"checks,omitempty"`
	Refused    int `json:"refused,omitempty"`
	Running    int `json:"running,omitempty"`
	Operations int `json:"operations,omitempty"`
}

// IsZero reports whether the work says nothing.
func (w Work) IsZero() bool {
	return w.Directory.Text == "" && w.Branch.Text == "" && w.PullRequest.Text == "" && w.Next.Text == "" && w.Omitted == Omitted{} &&
		len(w.Commits)+len(w.Edited)+len(w.Unknown)+len(w.Checks)+len(w.Refused)+len(w.Running)+len(w.Operations) == 0
}

// Seen is one observation.
type Seen struct {
	Text    string      `json:"text"`
	Turn    int         `json:"turn,omitempty"` // 0 when unknown
	Sources []thread.ID `json:"sources,omitempty"`
}

// Unknown is something that is not known any more.
type Unknown struct {
	// What is "tree" (which changes are uncommitted), "branch", or the path of a file.
	What string `json:"what"`
	// By is the command since which it is unknown.
	By      string      `json:"by"`
	Turn    int         `json:"turn,omitempty"`
	Sources []thread.ID `json:"sources,omitempty"`
}

// Commit is a commit that git printed.
type Commit struct {
	Hash    string `json:"hash,omitempty"`
	Subject string `json:"subject"`
	// Branch is the one it was made on; empty when unknown.
	Branch string `json:"branch,omitempty"`
	// Dir is the folder it was made in: that of its repository, or one below it; empty when
	// unknown.
	Dir string `json:"dir,omitempty"`
	// Pushed says that a successful push followed; false says that none was seen.
	Pushed bool `json:"pushed,omitempty"`
	// Perhaps is the command that may have taken it back, or made it anew, later.
	Perhaps Seen        `json:"perhaps,omitzero"`
	Turn    int         `json:"turn,omitempty"`
	Sources []thread.ID `json:"sources,omitempty"`
}

// Edit is the last change of a file: created, edited or deleted.
type Edit struct {
	Path      string `json:"path"`
	Operation string `json:"operation"`
	// PerhapsCommitted says that a commit followed that may have taken it.
	PerhapsCommitted bool        `json:"perhaps_committed,omitempty"`
	Turn             int         `json:"turn,omitempty"`
	Sources          []thread.ID `json:"sources,omitempty"`
}

// Check is the last run of a build, a test, a linter or a formatter.
type Check struct {
	Kind    string         `json:"kind"` // "build", "test", "lint", "format", or "check" where the name does not tell
	Command string         `json:"command"`
	Dir     string         `json:"dir,omitempty"` // where it ran; empty when unknown
	Outcome thread.Outcome `json:"outcome"`       // empty when the output does not tell
	// Line is what the output says about it in one line; it may be empty.
	Line string `json:"line,omitempty"`
	// Since are the files that were changed after it, about which it says nothing; of
	// what a command may have changed, words such as "what `git pull` may have changed".
	Since   []string    `json:"since,omitempty"`
	Turn    int         `json:"turn,omitempty"`
	Sources []thread.ID `json:"sources,omitempty"`
}

// Operation is a call that changes something in a system.
type Operation struct {
	Tool    string         `json:"tool"`
	Input   string         `json:"input,omitempty"`
	Outcome thread.Outcome `json:"outcome"`           // empty while it is pending, and if it was canceled
	Refused bool           `json:"refused,omitempty"` // it failed because the system or the user did not allow it
	// Reason is the system's reason for a refusal, or its answer, in one line; without an
	// outcome, why it was canceled.
	Reason  string      `json:"reason,omitempty"`
	Turn    int         `json:"turn,omitempty"`
	Sources []thread.ID `json:"sources,omitempty"`
}
