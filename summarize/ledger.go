package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ledgerPath returns the path under which a file stands in the list of files. A relative path
// with folders is taken for the absolute one that ends in it, if there is only one.
func (b *builder) ledgerPath(p string) string {
	if _, ok := b.fileAt[p]; ok || !strings.Contains(p, "/") {
		return p
	}
	base := p[strings.LastIndexByte(p, '/')+1:]
	same := ""
	if !b.effort.Spend(4 * len(b.based[base])) {
		return p // whether another is the same is not known
	}
	for _, q := range b.based[base] {
		if !b.endsIn(p, q) && !b.endsIn(q, p) {
			continue
		}
		if same != "" {
			same = ""
			break
		}
		same = q
	}
	switch {
	case same == "":
		if !b.placed[p] {
			b.placed[p], b.based[base] = true, append(b.based[base], p)
		}
		return p
	case len(p) > len(same): // the absolute path becomes known
		at := b.fileAt[same]
		b.Files[at].Path, b.fileAt[p] = p, at
		delete(b.fileAt, same)
		list := b.based[base]
		list[slices.Index(list, same)] = p
		return p
	}
	return same
}

// endsIn reports whether an absolute path ends in a relative one that has folders.
func (b *builder) endsIn(whole, part string) bool {
	return whole[0] == '/' && part[0] != '/' && part[0] != '~' && part[0] != '.' && strings.Contains(part, "/") && strings.HasSuffix(whole, "/"+part)
}

// touch adds an operation to the list of files and returns it as it was added.
func (b *builder) touch(op shell.FileOp, m *thread.Message) string {
	at, ok := b.fileAt[op.Path]
	if !ok {
		at = len(b.Files)
		b.fileAt[op.Path] = at
		b.Files = append(b.Files, summary.File{Path: op.Path})
	}
	f := &b.Files[at]
	name := op.Op
	if name == "created" && ok && !slices.Contains(f.Operations, "deleted") {
		name = "edited" // it was there before: a write over it
	}
	if name != "deleted" {
		// The file exists again.
		f.Operations = slices.DeleteFunc(f.Operations, func(op string) bool { return op == "deleted" })
	}
	if !slices.Contains(f.Operations, name) {
		f.Operations = append(f.Operations, name)
		slices.SortFunc(f.Operations, func(a, b string) int { return opOrder(a) - opOrder(b) })
	}
	if op.Op != "read" || !f.Changed() {
		f.Turn = m.Turn
	}
	if op.Note != "" {
		f.Note = addNote(f.Note, op.Note)
	}
	if n := len(f.Sources); n == 0 || f.Sources[n-1] != m.ID {
		f.Sources = append(f.Sources, m.ID)
	}
	if name == "deleted" && b.effort.Spend(len(b.Files)) { // and what lies in it, if it is a folder
		for i := range b.Files {
			in := &b.Files[i]
			if strings.HasPrefix(in.Path, op.Path+"/") && in.Changed() && !slices.Contains(in.Operations, "deleted") {
				in.Operations, in.Turn = append(in.Operations, "deleted"), m.Turn
				in.Sources = append(in.Sources, m.ID)
			}
		}
	}
	return name
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
