package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// FileOp is something that a command, or another tool, did to a file.
type FileOp struct {
	Path string
	Op   string // read, created, edited or deleted
	Note string
}

// Files finds the files that a command line surely creates, changes, deletes or prints. A
// word that may be something other than a path (a variable, a pattern, an option) is left
// out: a wrong list of files is worse than a short one.
func Files(commands []Command) []FileOp {
	var ops []FileOp
	dir := "" // where "cd" went
	depth := 0
	loop, values := "", []string(nil)
	for i := range commands {
		words := Unwrap(commands[i].Plain())
		if len(words) > 0 && words[0] == "do" {
			words = words[1:]
		}
		name, args := "", words
		if len(words) > 0 {
			name, args = words[0], words[1:]
		}
		switch name {
		case "while", "until":
			return ops // how often the rest runs is unknown
		case "if", "case":
			depth++
		case "fi", "esac":
			depth--
		case "for":
			if loop = ""; len(args) > 2 && args[1] == "in" {
				loop, values = "$"+args[0], args[2:]
			}
		case "done":
			loop = ""
		}
		if depth > 0 {
			continue // whether it ran is unknown
		}
		if name == "cd" || name == "pushd" || name == "popd" {
			if dir = Join(dir, commands[i].ChangesTo()); dir == Unknown {
				return ops // where the rest runs is unknown
			}
			continue
		}
		at := slices.Index(words, loop)
		if loop == "" || at < 0 {
			ops = AppendFileOps(ops, words, commands[i].Writes, dir)
			continue
		}
		for _, value := range values {
			words = slices.Clone(words)
			words[at] = value
			ops = AppendFileOps(ops, words, commands[i].Writes, dir)
		}
	}
	return ops
}

// AppendFileOps adds what one command does to files; their names are relative to dir.
func AppendFileOps(ops []FileOp, words []string, writes []Write, dir string) []FileOp {
	place := func(name string) string {
		if name = Path(name); name == "" || name == "." || name == ".." {
			return ""
		}
		if dir != "" && !path.IsAbs(name) && !strings.HasPrefix(name, "~") {
			name = path.Join(dir, name)
		}
		return name
	}
	add := func(op, note string, names ...string) {
		for _, name := range names {
			if name = place(name); name != "" {
				ops = append(ops, FileOp{name, op, note})
			}
		}
	}
	for _, w := range writes {
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
		add("deleted", "", files...)
	case "touch", "tee":
		add("created", "", files...)
	case "cat", "head", "tail", "nl", "less", "bat":
		add("read", "", slices.DeleteFunc(files, maybeNoFile)...)
	case "git restore":
		add("edited", "restored by git", slices.DeleteFunc(files, maybeNoFile)...)
	case "git checkout":
		if slices.Contains(args, "--") {
			add("edited", "restored by git", slices.DeleteFunc(files, maybeNoFile)...)
		}
	case "sed":
		if len(files) < 2 {
			break
		}
		op := "read"
		if slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "-i") }) {
			op = "edited"
		}
		add(op, files[0], files[len(files)-1])
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
				ops = append(ops, FileOp{to, "created", "copied from " + from})
			default:
				ops = append(ops, FileOp{from, "deleted", "moved to " + to}, FileOp{to, "created", "moved from " + from})
			}
		}
	}
	return ops
}

// maybeNoFile reports whether a word may be something other than a file: a number, a branch.
func maybeNoFile(w string) bool { return !strings.ContainsAny(w, "./") }

// printers are commands whose output is the content of something else.
var printers = scan.WordSet("cat head tail grep rg sed awk ls find git less diff jq echo curl gh wc tree strings")

// OnlyPrints reports whether a command line only shows content.
func OnlyPrints(commands []Command) bool {
	some := false
	for i := range commands {
		c := &commands[i]
		switch words := Unwrap(c.Plain()); {
		case len(words) > 0 && (words[0] == "cd" || printers[words[0]]):
			some = true
		case len(words) > 0 || len(c.Words) > 0 && c.Words[0].Open:
			return false
		}
	}
	return some
}
