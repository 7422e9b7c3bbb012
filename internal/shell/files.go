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
		ops = appendFileOps(ops, Unwrap(c.Plain()), c)
		if len(ops) > mostFiles(bytes) {
			ops = ops[:from] // of all names or of none
		}
		for n := range ops[from:] {
			ops[from+n].By = c
		}
	}
	return slices.Clip(ops)
}

// appendFileOps adds what one command does to files; words are its own, without what only runs it.
// Names are relative to where the line began.
func appendFileOps(ops []FileOp, words []string, c *Command) []FileOp {
	place := func(name string) string {
		if name = Path(name); name == "" || name == "." || name == ".." {
			return ""
		}
		if c.Dir != "" && !path.IsAbs(name) && !strings.HasPrefix(name, "~") {
			if c.Dir == Unknown {
				return ""
			}
			name = path.Join(c.Dir, name)
		}
		return name
	}
	add := func(op, note string, names ...string) {
		for _, name := range names {
			if name = place(name); name != "" {
				ops = append(ops, FileOp{Path: name, Op: op, Note: note})
			}
		}
	}
	for _, w := range c.Writes {
		op := "created"
		if w.Append {
			op = "edited"
		}
		add(op, "", w.To)
	}
	if len(words) == 0 {
		return ops
	}
	name, args := words[0], words[1:]
	if name == "git" && len(args) > 1 {
		name, args = "git "+args[0], args[1:]
	}
	option := func(w string) bool { return strings.HasPrefix(w, "-") }
	files := slices.DeleteFunc(slices.Clone(args), option)
	switch name {
	case "rm", "unlink", "rmdir", "git rm":
		if !slices.Contains(args, "--cached") {
			add("deleted", "", files...)
		}
	case "touch", "tee":
		op := "created"
		if slices.Contains(args, "-a") {
			op = "edited"
		}
		add(op, "", files...)
	case "cat", "head", "tail", "nl", "less", "bat":
		add("read", "", slices.DeleteFunc(files, maybeNoFile)...)
	case "git restore":
		if !slices.ContainsFunc(args, func(w string) bool { return w == "-S" || w == "--staged" }) {
			add("edited", Restored, slices.DeleteFunc(valueOptions(args, "-s", "--source"), maybeNoFile)...)
		}
	case "git checkout":
		if at := slices.Index(args, "--"); at >= 0 {
			add("edited", Restored, slices.DeleteFunc(slices.Clone(args[at+1:]), maybeNoFile)...)
		}
	case "sed":
		script, files := sedFiles(args)
		op := "read"
		if slices.ContainsFunc(args, sedInPlace().MatchString) {
			op = "edited"
		}
		add(op, script, files...)
	case "mv", "git mv", "cp":
		if len(files) < 2 {
			break
		}
		target := files[len(files)-1]
		for _, name := range files[:len(files)-1] {
			to := target
			if len(files) > 2 || strings.HasSuffix(target, "/") || target == "." { // a folder
				to = path.Join(target, path.Base(name))
			}
			from := place(name)
			switch to = place(to); {
			case from == "" || to == "":
			case words[0] == "cp":
				ops = append(ops, FileOp{Path: to, Op: "created", Note: "copied from " + from})
			default:
				ops = append(ops, FileOp{Path: from, Op: "deleted", Note: "moved to " + to}, FileOp{Path: to, Op: "created", Note: "moved from " + from})
			}
		}
	}
	return ops
}

// valueOptions returns the words that are neither an option nor the value of one of these.
func valueOptions(args []string, options ...string) (rest []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(options, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			rest = append(rest, args[i])
		}
	}
	return rest
}

// sedInPlace is the option of sed to edit files: -i, -i.bak, -Ei.
var sedInPlace = lazyregexp.New(`^-(-in-place|[Enrsuz]*i[Enrsuzi]*(\.|$))`)

// sedFiles returns the script of a call of sed, the first of several, and its files.
func sedFiles(args []string) (script string, files []string) {
	files = slices.DeleteFunc(valueOptions(args, "-e", "-ne", "-f", "--expression", "--file"), func(w string) bool { return w == "" }) // sed -i ''
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

// maybeNoFile reports whether a word may be something other than a file: a number, a branch.
func maybeNoFile(w string) bool { return !strings.ContainsAny(w, "./") }

// printers are commands whose output is the content of something else, and gitPrinters those of git.
var (
	printers    = scan.WordSet("cat head tail grep rg sed awk ls find less diff jq echo curl gh wc tree strings")
	gitPrinters = scan.WordSet("blame branch cat-file describe diff grep log ls-files reflog remote rev-list rev-parse shortlog show status")
)

// OnlyPrints reports whether a command line only shows content.
func OnlyPrints(commands []Command) bool {
	some := false
	for i := range commands {
		c := &commands[i]
		switch words := Unwrap(c.Plain()); {
		case len(words) > 1 && words[0] == "git" && gitPrinters[words[1]], len(words) > 0 && (words[0] == "cd" || printers[words[0]]):
			some = true
		case len(words) > 0 || len(c.Words) > 0 && c.Words[0].Open:
			return false
		}
	}
	return some
}
