package crash_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sector is what a disk writes as a whole, in bytes.
const sector = 512

// disk is what a folder holds, as the system shows it and as it would be after the
// power went. It promises no more than POSIX does: what is written to a file lasts
// when the file is synced, a name in a folder when the folder is.
type disk struct {
	root    string
	now     map[string]*inode // by path, as the system shows it
	kept    map[string]*inode // by path, what lasts
	renamed []*renaming       // in order, what does not last yet
	waiting map[string]func(result int)
}

// inode is a file or a folder.
type inode struct {
	folder  bool
	size    int
	kept    []byte
	written []*write // in order, what does not last yet
}

// write is a change of a file's content.
type write struct {
	at   int
	data []byte
	cut  bool // the file ends at At
	done bool // the call has returned
}

// renaming is a change of the names in a folder: all of it lasts, or nothing.
type renaming struct {
	folder string
	names  map[string]*inode // nil for a name that is gone
}

func newDisk(root string) *disk {
	top := &inode{folder: true}
	return &disk{
		root: root, now: map[string]*inode{root: top}, kept: map[string]*inode{root: top},
		waiting: map[string]func(int){},
	}
}

// apply does what a call does.
func (d *disk) apply(c call) {
	if c.begins {
		d.waiting[c.pid] = d.begin(c)
	}
	if c.ends {
		if end := d.waiting[c.pid]; end != nil {
			end(c.result)
		}
		delete(d.waiting, c.pid)
	}
}

// begin does what a call may do before it returns, and returns what is left.
func (d *disk) begin(c call) func(int) {
	switch c.name {
	case "open":
		return d.open(c.path(0), c.args[1])
	case "openat":
		return d.open(c.path(1), c.args[2])
	case "write":
		return d.write(c, func(f *inode) int { return f.size })
	case "pwrite64":
		return d.write(c, func(*inode) int { return c.number(3) })
	case "ftruncate":
		f := d.now[c.args[0]]
		if f == nil {
			return nil
		}
		w := &write{at: c.number(1), cut: true}
		f.written = append(f.written, w)
		return func(int) { f.size, w.done = w.at, true }
	case "fsync", "fdatasync":
		return d.sync(c.args[0])
	case "linkat":
		return d.link(c.path(1), c.path(3), false)
	case "rename":
		return d.link(c.path(0), filepath.Clean(c.args[1]), true)
	case "renameat", "renameat2":
		return d.link(c.path(1), c.path(3), true)
	case "unlink", "rmdir":
		return d.remove(c.path(0))
	case "unlinkat":
		return d.remove(c.path(1))
	case "mkdir":
		return d.mkdir(c.path(0))
	case "mkdirat":
		return d.mkdir(c.path(1))
	}
	for n := range c.args {
		if strings.HasPrefix(c.args[n], d.root) {
			panic(fmt.Sprintf("%s(%q): this disk does not know the call", c.name, c.args))
		}
	}
	return nil
}

func (d *disk) rename(path string, names map[string]*inode) {
	for name, f := range names {
		if d.now[name] = f; f == nil {
			delete(d.now, name)
		}
	}
	d.renamed = append(d.renamed, &renaming{filepath.Dir(path), names})
}

// here says whether a path is on this disk.
func (d *disk) here(path string) bool { return strings.HasPrefix(path, d.root+"/") }

func (d *disk) open(path, flags string) func(int) {
	return func(result int) {
		if result < 0 || !d.here(path) {
			return
		}
		f := d.now[path]
		if f == nil {
			if !strings.Contains(flags, "O_CREAT") {
				panic(fmt.Sprintf("%s was opened, and nobody made it", path))
			}
			f = &inode{}
			d.rename(path, map[string]*inode{path: f})
		}
		if strings.Contains(flags, "O_TRUNC") && f.size > 0 {
			f.written, f.size = append(f.written, &write{cut: true, done: true}), 0
		}
	}
}

func (d *disk) write(c call, at func(*inode) int) func(int) {
	f := d.now[c.args[0]]
	if f == nil {
		return nil
	}
	w := &write{at: at(f), data: []byte(c.args[1])}
	f.written = append(f.written, w)
	return func(result int) {
		w.data, w.done = w.data[:max(0, result)], true
		f.size = max(f.size, w.at+len(w.data))
	}
}

// sync makes last what had been done when it was asked for.
func (d *disk) sync(path string) func(int) {
	f := d.now[path]
	if f == nil {
		return nil
	}
	if f.folder {
		renamed := slices.Clone(d.renamed)
		return func(int) {
			for _, r := range renamed {
				if r.folder == path {
					r.apply(d.kept)
					d.renamed = slices.DeleteFunc(d.renamed, func(other *renaming) bool { return other == r })
				}
			}
		}
	}
	var done []*write
	for _, w := range f.written {
		if w.done {
			done = append(done, w)
		}
	}
	return func(result int) {
		if result != 0 {
			return
		}
		for _, w := range done {
			f.kept = w.apply(f.kept)
		}
		f.written = slices.DeleteFunc(f.written, func(w *write) bool { return slices.Contains(done, w) })
	}
}

func (d *disk) link(from, to string, move bool) func(int) {
	return func(result int) {
		if f := d.now[from]; result == 0 && f != nil {
			names := map[string]*inode{to: f}
			if move {
				names[from] = nil
			}
			d.rename(to, names)
		}
	}
}

func (d *disk) remove(path string) func(int) {
	return func(result int) {
		if result == 0 && d.here(path) {
			d.rename(path, map[string]*inode{path: nil})
		}
	}
}

func (d *disk) mkdir(path string) func(int) {
	return func(result int) {
		if result == 0 && d.here(path) {
			d.rename(path, map[string]*inode{path: {folder: true}})
		}
	}
}

func (r *renaming) apply(names map[string]*inode) {
	for name, f := range r.names {
		if names[name] = f; f == nil {
			delete(names, name)
		}
	}
}

// apply returns the content after the write.
func (w *write) apply(content []byte) []byte {
	end := w.at + len(w.data)
	if more := end - len(content); more > 0 {
		content = append(content, make([]byte, more)...)
	}
	if w.cut {
		return content[:w.at]
	}
	copy(content[w.at:], w.data)
	return content
}

// torn returns the parts of a write that have come to the disk: each sector has or has not.
func (w *write) torn(random *rand.Rand) (parts []*write) {
	if w.cut {
		if random.IntN(2) == 0 {
			return []*write{w}
		}
		return nil
	}
	for from := 0; from < len(w.data); {
		to := min(len(w.data), from+sector-(w.at+from)%sector)
		if random.IntN(2) == 0 {
			parts = append(parts, &write{at: w.at + from, data: w.data[from:to]})
		}
		from = to
	}
	return parts
}

// lost makes in a folder what is left on the disk when the power goes: what was synced,
// and of the rest what chance wants.
func (d *disk) lost(random *rand.Rand, folder string) error {
	names := maps.Clone(d.kept)
	for _, r := range some(random, d.renamed) {
		r.apply(names)
	}
	for _, path := range slices.Sorted(maps.Keys(names)) {
		to := filepath.Join(folder, strings.TrimPrefix(path, d.root))
		if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
			continue // the folder that it was in is lost
		}
		f := names[path]
		var err error
		if f.folder {
			err = os.MkdirAll(to, 0o700)
		} else {
			err = os.WriteFile(to, f.lost(random), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lost is what is left of a file.
func (f *inode) lost(random *rand.Rand) []byte {
	content := slices.Clone(f.kept)
	whole := random.IntN(2) == 0
	for _, w := range some(random, f.written) {
		parts := []*write{w}
		if !whole {
			parts = w.torn(random)
		}
		for _, part := range parts {
			content = part.apply(content)
		}
	}
	return content
}

// some is nothing of a list, all of it, its beginning, or any part.
func some[T any](random *rand.Rand, all []T) []T {
	if len(all) == 0 {
		return nil
	}
	switch random.IntN(4) {
	case 0:
		return nil
	case 1:
		return all
	case 2:
		return all[:random.IntN(len(all))]
	}
	var part []T
	for _, x := range all {
		if random.IntN(2) == 0 {
			part = append(part, x)
		}
	}
	return part
}

// TestDisk: what was synced is there whatever chance wants, and what was not may be
// missing: a content, a part of it, a name, and a folder with all that is in it.
func TestDisk(t *testing.T) {
	calls, err := trace(strings.NewReader(`1 openat(AT_FDCWD</w>, "/d/safe", O_RDWR|O_CREAT, 0600) = 3</d/safe>
1 write(3</d/safe>, "` + strings.Repeat(`\x61`, 1200) + `", 1200) = 1200
1 fsync(3</d/safe>) = 0
1 openat(AT_FDCWD</w>, "/d", O_RDONLY) = 4</d>
1 fsync(4</d>) = 0
1 pwrite64(3</d/safe>, "` + strings.Repeat(`\x62`, 1200) + `", 1200, 0 <unfinished ...>
2 mkdirat(AT_FDCWD</w>, "/d/sub", 0700) = 0
2 fsync(3</d/safe>) = 0
1 <... pwrite64 resumed>) = 1200
2 openat(5</d/sub>, "file", O_RDWR|O_CREAT, 0600) = 6</d/sub/file>
2 write(6</d/sub/file>, "\x63", 1) = 1
2 fsync(6</d/sub/file>) = 0
2 openat(AT_FDCWD</w>, "/d/sub", O_RDONLY) = 5</d/sub>
2 fsync(5</d/sub>) = 0
2 unlink("/d/none") = -1 ENOENT (No such file or directory)
2 unlink("/d/safe") = ?
`))
	if err != nil {
		t.Fatal(err)
	}
	d := newDisk("/d")
	for _, c := range calls {
		d.apply(c)
	}
	seen := map[string]int{}
	for seed := range uint64(200) {
		folder := t.TempDir()
		if err := d.lost(rand.New(rand.NewPCG(seed, 0)), folder); err != nil {
			t.Fatal(err)
		}
		safe, err := os.ReadFile(filepath.Join(folder, "safe"))
		if err != nil || len(safe) != 1200 {
			t.Fatalf("what was synced is lost: %d bytes, %v", len(safe), err)
		}
		var sectors strings.Builder
		for at := 0; at < len(safe); at += sector {
			part := string(safe[at:min(len(safe), at+sector)])
			if strings.Trim(part, part[:1]) != "" {
				t.Fatalf("half a sector was written: %q", part)
			}
			sectors.WriteString(part[:1])
		}
		seen[sectors.String()]++
		file, err := os.ReadFile(filepath.Join(folder, "sub", "file"))
		seen[fmt.Sprintf("%s %v", file, errors.Is(err, fs.ErrNotExist))]++
	}
	for _, want := range []string{"aaa", "bbb", "aab", "aba", "abb", "baa", "bab", "bba", "c false", " true"} {
		if seen[want] == 0 {
			t.Errorf("%q never happened, of %v", want, seen)
		}
	}
}
