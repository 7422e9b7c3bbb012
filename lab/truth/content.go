package truth

import (
	"slices"
	"strings"
)

// content is what is known of the text of one file.
type content struct {
	whole bool // the first fragment is all of it
	parts []fragment
	gone  map[string]int // lines that were taken out, normalised, and by which message
	epoch int            // line numbers of different epochs do not compare
	// strange is the last message after which it may hold anything: a checkout, an
	// edit by somebody else; -1 when there is none.
	strange int
}

// fragment is a run of lines that stand one below the other.
type fragment struct {
	from  int // number of its first line; 0 when unknown
	epoch int
	lines []string
	known int // the message that shows it
	// fresh says that nothing happened since that cannot be followed; loose that
	// only a formatter or a build ran, which may have touched it.
	fresh, loose bool
	// open says that the first and the last line may be parts of longer lines.
	open bool
	keys []string // of the lines, when somebody asked for them
}

// at returns the key of a line.
func (f *fragment) at(i int) string {
	if len(f.keys) != len(f.lines) {
		f.keys = make([]string, len(f.lines))
		for i, l := range f.lines {
			f.keys[i] = lineKey(l)
		}
	}
	return f.keys[i]
}

// sure says that the line is whole and stands there.
func (f *fragment) sure(i int) bool {
	return (f.fresh || f.loose) && !(f.open && (i == 0 || i == len(f.lines)-1))
}

func newContent() *content { return &content{gone: map[string]int{}, strange: -1} }

func lineKey(s string) string { return normal(s) }

// fileLines splits text into lines; the end of the last line makes no line.
func fileLines(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// took notes which of the lines are no longer known to stand there.
func (c *content) took(lines []string, at int) {
	if len(lines) == 0 {
		return
	}
	there := map[string]bool{}
	for n := range c.parts {
		f := &c.parts[n]
		for i := range f.lines {
			if f.sure(i) {
				there[f.at(i)] = true
			}
		}
	}
	for _, l := range lines {
		if k := lineKey(l); k != "" && !there[k] {
			c.gone[k] = at
		}
	}
}

func (c *content) put(lines []string) {
	for _, l := range lines {
		delete(c.gone, lineKey(l))
	}
}

// rewrite is a write, or a read, of all of it.
func (c *content) rewrite(lines []string, at int) {
	old := c.parts
	c.epoch++
	c.parts = []fragment{{from: 1, epoch: c.epoch, lines: lines, known: at, fresh: true}}
	c.whole = true
	for _, f := range old {
		c.took(f.lines, at)
	}
	for k := range c.gone {
		if c.strange >= c.gone[k] {
			c.gone[k] = at // whatever happened, it is not there now
		}
	}
	c.strange = -1
	c.put(lines)
}

// empties is a deletion.
func (c *content) empties(at int) {
	old := c.parts
	c.parts, c.whole, c.strange = nil, true, -1
	for _, f := range old {
		c.took(f.lines, at)
	}
}

// saw is a read of some lines.
func (c *content) saw(from int, lines []string, at int) {
	if len(lines) == 0 {
		return
	}
	f := fragment{from: from, epoch: c.epoch, lines: lines, known: at, fresh: true}
	if c.whole && len(c.parts) == 1 && c.parts[0].fresh {
		all := c.parts[0].lines
		if from > 0 && from-1+len(lines) <= len(all) && sameLines(all[from-1:from-1+len(lines)], lines) {
			return // as known
		}
		if from == 0 {
			return
		}
	}
	if from == 0 {
		c.parts = append(c.parts, f)
		c.put(lines)
		return
	}
	var rest []fragment
	for _, p := range c.parts {
		if p.from == 0 || p.epoch != c.epoch {
			rest = append(rest, p)
			continue
		}
		lo, hi := max(p.from, from), min(p.from+len(p.lines), from+len(lines))
		if lo >= hi {
			rest = append(rest, p)
			continue
		}
		if !sameLines(p.lines[lo-p.from:hi-p.from], lines[lo-from:hi-from]) {
			// It changed without our seeing it.
			c.whole = false
			p.fresh, p.loose = false, false
			c.epoch++
			f.epoch = c.epoch
			rest = append(rest, p)
			for i := range rest {
				rest[i].fresh, rest[i].loose = false, false
			}
			continue
		}
		if n := lo - p.from; n > 0 {
			head := p
			head.lines, head.keys = p.lines[:n], nil
			rest = append(rest, head)
		}
		if n := p.from + len(p.lines) - hi; n > 0 {
			tail := p
			tail.from, tail.lines, tail.keys = hi, p.lines[len(p.lines)-n:], nil
			rest = append(rest, tail)
		}
	}
	c.whole = false
	// Runs that touch become one.
	for again := true; again; {
		again = false
		for i, p := range rest {
			if p.from == 0 || p.epoch != f.epoch || !p.fresh {
				continue
			}
			if p.from+len(p.lines) == f.from {
				f.from, f.lines = p.from, append(slices.Clone(p.lines), f.lines...)
			} else if f.from+len(f.lines) == p.from {
				f.lines = append(slices.Clone(f.lines), p.lines...)
			} else {
				continue
			}
			rest = slices.Delete(rest, i, i+1)
			again = true
			break
		}
	}
	c.parts = append(rest, f)
	c.put(lines)
}

func sameLines(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool {
		// Tools shorten long lines.
		return strings.TrimRight(x, " \t\r") == strings.TrimRight(y, " \t\r") || len(x) > 1900 && len(y) > 1900
	})
}

// edit is a replacement that succeeded.
func (c *content) edit(old, new string, all bool, at int) {
	old, new = strings.ReplaceAll(old, "\r\n", "\n"), strings.ReplaceAll(new, "\r\n", "\n")
	if old == new {
		return
	}
	if old == "" {
		if len(c.parts) == 0 {
			c.rewrite(fileLines(new), at)
		} else {
			c.parts = append(c.parts, fragment{lines: fileLines(new), known: at, fresh: true, open: true})
			c.whole = false
			c.put(fileLines(new))
		}
		return
	}
	found := false
	for _, fresh := range []bool{true, false} {
		for i := range c.parts {
			p := &c.parts[i]
			if p.fresh != fresh {
				continue
			}
			text := strings.Join(p.lines, "\n")
			if !strings.Contains(text, old) {
				continue
			}
			found = true
			n := 1
			if all {
				n = -1
			}
			after := strings.Split(strings.Replace(text, old, new, n), "\n")
			before := p.lines
			delta := len(after) - len(before)
			p.lines, p.keys, p.known = after, nil, at
			for k := range c.parts {
				if k != i && p.from > 0 && c.parts[k].epoch == p.epoch && c.parts[k].from > p.from {
					c.parts[k].from += delta
				}
			}
			c.took(changed(before, after), at)
			c.put(changed(after, before))
			if !all {
				break
			}
		}
		if found && !all {
			return
		}
	}
	if found {
		return
	}
	// It stands where we do not know the text, or half do.
	c.whole = false
	olds, news := strings.Split(old, "\n"), strings.Split(new, "\n")
	for i := range c.parts {
		c.parts[i].lines, c.parts[i].keys = withoutEnds(c.parts[i].lines, olds), nil
	}
	c.parts = slices.DeleteFunc(c.parts, func(f fragment) bool { return len(f.lines) == 0 })
	if len(olds) != len(news) {
		c.epoch++
	}
	c.parts = append(c.parts, fragment{lines: news, known: at, fresh: true, open: true})
	c.took(olds, at)
	c.put(news)
}

// changed are the lines of a that are not in b too at its beginning or end.
func changed(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a
}

// withoutEnds cuts off what old may have begun or ended in.
func withoutEnds(lines, old []string) []string {
	for n := min(len(lines), len(old)); n > 0; n-- {
		if slices.Equal(lines[len(lines)-n:], old[:n]) {
			lines = lines[:len(lines)-n]
			break
		}
	}
	for n := min(len(lines), len(old)); n > 0; n-- {
		if slices.Equal(lines[:n], old[len(old)-n:]) {
			return lines[n:]
		}
	}
	return lines
}

// doubt is a change that cannot be followed. After a strong one a line that was
// gone may be there again; a formatter brings none back.
func (c *content) doubt(at int, strong bool) {
	for i := range c.parts {
		p := &c.parts[i]
		p.loose = !strong && (p.fresh || p.loose)
		p.fresh = false
	}
	c.epoch++
	if strong {
		c.strange = at
	}
}

// line says what is known of a line that is quoted: the message that shows it
// there, or the one that took it out; -1 for none. Doubtful says that it may be
// there nevertheless, or may have been when the file was changed in a way that
// cannot be followed.
func (c *content) line(q string) (there, out int, doubtful bool) {
	key := lineKey(q)
	there, out = -1, -1
	for n := range c.parts {
		f := &c.parts[n]
		for i := range f.lines {
			if !sameLine(key, f.at(i)) {
				continue
			}
			if !f.sure(i) {
				doubtful = true
				continue
			}
			there = max(there, f.known)
		}
	}
	if there >= 0 {
		return there, -1, false
	}
	if at, ok := c.gone[key]; ok {
		out = at
	} else if strings.Contains(key, "…") {
		for k, at := range c.gone {
			if sameLine(key, k) {
				out = max(out, at)
			}
		}
	}
	if out >= 0 && c.strange > out {
		doubtful = true
	}
	return there, out, doubtful
}
