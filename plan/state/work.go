package state

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Work is where the work stands, as far as the log of calls proves it; nothing in it comes
// from a model. Each entry names the messages that show it. The zero value says nothing.
type Work struct {
	// Again says that an earlier summary in the same prompt described the work too: this
	// is newer.
	Again bool `json:"again,omitempty"`
	// Directory is where commands ran last, Branch the git branch that was seen last,
	// PullRequest the address of the pull request.
	Directory   Seen `json:"directory,omitzero"`
	Branch      Seen `json:"branch,omitzero"`
	PullRequest Seen `json:"pull_request,omitzero"`
	// Newest is the newest commit as "git log" printed it last, unless it is one of Commits:
	// mostly the user made it.
	Newest Seen `json:"newest,omitzero"`
	// Commits are those that were made, oldest first.
	Commits []Commit `json:"commits,omitempty"`
	// Edited are the files that were changed after the last commit, or at all where none
	// was made, by the time of their last change.
	Edited []Edit `json:"edited,omitempty"`
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
	// Searches are those of which some of the places that they showed were changed since, and not
	// all: what is left is often still to do.
	Searches []Search `json:"searches,omitempty"`
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
	return w.Directory.Text == "" && w.Branch.Text == "" && w.PullRequest.Text == "" && w.Newest.Text == "" && w.Next.Text == "" && w.Omitted == Omitted{} &&
		len(w.Commits)+len(w.Edited)+len(w.Checks)+len(w.Refused)+len(w.Running)+len(w.Operations)+len(w.Searches) == 0
}

// Seen is one observation.
type Seen struct {
	Text    string      `json:"text"`
	Turn    int         `json:"turn,omitempty"` // 0 when unknown
	Sources []thread.ID `json:"sources,omitempty"`
}

// Commit is a commit of git.
type Commit struct {
	Hash    string `json:"hash,omitempty"` // as git printed it; empty when it did not
	Subject string `json:"subject"`
	// Branch is the one it was made on; empty or "?" when unknown.
	Branch string `json:"branch,omitempty"`
	// Dir is the folder it was made in: that of its repository, or one below it; empty when
	// unknown.
	Dir string `json:"dir,omitempty"`
	// Pushed says that a successful push followed; false says that none was seen.
	Pushed  bool        `json:"pushed,omitempty"`
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
	// changes that git made, words such as "what `git pull` changed".
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

// Search is a search in files, with the places that it showed.
type Search struct {
	Query string `json:"query"`
	// Scope is where it searched, as far as it was told.
	Scope  string  `json:"scope,omitempty"`
	Places []Place `json:"places"`
	// Unknown is how many more places it showed of which nobody knows what became.
	Unknown int `json:"unknown,omitempty"`
	// Before is how many places were changed that the same search showed earlier.
	Before int `json:"before,omitempty"`
	// LastChange is the turn in which a place was changed last.
	LastChange int         `json:"last_change,omitempty"`
	Turn       int         `json:"turn,omitempty"`
	Sources    []thread.ID `json:"sources,omitempty"`
}

// Place is a text in a file, with the lines that it stood in when it was found.
type Place struct {
	Path    string `json:"path"`
	Text    string `json:"text"`
	Lines   []int  `json:"lines"`
	Changed int    `json:"changed,omitempty"` // in how many of the lines an edit replaced it
}

// Changed is how many of the places were changed since the search.
func (s Search) Changed() (n int) {
	for _, p := range s.Places {
		n += p.Changed
	}
	return n
}

// Left is how many of the places no edit changed, as far as is known.
func (s Search) Left() (n int) {
	for _, p := range s.Places {
		n += len(p.Lines) - p.Changed
	}
	return n
}

// ShownBy reports whether another search shows all that is left of s.
func (s Search) ShownBy(other Search) bool {
	return !slices.ContainsFunc(s.Places, func(p Place) bool {
		return p.Changed < len(p.Lines) && !slices.ContainsFunc(other.Places, func(o Place) bool { return o.Text == p.Text && o.Path == p.Path })
	})
}
