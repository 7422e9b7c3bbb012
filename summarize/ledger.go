package summarize

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// addFiles adds what a call did to files to the list of files.
func (b *builder) addFiles(x *exchange) {
	did, _ := x.call.Did(&x.result.Result)
	for _, op := range did {
		op.Path = b.ledgerPath(op.Path)
		if x.result.FileExisted && op.Op == "created" {
			op.Op = "edited"
		}
		b.touch(op, x.asked)
	}
}

// ledgerPath returns the path under which a file stands in the list of files. A relative path
// with folders is taken for the absolute one that ends in it, if there is only one.
func (b *builder) ledgerPath(p string) string {
	base := path.Base(p)
	if _, ok := b.fileAt[p]; ok || !strings.Contains(p, "/") || !b.effort.Spend(4*len(b.based[base])) {
		return p // or whether another is the same is not known
	}
	same := slices.Clone(b.based[base])
	same = slices.DeleteFunc(same, func(q string) bool { return !endsIn(p, q) && !endsIn(q, p) })
	switch {
	case len(same) != 1:
		b.based[base] = append(b.based[base], p)
		return p
	case len(p) > len(same[0]): // the absolute path becomes known
		at := b.fileAt[same[0]]
		b.Files[at].Path, b.fileAt[p] = p, at
		delete(b.fileAt, same[0])
		b.based[base][slices.Index(b.based[base], same[0])] = p
		return p
	}
	return same[0]
}

// endsIn reports whether an absolute path ends in a relative one that has folders.
func endsIn(whole, part string) bool {
	return whole[0] == '/' && strings.IndexByte("/~.", part[0]) < 0 && strings.Contains(part, "/") && strings.HasSuffix(whole, "/"+part)
}

// touch adds an operation to the list of files.
func (b *builder) touch(op shell.FileOp, m *thread.Message) {
	at, ok := b.fileAt[op.Path]
	if !ok {
		at = len(b.Files)
		b.fileAt[op.Path] = at
		b.Files = append(b.Files, summary.File{Path: op.Path})
	}
	f := &b.Files[at]
	if op.Op == "created" && ok && !slices.Contains(f.Operations, "deleted") {
		op.Op = "edited" // it was there before: a write over it
	}
	if op.Op != "deleted" { // the file exists again
		f.Operations = slices.DeleteFunc(f.Operations, func(op string) bool { return op == "deleted" })
	}
	if !slices.Contains(f.Operations, op.Op) {
		f.Operations = append(f.Operations, op.Op)
		slices.SortFunc(f.Operations, func(a, b string) int { return opOrder(a) - opOrder(b) })
	}
	if op.Op != "read" || !f.Changed() {
		f.Turn = m.Turn
	}
	if op.Note != "" {
		f.Note = addNote(f.Note, op.Note)
	} else if op.Op != "read" && strings.HasSuffix(f.Note, shell.Restored) { // and changed again
		f.Note = strings.TrimSuffix(strings.TrimSuffix(f.Note, shell.Restored), ", ")
	}
	if n := len(f.Sources); n == 0 || f.Sources[n-1] != m.ID {
		f.Sources = append(f.Sources, m.ID)
	}
	if op.Op == "deleted" && b.effort.Spend(len(b.Files)) { // and what lies in it, if it is a folder
		for i := range b.Files {
			in := &b.Files[i]
			if strings.HasPrefix(in.Path, op.Path+"/") && in.Changed() && !slices.Contains(in.Operations, "deleted") {
				in.Operations, in.Turn = append(in.Operations, "deleted"), m.Turn
				in.Sources = append(in.Sources, m.ID)
			}
		}
	}
}

// fileOrder puts files that were changed before those that were read, the most and last touched first, and temporary
// ones last.
func fileOrder(a, b summary.File) int {
	rank := func(f *summary.File) int {
		switch {
		case work.Temporary(f.Path):
			return 0
		case f.Changed():
			return 2
		}
		return 1
	}
	return cmp.Or(rank(&b)-rank(&a), len(b.Sources)-len(a.Sources), b.Turn-a.Turn)
}

func opOrder(op string) int { return strings.Index("read created edited deleted", op) }

// maxNote bounds a note on a file, in bytes.
const maxNote = 66

// addNote keeps the two newest notes.
func addNote(old, note string) string {
	note = clip.Brief(note, maxNote)
	parts := strings.Split(old, ", ")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == note || p == "" })
	parts = append(parts, note)
	return strings.Join(parts[max(0, len(parts)-2):], ", ")
}
