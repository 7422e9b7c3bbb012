package work

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
)

// base is the folder that names are seen from.
func (f *fold) base() string { return cmp.Or(f.home, f.cwd) }

// scratch reports whether a folder is temporary while the work is elsewhere.
func (f *fold) scratch(dir string) bool { return Temporary(dir) && !Temporary(f.base()) }

// Temporary reports whether a folder lies in one of the system's folders for temporary files.
func Temporary(dir string) bool {
	dir, rooted := strings.CutPrefix(strings.TrimPrefix(dir, "/private"), "/")
	return rooted && (within(dir, "tmp") || within(dir, "var/tmp") || within(dir, "var/folders"))
}

// absolute is the whole path of a file named from a folder, as far as that is known.
func (f *fold) absolute(name, dir string) string {
	if path.IsAbs(name) || strings.HasPrefix(name, "~") || dir == shell.Unknown {
		return name
	}
	return path.Join(cmp.Or(dir, f.base()), name)
}

// resolve joins a folder to a base; shell.Unknown or "" if the result is unknown.
func resolve(base, dir string) string {
	switch {
	case dir == "":
		return base
	case path.IsAbs(dir):
		return path.Clean(dir)
	case dir == shell.Unknown || base == "" || base == shell.Unknown:
		return shell.Unknown
	}
	return path.Join(base, dir)
}

// within reports whether a path is a folder or lies in it.
func within(name, folder string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// near reports whether two folders may be of one repository: one is or holds the other, or is not known.
func near(a, b string) bool { return a == "" || b == "" || within(a, b) || within(b, a) }

// foreign reports whether a folder is surely not that of the work: neither above nor below the
// folder in which the shell was started.
func (f *fold) foreign(dir string) bool { return dir != shell.Unknown && !near(dir, f.base()) }

// setDirectory notes where a line left the shell; beside says that other calls were made in
// parallel.
func (f *fold) setDirectory(r *run, beside bool) {
	last := &r.steps[len(r.steps)-1]
	dir := resolve(r.base, last.End)
	if printed := r.output.firstLine; last.Name() == "pwd" && last.Alone && r.output.lines == 1 && path.IsAbs(printed) && !strings.ContainsAny(printed, " …") {
		dir = printed
	}
	known, keeps := dir != shell.Unknown && dir != "", r.Name == "Bash" // Claude Code's shell keeps its directory
	switch {
	case slices.ContainsFunc(r.Files, func(op shell.FileOp) bool { return op.Op == "deleted" && within(dir, f.absolute(op.Path, r.base)) }):
		f.cwd, f.work.Directory = "", state.Seen{}
	case keeps && last.End != "" && (beside || !known):
		f.cwd = "" // which of the parallel calls was the last is unknown
	case known:
		if f.work.Directory.Text != dir {
			f.work.Directory = r.by.seen(dir)
		}
		if keeps {
			f.cwd = dir
		}
	}
}
