package truth

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	restores = regexp.MustCompile(`\bgit\b.*\b(checkout|restore|stash|reset|merge|rebase|pull|cherry-pick|revert|am|apply|switch|clean)\b`)
	formats  = regexp.MustCompile(`(?i)\b(fmt|format|gofmt|goimports|prettier|biome|black|ruff|eslint|lint|golangci-lint|fix|tidy|check|generate|stringer)\b`)
	runsOwn  = map[string]bool{"make": true, "npm": true, "pnpm": true, "yarn": true, "npx": true, "mise": true, "just": true, "task": true, "cargo": true, "bun": true, "uv": true, "poetry": true}
	scripts  = regexp.MustCompile(`^(python[\d.]*|node|ruby|perl|bash|sh|zsh|tsx|deno|php)$|^\.{0,2}/`)
	readers  = regexp.MustCompile(`^(cat|sed|head|tail|nl|less|more|bat|grep|egrep|rg|awk|wc|diff|jq|cut|sort|file|stat|od|xxd|strings)$`)
	sedRange = regexp.MustCompile(`^(\d+)(?:,(\d+))?p;?$`)
	// backAt is where Claude Code puts a shell back that left the project.
	backAt    = regexp.MustCompile(`(?m)^Shell cwd was reset to (/.*)$`)
	writesAny = regexp.MustCompile(`\b(write|open|writeFile|writeFileSync|write_text|unlink|rename|remove|rmtree|replace)\b`)
)

// ran replays a command line that succeeded.
func (r *replay) ran(c *call) {
	if i := strings.Index(c.line, "*** Begin Patch"); i >= 0 {
		r.patch(c, c.line[i:])
	}
	r.effects(c, func(int) bool { return true })
	r.git(c)
	if m := backAt.FindStringSubmatch(c.out); m != nil {
		r.cwd = path.Clean(m[1])
		r.dirs = append(r.dirs, seen{text: r.cwd, at: c.result})
	}
	if len(c.commands) == 1 && c.commands[0].name() == "pwd" {
		if d := strings.TrimSpace(c.out); path.IsAbs(d) && !strings.Contains(d, "\n") {
			r.dirs = append(r.dirs, seen{text: d, at: c.result})
		}
	}
}

// effects replays what the commands of a line did to files; came says of which of them it is known
// that they did it.
func (r *replay) effects(c *call, came func(int) bool) {
	dir := r.cwd
	went := func(dir string) {
		if c.end == succeeded {
			r.dirs = append(r.dirs, seen{text: dir, at: c.result, vague: !path.IsAbs(dir)})
		}
	}
	if d := c.str("workdir", "cwd", "directory", "working_directory"); d != "" {
		dir = path.Clean(d)
		went(dir)
	}
	known := func(w word) string { // the path that a word names
		p := w.text
		if p == "" || path.IsAbs(p) || strings.HasPrefix(p, "~") {
			return path.Clean(p)
		}
		if dir != "" && path.IsAbs(dir) {
			return path.Join(dir, p)
		}
		return r.absolute(path.Join(dir, p))
	}
	for i, cmd := range c.commands {
		name := cmd.name()
		args := cmd.args()
		if name == "git" && len(cmd.words) > 1 {
			sub, rest := gitCommand(cmd)
			switch sub {
			case "mv", "rm":
				name, args = sub, rest
			}
		}
		if name == "cd" {
			if len(args) > 0 && !args[0].dynamic {
				if p := args[0].text; path.IsAbs(p) || strings.HasPrefix(p, "~") {
					dir = path.Clean(p)
				} else {
					dir = path.Join(dir, p)
				}
				went(dir)
			}
			continue
		}
		if came(i) && !cmd.orElse {
			r.operate(c, i, name, args, known)
			r.redirected(c, cmd, name, args, known)
		} else {
			r.mayRedirect(c, cmd, known)
		}
		r.disturb(c, cmd, came(i) && !cmd.orElse)
	}
}

// operate replays what the i-th command of a line does to the files that it names.
func (r *replay) operate(c *call, i int, name string, args []word, known func(word) string) {
	op := operation{at: c.result, turn: c.turn, call: c}
	cmd := c.commands[i]
	sure := !cmd.orElse && !complains(c.out, name)
	switch name {
	case "rm", "unlink", "rmdir":
		for _, w := range args {
			if w.dynamic || !sure {
				r.vagueFile(c, w, known)
				continue
			}
			r.removed(known(w), op)
		}
	case "mv":
		if len(args) < 2 {
			return
		}
		to := args[len(args)-1]
		for _, w := range args[:len(args)-1] {
			if w.dynamic || to.dynamic || !sure {
				r.vagueFile(c, w, known)
				r.vagueFile(c, to, known)
				continue
			}
			r.moved(known(w), known(to), len(args) > 2 || strings.HasSuffix(to.text, "/"), op)
		}
	case "cp":
		if len(args) >= 2 && sure {
			to := known(args[len(args)-1])
			for _, w := range args[:len(args)-1] {
				if w.dynamic || strings.HasSuffix(args[len(args)-1].text, "/") || len(args) > 2 {
					r.vague = append(r.vague, vague{at: c.result, turn: c.turn, line: c.line})
					continue
				}
				f := r.file(to)
				o := op
				o.what, o.known = "created", f.seen
				f.doubt(c.result, true)
				f.did(o)
			}
		}
	case "touch", "tee":
		for _, w := range args {
			if w.dynamic {
				continue
			}
			f := r.file(known(w))
			o := op
			o.what, o.known = "created", f.seen
			if name == "tee" {
				f.doubt(c.result, true)
				if cmd.option("-a") && f.seen {
					o.what = "edited"
				}
			}
			f.did(o)
		}
	default:
		if readers.MatchString(name) && !(name == "sed" && inPlace(cmd)) {
			r.shellRead(c, i, cmd, name, args, known, op)
		}
	}
}

// redirected replays the redirections of a command.
func (r *replay) redirected(c *call, cmd command, name string, args []word, known func(word) string) {
	op := operation{at: c.result, turn: c.turn, call: c}
	for _, to := range cmd.redirect {
		if to.op == "<" || strings.HasPrefix(to.op, "<") || strings.HasPrefix(to.op, "2") || to.to.text == "/dev/null" || strings.HasPrefix(to.op, "&") {
			continue
		}
		if to.to.dynamic {
			r.vague = append(r.vague, vague{at: c.result, turn: c.turn, line: c.line})
			continue
		}
		f := r.file(known(to.to))
		o := op
		o.what, o.known = "created", f.seen
		if to.op == ">>" && f.seen {
			o.what = "edited"
		}
		switch {
		case to.op == ">" && name == "cat" && cmd.document != "" && len(args) == 0:
			o.size.add(nil, fileLines(cmd.document), true)
			f.rewrite(fileLines(cmd.document), c.result)
		case to.op == ">":
			f.doubt(c.result, true)
			f.whole = false
		default:
			f.doubt(c.result, false)
		}
		f.did(o)
	}
}

// gitCommand is the word after git and its options, and the words after it.
func gitCommand(cmd command) (string, []word) {
	w := cmd.words[1:]
	for len(w) > 0 && strings.HasPrefix(w[0].text, "-") {
		if (w[0].text == "-C" || w[0].text == "-c") && len(w) > 1 {
			w = w[1:]
		}
		w = w[1:]
	}
	if len(w) == 0 {
		return "", nil
	}
	return w[0].text, command{words: w}.args()
}

func inPlace(cmd command) bool {
	for _, w := range cmd.words {
		if strings.HasPrefix(w.text, "-i") || w.text == "--in-place" || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.HasSuffix(w.text, "i") && len(w.text) < 5 {
			return true
		}
	}
	return false
}

// complains reports whether a command says of itself that something is wrong.
func complains(out, name string) bool {
	return strings.HasPrefix(out, name+": ") || strings.Contains(out, "\n"+name+": ") || strings.Contains(out, "/"+name+": ")
}

// disturb notes what a command may have changed that cannot be followed; came says that it ran.
func (r *replay) disturb(c *call, cmd command, came bool) {
	name, at := cmd.name(), c.result
	line := cmd.plain()
	named := func(strong bool) {
		any := false
		for _, f := range r.files {
			if mentions(line+"\n"+cmd.document, f.path) {
				f.doubt(at, strong)
				any = true
			}
		}
		dynamic := false
		for _, w := range cmd.words {
			dynamic = dynamic || w.dynamic
		}
		r.vague = append(r.vague, vague{at: at, turn: c.turn, line: line + "\n" + cmd.document, all: dynamic && !any})
		if dynamic {
			r.doubtAll(at, strong)
		}
	}
	switch {
	case (name == "sed" || name == "perl") && inPlace(cmd):
		named(true)
		if came {
			for _, w := range cmd.args() {
				if f := r.files[r.absolute(w.text)]; f != nil && !w.dynamic {
					f.did(operation{what: "edited", at: at, turn: c.turn, call: c, known: true})
				}
			}
		}
	case name == "git" && restores.MatchString(line):
		sub, rest := gitCommand(cmd)
		if sub == "checkout" && cmd.option("-b", "-B") || sub == "switch" && cmd.option("-c", "-C") || sub == "stash" && len(rest) > 1 && (rest[1].text == "list" || rest[1].text == "show") {
			return
		}
		if sub == "reset" && !cmd.option("--hard", "--merge", "--keep") || sub == "apply" && cmd.option("--check", "--stat") {
			return
		}
		if (sub == "checkout" || sub == "restore") && len(rest) > 0 {
			one := false
			for _, f := range r.files {
				if mentions(line, f.path) {
					f.doubt(at, true)
					one = true
				}
			}
			if one {
				r.vague = append(r.vague, vague{at: at, turn: c.turn, line: line})
				return
			}
		}
		r.doubtAll(at, true)
		r.vague = append(r.vague, vague{at: at, turn: c.turn, all: true})
	case name == "patch":
		r.doubtAll(at, true)
		r.vague = append(r.vague, vague{at: at, turn: c.turn, all: true})
	case scripts.MatchString(cmd.words0()):
		code := line + "\n" + cmd.document
		if writesAny.MatchString(code) || strings.HasPrefix(cmd.words0(), ".") {
			named(true)
			r.vague = append(r.vague, vague{at: at, turn: c.turn, line: code, all: strings.HasPrefix(cmd.words0(), ".") || cmd.document == "" && !cmd.option("-c", "-e")})
		}
	case name == "xargs" || name == "find" && (cmd.option("-exec", "-delete") || strings.Contains(line, "-execdir")):
		named(true)
		r.vague = append(r.vague, vague{at: at, turn: c.turn, line: line, all: true})
	case formats.MatchString(line) && (runsOwn[name] || name == "go" || name == "gofmt" || name == "goimports" || name == "golangci-lint" || name == "prettier" || name == "biome" || name == "eslint" || name == "ruff" || name == "black"):
		if name == "go" && !strings.Contains(line, "fmt") && !strings.Contains(line, "generate") && !strings.Contains(line, "tidy") && !strings.Contains(line, " fix") {
			return
		}
		if name == "gofmt" && !cmd.option("-w") {
			return
		}
		r.doubtAll(at, false)
		r.vague = append(r.vague, vague{at: at, turn: c.turn, line: line})
	case name == "make" || runsOwn[name] && (strings.Contains(line, " run ") || name == "mise" || name == "just" || name == "task"):
		r.doubtAll(at, false)
		r.vague = append(r.vague, vague{at: at, turn: c.turn, line: line})
	}
}

func (c command) words0() string {
	if len(c.words) == 0 {
		return ""
	}
	return c.words[0].text
}

// mentions reports whether a text names a file.
func mentions(s, p string) bool {
	base := path.Base(p)
	for i := 0; ; {
		n := strings.Index(s[i:], base)
		if n < 0 {
			return false
		}
		i += n
		before, after := i == 0 || !pathByte(s[i-1]) || s[i-1] == '/' || s[i-1] == '*', i+len(base) >= len(s) || !pathByte(s[i+len(base)]) || s[i+len(base)] == '.' || s[i+len(base)] == '/'
		if before && after {
			return true
		}
		i++
	}
}

func pathByte(b byte) bool {
	return b == '_' || b == '-' || b == '.' || b == '/' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

func (r *replay) vagueFile(c *call, w word, known func(word) string) {
	r.vague = append(r.vague, vague{at: c.result, turn: c.turn, line: c.line + "\n" + known(w)})
}

// removed replays a deletion, of a file or of a folder.
func (r *replay) removed(p string, op operation) {
	op.what = "deleted"
	under := p + "/"
	for k, f := range r.files {
		if strings.HasPrefix(k, under) {
			f.empties(op.at)
			f.did(op)
		}
	}
	f := r.file(p)
	f.empties(op.at)
	f.did(op)
}

// moved replays a move, of a file or of a folder.
func (r *replay) moved(from, to string, into bool, op operation) {
	if into || r.isFolder(to) {
		to = path.Join(to, path.Base(from))
	}
	move := func(a, b string) {
		src, dst := r.file(a), r.file(b)
		gone, come := op, op
		gone.what, gone.path = "moved to", b
		come.what, come.path, come.known = "moved from", a, dst.seen
		dst.content = src.content
		dst.did(come)
		src.content = newContent()
		src.whole = true
		for _, f := range dst.parts {
			src.took(f.lines, op.at)
		}
		src.did(gone)
	}
	under := from + "/"
	var inside []string
	for k := range r.files {
		if strings.HasPrefix(k, under) {
			inside = append(inside, k)
		}
	}
	for _, k := range inside {
		move(k, path.Join(to, strings.TrimPrefix(k, under)))
	}
	move(from, to)
}

func (r *replay) isFolder(p string) bool {
	for k := range r.files {
		if strings.HasPrefix(k, p+"/") {
			return true
		}
	}
	for _, c := range r.calls {
		for _, cmd := range c.commands {
			if cmd.name() == "mkdir" {
				for _, w := range cmd.args() {
					if w.text != "" && (tail(p, strings.TrimSuffix(w.text, "/")) || strings.Contains(w.text, "{")) {
						return true
					}
				}
			}
		}
	}
	return false
}

// shellRead replays a command that prints files.
func (r *replay) shellRead(c *call, i int, cmd command, name string, args []word, known func(word) string, op operation) {
	op.what = "read"
	if (name == "sed" || name == "grep" || name == "egrep" || name == "rg" || name == "awk" || name == "jq") && len(args) > 0 && !cmd.option("-e", "-f") {
		args = args[1:]
	}
	if name == "head" || name == "tail" {
		for len(args) > 0 && isNumber(args[0].text) {
			args = args[1:]
		}
	}
	alone := !cmd.piped && len(cmd.redirect) == 0
	for k, other := range c.commands {
		if k != i && other.name() != "cd" {
			alone = false
		}
	}
	for _, w := range args {
		if w.dynamic || isNumber(w.text) {
			continue
		}
		p := known(w)
		f := r.files[p]
		if f == nil {
			if !alone && !looksLikeFile(w.text) {
				continue
			}
			f = r.file(p)
		}
		o := op
		body := c.out
		if m := strings.Index(body, "\nOutput:\n"); m >= 0 && strings.HasPrefix(body, "Chunk ID") {
			body = body[m+len("\nOutput:\n"):]
		}
		switch {
		case !alone || len(args) != 1 || strings.Contains(body, "truncated"):
		case name == "cat" && !strings.Contains(strings.Join(wordTexts(cmd.words), " "), " -"):
			o.from = 1
			lines := fileLines(body)
			o.to = len(lines)
			if c.code <= 0 && !strings.HasPrefix(body, "Exit code") {
				f.rewrite(lines, c.result)
			}
		case name == "sed" && cmd.option("-n") && len(cmd.args()) == 2:
			if m := sedRange.FindStringSubmatch(cmd.args()[0].text); m != nil {
				o.from, _ = strconv.Atoi(m[1])
				lines := fileLines(body)
				o.to = o.from + len(lines) - 1
				f.saw(o.from, lines, c.result)
			}
		case name == "head":
			lines := fileLines(body)
			o.from, o.to = 1, len(lines)
			f.saw(1, lines, c.result)
		}
		seen, deleted := f.seen, f.deleted
		f.did(o)
		if !alone { // its output may be an error that went elsewhere
			f.seen, f.deleted = seen, deleted
		}
	}
}

func wordTexts(ws []word) []string {
	var out []string
	for _, w := range ws {
		out = append(out, w.text)
	}
	return out
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(strings.TrimPrefix(s, "+"))
	return err == nil
}

func looksLikeFile(s string) bool {
	return strings.Contains(s, "/") || strings.Contains(s, ".") && !strings.ContainsAny(s, " \t\n()")
}
