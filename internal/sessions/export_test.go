package sessions

// WhileOpen notes what sessions are about, as Describe does, while others use the index.
func WhileOpen(f *Finder, list []Session, meanwhile func()) {
	describe(list)
	ix := f.openIndex()
	for i := range list { // as if nobody had known them
		delete(ix.Files, list[i].Path)
	}
	meanwhile()
	ix.keep(list, f.excludes)
	ix.save()
}
