package summarize

import (
	"reflect"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
)

// What parts of facts take, in bytes, without the texts that they point to.
var (
	factsSize   = sizeFor[facts]()
	resultSize  = sizeFor[resultFacts]()
	callSize    = sizeFor[callFacts]()
	pieceSize   = sizeFor[piece]()
	mentionSize = sizeFor[mention]()
	stringSize  = sizeFor[string]()
	hunkSize    = sizeFor[hunk]()
	commandSize = 2 * sizeFor[shell.Command]() // and the step that is made of it
)

func sizeFor[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// size estimates the memory that facts take, in bytes.
func (f *facts) size() int {
	n := factsSize + len(f.user) + sizeOf(f.rules) + sizeOf(f.said) + sizeOf(f.recap) + mentionSize*cap(f.idents)
	for i := range f.calls {
		n += f.calls[i].size()
	}
	if r := f.result; r != nil {
		n += resultSize + len(r.text) + len(r.doc) + sizeOf(r.errorLines) + sizeOf(r.idLines) + sizeOf(r.report)
	}
	return n
}

func sizeOf(pieces []piece) int {
	n := pieceSize * cap(pieces)
	for i := range pieces {
		p := &pieces[i]
		n += len(p.text) + mentionSize*cap(p.idents) + sizeOfTexts(p.terms)
	}
	return n
}

func sizeOfTexts(texts []string) int {
	n := stringSize * cap(texts)
	for _, s := range texts {
		n += len(s)
	}
	return n
}

// size is that of a call. Its hunks and removed lines point into the texts that doc or changed
// count.
func (c *callFacts) size() int {
	n := callSize + len(c.Input) + mentionSize*(cap(c.inputIdents)+cap(c.idents)) + sizeOf(c.changed) + sizeOfTexts(c.removed) + hunkSize*cap(c.hunks) +
		sizeOfTexts(c.defines) + sizeOfTexts(c.dropped) + len(c.written.text) + sizeOfTexts(c.old) + sizeOfTexts(c.body)
	for _, r := range c.Replaced {
		n += 2*stringSize + len(r.Old) + len(r.New)
	}
	for _, h := range c.hunks {
		n += stringSize * (cap(h.minus) + cap(h.plus))
	}
	for _, t := range c.todos {
		n += 2*stringSize + len(t.text)
	}
	for _, op := range c.Files {
		n += 6*stringSize + len(op.Path) + len(op.Note)
		if op.By != nil {
			n += commandSize + len(op.By.Document)
		}
	}
	return n
}
