package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// FileOp is something that a command, or another tool, did to a file.
type FileOp struct {
	Path string
	Op   string // read, created, edited or deleted
	Note string
	By   *Command // the command of a line that does it; nil for another tool
}

// Restored is the note of a file that git put back.
const Restored = "restored by git"

// mostFiles bounds what is done to files by a command line of so many bytes.
func mostFiles(bytes int) int { return 64 + bytes/24 }

// Files finds the files that a command line creates, changes, deletes or prints. A word that may
// be something other than a path (a variable, a pattern, an option) is left out: a wrong list of
// files is worse than a short one. So is a command that names more files than its line has room for
// in words of some length.
func Files(commands []Command) []FileOp {
	var ops []FileOp
	bytes := 0
	for i := range commands {
		c := &commands[i]
		bytes += len(c.Text)
		from := len(ops)
		for _, w := range c.Writes {
			op := FileOp{Op: "created"}
			if w.Append {
				op.Op = "edited"
			}
			ops = c.appendOps(ops, op, w.To)
		}
		if words := Unwrap(c.Plain()); len(words) > 0 {
			ops = c.appendFiles(ops, words[0], words[1:])
		}
		if len(ops) > mostFiles(bytes) {
			ops = ops[:from] // of all names or of none
		}
	}
	return slices.Clip(ops)
}

// place is a path as seen from where the line began; "" if the word may be no path, or if nobody knows.
func (c *Command) place(name string) string {
	name = Path(name)
	switch {
	case name == "" || name == "." || name == "..":
		return ""
	case c.Dir == "" || path.IsAbs(name) || strings.HasPrefix(name, "~"):
		return name
	case c.Dir == Unknown:
		return ""
	}
	return path.Join(c.Dir, name)
}

// appendOps adds that a command does the same to some files.
func (c *Command) appendOps(ops []FileOp, op FileOp, names ...string) []FileOp {
	for _, name := range names {
		if op.Path, op.By = c.place(name), c; op.Path != "" {
			ops = append(ops, op)
		}
	}
	return ops
}

// does is what commands do to the files that they name.
var does = scan.Inverted(map[string]string{"deleted": "rm unlink rmdir", "created": "touch tee", "read": "cat head tail nl less bat sed"})

// appendFiles adds what a command does to the files among its arguments.
func (c *Command) appendFiles(ops []FileOp, name string, args []string) []FileOp {
	git := name == "git" && len(args) > 1
	if git {
		name, args = args[0], args[1:]
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(w string) bool { return slices.Contains(options, w) })
	}
	op, files := FileOp{Op: does[name]}, Operands(args)
	switch {
	case name == "mv" || name == "cp" && !git:
		return c.appendMoves(ops, name, files)
	case git && name == "restore" && !has("-S", "--staged"):
		op, files = FileOp{Op: "edited", Note: Restored}, Operands(args, "-s", "--source")
	case git && name == "checkout" && has("--"):
		op, files = FileOp{Op: "edited", Note: Restored}, slices.Clone(args[slices.Index(args, "--"):])
	case git && (name != "rm" || has("--cached")) || op.Op == "":
		return ops
	case name == "sed":
		if op.Note, files = sedFiles(args); slices.ContainsFunc(args, sedInPlace().MatchString) {
			op.Op = "edited"
		}
		return c.appendOps(ops, op, files...)
	case has("-a"): // of tee
		op.Op = "edited"
	}
	if op.Op == "read" || op.Note == Restored { // a number or a branch is no file
		files = slices.DeleteFunc(files, func(w string) bool { return !strings.ContainsAny(w, "./") })
	}
	return c.appendOps(ops, op, files...)
}

// appendMoves adds that files are moved or copied to the last of them.
func (c *Command) appendMoves(ops []FileOp, name string, files []string) []FileOp {
	for n := range max(len(files)-1, 0) {
		to := files[len(files)-1]
		if len(files) > 2 || strings.HasSuffix(to, "/") || to == "." { // a folder
			to = path.Join(to, path.Base(files[n]))
		}
		from, to := c.place(files[n]), c.place(to)
		switch {
		case from == "" || to == "":
		case name == "cp":
			ops = append(ops, FileOp{to, "created", "copied from " + from, c})
		default:
			ops = append(ops, FileOp{from, "deleted", "moved to " + to, c}, FileOp{to, "created", "moved from " + from, c})
		}
	}
	return ops
}

// Operands returns the words behind the name of a command that are neither options nor the values of these.
func Operands(args []string, valued ...string) (rest []string) {
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case slices.Contains(valued, w) || len(w) > 2 && w[0] == '-' && scan.IsLetter(w[1]) && slices.Contains(valued, "-"+w[len(w)-1:]): // -m, -am
			i++
		case w == "" || w[0] != '-':
			rest = append(rest, w)
		}
	}
	return rest
}

// sedInPlace is the option of sed to edit files: -i, -i.bak, -Ei.
var sedInPlace = lazyregexp.New(`^-(-in-place|[Enrsuz]*i[Enrsuzi]*(\.|$))`)

// sedFiles returns the script of a call of sed, the first of several, and its files.
func sedFiles(args []string) (script string, files []string) {
	files = slices.DeleteFunc(Operands(args, "-e", "-f", "--expression", "--file"), func(w string) bool { return w == "" }) // sed -i ''
	for i, w := range args {
		switch {
		case (w == "-e" || w == "-ne") && i+1 < len(args):
			return args[i+1], files
		case w == "-f" || strings.HasPrefix(w, "--expression") || strings.HasPrefix(w, "--file"):
			return "", files
		}
	}
	if len(files) == 0 {
		return "", nil
	}
	return files[0], files[1:]
}

// printers are commands whose output is the content of something else, and gitPrinters those of git.
var (
	printers    = scan.WordSet("cat head tail grep rg sed awk ls find less diff jq echo curl gh wc tree strings cd")
	gitPrinters = scan.WordSet("blame branch cat-file describe diff grep log ls-files reflog remote rev-list rev-parse shortlog show status")
)

// OnlyPrints reports whether a command line only shows content.
func OnlyPrints(commands []Command) bool {
	some := false
	for i := range commands {
		c := &commands[i]
		switch words := Unwrap(c.Plain()); {
		case len(words) > 1 && words[0] == "git" && gitPrinters[words[1]], len(words) > 0 && printers[words[0]]:
			some = true
		case len(words) > 0 || len(c.Words) > 0 && c.Words[0].Open:
			return false
		}
	}
	return some
}
