package truth

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

var fileKinds = map[string]Kind{"read": kindFileRead, "created": kindFileCreated, "edited": kindFileEdited, "deleted": kindFileDeleted}

// files judges the ledger of files.
func (j *judge) files(all []summary.File) {
	for _, f := range all {
		statement := f.Path + ": " + strings.Join(f.Operations, ", ")
		if f.Turn > 0 {
			statement += fmt.Sprintf(" (turn %d)", f.Turn)
		}
		st := j.claim(statement, f.Sources)
		found := j.lookup(f.Path)
		for _, o := range f.Operations {
			j.fileDid(f, o, found, st)
		}
		j.lastTouch(f, found, st)
		for note := range strings.SplitSeq(f.Note, ", ") {
			if note = strings.TrimSpace(note); note != "" {
				j.fileNote(f, note, found, st.and(" | "+note))
			}
		}
	}
}

// perhaps reports whether a command that need not have run is all that may have touched a file.
func (j *judge) perhaps(p string, turn int) bool {
	some := false
	for _, v := range j.vague {
		if (turn == 0 || v.turn == turn) && (v.all || mentions(v.line, p)) {
			if !v.perhaps {
				return false
			}
			some = true
		}
	}
	return some
}

// mayHave reports whether a command that cannot be followed may have touched a
// file, in a turn; 0 stands for any.
func (j *judge) mayHave(p string, turn int) bool {
	for _, v := range j.vague {
		if turn > 0 && v.turn != turn {
			continue
		}
		if v.all || mentions(v.line, p) {
			return true
		}
		// A folder that is named stands for what is in it.
		for d := path.Dir(p); d != "." && d != "/"; d = path.Dir(d) {
			if strings.Contains(v.line, path.Base(d)+"/*") || strings.Contains(v.line, path.Base(d)+"/{") {
				return true
			}
		}
	}
	return false
}

func (j *judge) fileDid(f summary.File, what string, found []*file, st claim) {
	k, ok := fileKinds[what]
	if !ok {
		j.isFalse(kindFileRead, st, fmt.Sprintf("%q is no operation", what))
		return
	}
	reason := "the log has no such operation that succeeded"
	var refuting []int
	for _, x := range found {
		for _, o := range x.operations {
			switch {
			case what == "deleted":
			case what == "edited" && (o.what == "edited" || o.what == "created" && o.known):
				j.isTrue(k)
				return
			case what == "created" && o.what == "created" && o.known:
				reason = "it was there before it was written"
				refuting = append(refuting, o.at)
			case o.what == what || what == "created" && o.what == "moved from":
				j.isTrue(k)
				return
			case what == "read" && (o.what == "edited" || o.what == "created"):
				reason = "it was changed, and not read"
			}
		}
		if what == "deleted" {
			if x.deleted {
				j.isTrue(k)
				return
			}
			for _, o := range x.operations {
				if o.what == "deleted" || o.what == "moved to" {
					reason = "it was there again later"
				}
			}
			if n := len(x.operations); n > 0 {
				refuting = append(refuting, x.operations[n-1].at)
			}
			continue
		}
		for _, o := range x.failed {
			if o.what == what {
				reason = "the call failed"
				refuting = append(refuting, o.at)
			}
		}
	}
	if what == "created" && len(refuting) == 0 {
		for _, x := range found {
			for _, o := range x.operations {
				if o.what == "edited" && o.typed {
					reason = "it was there before: it was edited"
					refuting = append(refuting, o.at)
				}
			}
		}
	}
	if what != "read" && j.perhaps(f.Path, 0) {
		j.unproved(k, st, what+": the command that would need not have run")
		return
	}
	if j.mayHave(f.Path, 0) && !(what == "created" && len(refuting) > 0) || what == "read" && j.readByShell(f.Path) {
		j.cannotTell(k)
		return
	}
	j.isFalse(k, st, what+": "+reason, refuting...)
}

// readByShell reports whether a command line names a file.
func (j *judge) readByShell(p string) bool {
	for _, c := range j.calls {
		if c.line != "" && c.result >= 0 && mentions(c.line, p) {
			return true
		}
	}
	return false
}

func (j *judge) lastTouch(f summary.File, found []*file, st claim) {
	if f.Turn == 0 {
		return
	}
	last, at := 0, -1
	for _, x := range found {
		for _, o := range x.operations {
			if f.Changed() && o.what == "read" {
				continue
			}
			if o.turn == f.Turn {
				// A command of a shell that names the file may be taken for a
				// touch or not; a call of a tool for files is one.
				if at >= 0 && last > f.Turn {
					continue
				}
			}
			if (o.typed || o.what != "read") && o.at > at {
				last, at = o.turn, o.at
			}
		}
	}
	switch {
	case last == f.Turn:
		j.isTrue(kindFileTurn)
	case last < f.Turn && (j.namedIn(f.Path, f.Turn, found) || j.mayHave(f.Path, f.Turn)):
		j.cannotTell(kindFileTurn)
	case last == 0:
		j.cannotTell(kindFileTurn)
	default:
		j.isFalse(kindFileTurn, st, fmt.Sprintf("it was changed last, or read where nothing changed it, in turn %d", last), at)
	}
}

// namedIn reports whether a command line of a turn names a file.
func (j *judge) namedIn(p string, turn int, found []*file) bool {
	for _, x := range found {
		for _, o := range x.operations {
			if o.turn == turn {
				return true
			}
		}
	}
	for _, c := range j.calls {
		if c.turn == turn && c.line != "" && mentions(c.line, p) {
			return true
		}
	}
	return false
}

var (
	noteRange = regexp.MustCompile(`^lines? (\d+)(?:[-–](\d+))?$`)
	noteFrom  = regexp.MustCompile(`^(?:from line|lines from) (\d+)$`)
	noteMoved = regexp.MustCompile(`^moved (from|to) (.+)$`)
)

func (j *judge) fileNote(f summary.File, note string, found []*file, st claim) {
	switch {
	case noteRange.MatchString(note):
		m := noteRange.FindStringSubmatch(note)
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		best := -1
		for _, x := range found {
			for _, o := range x.operations {
				if o.what != "read" {
					continue
				}
				if o.from == 0 && o.call != nil {
					// What it shows has no numbers; what was asked for must do.
					if c := o.call; c.num("offset") == from || mentions(c.line, m[1]) {
						j.cannotTell(kindFileNote)
						return
					}
				}
				if o.from <= from && o.to >= to && o.from > 0 {
					j.isTrue(kindFileNote)
					return
				}
				if o.from == from {
					best = o.to
				}
			}
		}
		reason := "no read shows these lines"
		if best > 0 {
			reason = fmt.Sprintf("the read that begins there ends at line %d", best)
		}
		if best < 0 && j.readByShell(f.Path) {
			j.cannotTell(kindFileNote)
			return
		}
		j.isFalse(kindFileNote, st, reason)
	case noteFrom.MatchString(note):
		from, _ := strconv.Atoi(noteFrom.FindStringSubmatch(note)[1])
		for _, x := range found {
			for _, o := range x.operations {
				if o.what == "read" && o.from == from {
					j.isTrue(kindFileNote)
					return
				}
			}
		}
		j.isFalse(kindFileNote, st, "no read begins at that line")
	case noteMoved.MatchString(note):
		m := noteMoved.FindStringSubmatch(note)
		for _, x := range found {
			for _, o := range x.operations {
				if o.what == "moved "+m[1] && (tail(o.path, m[2]) || tail(m[2], o.path) || strings.HasSuffix(m[2], "…") && strings.Contains(o.path, strings.TrimSuffix(m[2], "…"))) {
					j.isTrue(kindFileNote)
					return
				}
			}
		}
		if j.mayHave(f.Path, 0) {
			j.cannotTell(kindFileNote)
			return
		}
		j.isFalse(kindFileNote, st, "the log has no such move")
	default:
		j.cannotTell(kindFileNote)
	}
}

// changedAfter returns the files that were changed after a message, and how.
func (j *judge) changedAfter(p string, at int) (what string, when, turn int) {
	when = -1
	for _, x := range j.lookup(p) {
		for _, o := range x.operations {
			if o.what != "read" && o.at > at && o.at > when {
				what, when, turn = o.what, o.at, o.turn
			}
		}
	}
	return what, when, turn
}
