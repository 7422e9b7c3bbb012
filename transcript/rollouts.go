package transcript

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// A thread of Codex lies in several files, its rollouts. One begins where the thread was forked
// from another or where the user went back in it, and holds its own records only: history_base in its
// first line names the rollout that holds those before, and where they end.

// rollout is a file of Codex.
type rollout struct {
	path   string
	thread string
	id     string // that of the thread for its first rollout
}

// rolloutName matches the ids in the name of a rollout: of the thread, and of the rollout if it is
// not the first.
var rolloutName = lazyregexp.New(`^rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))?\.jsonl(?:\.zst)?$`)

// rolloutOf reads the name of a file; ok is false if it is no rollout.
func rolloutOf(path string) (r rollout, ok bool) {
	m := rolloutName().FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return rollout{path: path}, false
	}
	return rollout{path, m[1], cmp.Or(m[2], m[1])}, true
}

// codexFolders are where Codex keeps rollouts: those that the user archived lie apart.
var codexFolders = []string{"sessions", "archived_sessions"}

// rolloutsNear are the rollouts of the folder of Codex that a file lies in, or else those beside it.
func rolloutsNear(path string) (all []rollout) {
	add := func(path string) {
		if r, ok := rolloutOf(path); ok {
			all = append(all, r)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	for dir, levels := filepath.Dir(path), 0; levels < 5; dir, levels = filepath.Dir(dir), levels+1 { // sessions/2026/11/28/rollout
		if !slices.Contains(codexFolders, filepath.Base(dir)) {
			continue
		}
		for _, name := range codexFolders {
			// What cannot be read is missing where it is looked for, and told then.
			filepath.WalkDir(filepath.Join(filepath.Dir(dir), name), func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					add(path)
				}
				return nil
			})
		}
		return all
	}
	beside, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range beside {
		if e.Type().IsRegular() { // a link may lead anywhere, and a pipe may never end
			add(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return all
}

// historyBase is where a rollout goes on: before the record of that number of another one.
type historyBase struct {
	rollout string
	end     int64 // the number of the first record that it does not share; 0 if unknown
	offset  int64 // where that begins, in bytes; 0 if unknown
}

// baseOf reads the first record of a rollout; ok is false if it goes on from no other.
func baseOf(meta gjson.Result) (b historyBase, ok bool) {
	v := meta.Get("payload.history_base")
	b = historyBase{v.Get("thread_id").String(), max(0, v.Get("end_ordinal_exclusive").Int()), max(0, v.Get("end_byte_offset").Int())}
	return b, b.rollout != ""
}

// inherited is a rollout, of which the records before the base belong to a thread, with its first record.
type inherited struct {
	rollout
	historyBase
	meta gjson.Result
}

// inherit reads what a thread shares with others, the oldest first. What is missing is told.
func (s *codexSession) inherit(meta gjson.Result, line int) {
	base, more := baseOf(meta)
	if !more {
		return
	}
	if s.job.path == "" {
		s.report.warn(line, "the history before it is in the rollout %s, a file of its own, and was not read", base.rollout)
		return
	}
	near := rolloutsNear(s.job.path)
	read := map[string]bool{rolloutKey(s.job.path): true}
	var chain []inherited
	for looks := mostLooks; more; {
		from, found, circle := findRollout(near, base, read, &looks)
		if !found {
			why := "is in no file beside it"
			if circle {
				why = "goes on from this one, in a circle"
			}
			if looks < 0 {
				why = "is one of too many to look for"
			}
			s.report.warn(line, "its history goes on from the rollout %s, which %s: what came before is missing", base.rollout, why)
			break
		}
		chain = append(chain, from)
		read[rolloutKey(from.path)] = true
		base, more = baseOf(from.meta)
	}
	for _, part := range slices.Backward(chain) {
		s.readInherited(part)
	}
}

// mostLooks is how many times a file is opened to find the rollouts of one thread: for each of them all files
// of the thread may be. It is enough where the user went back two hundred times.
const mostLooks = 20_000

// rolloutKey is the same for a rollout and its copy that was packed or archived.
func rolloutKey(path string) string { return strings.TrimSuffix(filepath.Base(path), ".zst") }

// findRollout finds the rollout that a base names, by the id of the rollout, or of its thread. Of
// several it is the one in which a record ends where the base says. circle is true if one was found
// that is part of the history already. Each file that is opened is one of looks: without, none is found.
func findRollout(near []rollout, base historyBase, read map[string]bool, looks *int) (best inherited, found, circle bool) {
	rank := -1
	for _, r := range near {
		if r.id != base.rollout && r.thread != base.rollout {
			continue
		}
		if read[rolloutKey(r.path)] {
			circle = true
			continue
		}
		if *looks--; *looks < 0 {
			return best, false, false
		}
		meta, whole := beginning(r.path, base)
		n := 0
		if r.id == base.rollout {
			n = 1
		}
		if base.end > 0 && meta.Get("ordinal").Int() >= base.end {
			continue // it goes on from the base too
		}
		if whole {
			n += 2
		}
		if n > rank || n == rank && r.id > best.id {
			best, rank = inherited{r, base, meta}, n
		}
	}
	return best, rank >= 0, circle
}

// beginning reads the first record of a rollout. whole reports whether a record may end where the
// base says: in a packed file nobody knows before it is read.
func beginning(path string, base historyBase) (meta gjson.Result, whole bool) {
	f, err := os.Open(path)
	if err != nil {
		return meta, false
	}
	defer f.Close()
	in, err := newInput(f, defaultMaxLine, &Report{})
	if err != nil {
		return meta, false
	}
	if line, _, err := in.next(); err == nil {
		meta = gjson.ParseBytes(line)
	}
	var last [1]byte
	if base.offset > 0 && !strings.HasSuffix(path, ".zst") {
		n, _ := f.ReadAt(last[:], base.offset-1)
		return meta, n == 1 && last[0] == '\n'
	}
	return meta, true
}

// readInherited reads the records of a rollout before the base. Its warnings name it.
func (s *codexSession) readInherited(part inherited) {
	name := filepath.Base(part.path)
	own, report := s.report, &Report{Skipped: s.report.Skipped, Unknown: s.report.Unknown}
	s.report = report
	last, err := s.readUpTo(part)
	s.report = own
	own.Skipped, own.Unknown = report.Skipped, report.Unknown
	if report.cutOff != nil && err == nil {
		report.Warnings = append(report.Warnings, *report.cutOff)
	}
	for _, w := range report.Warnings {
		own.warn(0, "%s: %s", name, w)
	}
	switch missing := part.end - last - 1; {
	case err != nil:
		own.warn(0, "%s: the history that it shares with this thread could not be read to its end: %v", name, err)
	case part.end > 0 && missing > 0:
		own.warn(0, "%s: the last %s records that it shares with this thread are missing", name, clip.Number(int(missing)))
	}
}

// readUpTo reads the records of a rollout before the base. It returns the number of the last.
func (s *codexSession) readUpTo(part inherited) (last int64, err error) {
	last = -1
	f, err := os.Open(part.path)
	if err != nil {
		return last, err
	}
	defer f.Close()
	all, err := unpack(bufio.NewReaderSize(f, readSize), s.job.in.maxLine)
	if err != nil {
		return last, err
	}
	var r io.Reader = all
	if part.offset > 0 {
		r = io.LimitReader(r, part.offset)
	}
	in, err := newInput(r, s.job.in.maxLine, s.report)
	if err != nil {
		return last, err
	}
	for {
		line, _, err := in.next()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		v := gjson.ParseBytes(line)
		if n := v.Get("ordinal"); n.Exists() {
			if part.end > 0 && n.Int() >= part.end {
				return last, nil
			}
			last = n.Int()
		}
		s.read(v, 0)
	}
}

// warnOlder says that the user went back in the thread, if another rollout of it is newer than the
// one that is read.
func (s *codexSession) warnOlder() {
	own, ok := rolloutOf(s.job.path)
	if !ok {
		return
	}
	newest := own
	for _, r := range rolloutsNear(s.job.path) {
		if r.thread == own.thread && r.id > newest.id {
			newest = r
		}
	}
	if newest.id != own.id {
		s.report.warn(0, "the user went back in this thread and on in %s: the last turns here may have been taken back", filepath.Base(newest.path))
	}
}
