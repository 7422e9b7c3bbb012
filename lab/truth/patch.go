package truth

import "strings"

// patch replays a patch of the form "*** Begin Patch".
func (r *replay) patch(c *call, text string) {
	var f *file
	var old, new []string
	op := operation{at: c.result, turn: c.turn, typed: true, call: c}
	adding := false
	var added []string
	flush := func() {
		if f != nil && (len(old) > 0 || len(new) > 0) {
			f.operations[len(f.operations)-1].size.add(old, new, false)
			f.edit(strings.Join(old, "\n"), strings.Join(new, "\n"), false, c.result)
		}
		old, new = nil, nil
	}
	finish := func() {
		flush()
		if f != nil && adding {
			f.operations[len(f.operations)-1].size.add(nil, added, true)
			f.rewrite(added, c.result)
		}
		f, adding, added = nil, false, nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		head, p, ok := strings.Cut(line, ": ")
		o := op
		switch {
		case ok && head == "*** Add File":
			finish()
			f, adding = r.file(strings.TrimSpace(p)), true
			o.what, o.known = "created", f.seen
			f.did(o)
		case ok && head == "*** Update File":
			finish()
			f = r.file(strings.TrimSpace(p))
			o.what = "edited"
			f.did(o)
		case ok && head == "*** Delete File":
			finish()
			r.removed(r.absolute(strings.TrimSpace(p)), o)
		case ok && head == "*** Move to":
			flush()
			if f != nil {
				to := r.absolute(strings.TrimSpace(p))
				r.moved(f.path, to, false, o)
				f = r.file(to)
			}
		case strings.HasPrefix(line, "*** End Patch"):
			finish()
			return
		case strings.HasPrefix(line, "@@"):
			flush()
		case f == nil || line == "*** End of File":
		case adding:
			added = append(added, strings.TrimPrefix(line, "+"))
		case strings.HasPrefix(line, "+"):
			new = append(new, line[1:])
		case strings.HasPrefix(line, "-"):
			old = append(old, line[1:])
		default:
			l := strings.TrimPrefix(line, " ")
			old, new = append(old, l), append(new, l)
		}
	}
	finish()
}
