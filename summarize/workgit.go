package summarize

import (
	"slices"
	"strings"
)

// gitAct is what a command asks of git that changes where the work stands.
type gitAct struct {
	step    int
	verb    string // "commit", "push", "switch", "reset", "stash", "pop", "discard", "rebase", "show" (the branch), "status", "pr"
	subject string // of a commit; "" if it is not known
	amend   bool
	silent  bool // it prints nothing where it succeeds
	name    string
	fresh   bool     // of "switch": the branch is new
	refs    []string // what is pushed
}

// gitSafe are the subcommands of git that print nothing but git's own words: no
// content of files, no messages as they are.
var gitSafe = set("status add commit push branch checkout switch stash pull fetch rev-parse remote rm mv reset restore merge rebase cherry-pick " +
	"revert tag")

// quiet are commands that print nothing, or what the agent itself wrote.
var quiet = set("cd pushd export set true : sleep mkdir rm mv cp touch chmod pwd gofmt")

// quietStep reports whether a command cannot print lines that somebody else
// wrote.
func quietStep(s *step) bool {
	if len(s.words) == 0 || s.shown == notShown {
		return true
	}
	switch name := s.words[0].text; name {
	case "echo", "printf":
		for _, w := range s.words {
			if w.open {
				return false
			}
		}
		return true
	case "tail", "head", "tee": // of a pipe
		for _, w := range s.words[1:] {
			if !strings.HasPrefix(w.text, "-") && strings.Trim(w.text, "0123456789") != "" {
				return false
			}
		}
		return true
	case "git":
		sub, _, _ := gitWords(s)
		return gitSafe[sub]
	default:
		return quiet[name]
	}
}

// gitWords returns the subcommand of a call of git, its arguments, and the folder
// it is told to run in.
func gitWords(s *step) (sub string, args []word, dir string) {
	w := s.words
	if len(w) == 0 || w[0].text != "git" {
		return "", nil, ""
	}
	for w = w[1:]; len(w) > 0; w = w[1:] {
		switch {
		case w[0].text == "-C" && len(w) > 1:
			if dir = shellPath(w[1].text); dir == "" || w[1].open {
				dir = unknownDir
			}
			w = w[1:]
		case (w[0].text == "-c" || w[0].text == "--git-dir" || w[0].text == "--work-tree") && len(w) > 1:
			if w[0].text != "-c" {
				dir = unknownDir
			}
			w = w[1:]
		case strings.HasPrefix(w[0].text, "-"):
		default:
			return w[0].text, w[1:], dir
		}
	}
	return "", nil, dir
}

// readGit finds what a command asks of git; nil where that changes nothing.
func readGit(n int, s *step) *gitAct {
	if len(s.words) > 2 && s.words[0].text == "gh" && s.words[1].text == "pr" || len(s.words) > 2 && s.words[0].text == "glab" && s.words[1].text == "mr" {
		switch s.words[2].text {
		case "create", "edit", "ready":
			return &gitAct{step: n, verb: "pr", name: s.words[2].text}
		case "checkout":
			return &gitAct{step: n, verb: "switch"}
		case "view":
			for _, w := range s.words[3:] {
				if !strings.HasPrefix(w.text, "-") {
					return nil // that of something else, or a value: nobody knows
				}
			}
		}
		return nil
	}
	sub, args, _ := gitWords(s)
	a := &gitAct{step: n, verb: sub}
	var texts []string // arguments that are no options
	for _, w := range args {
		if !strings.HasPrefix(w.text, "-") {
			texts = append(texts, w.text)
		}
	}
	has := func(options ...string) bool {
		for _, w := range args {
			if slices.Contains(options, w.text) {
				return true
			}
		}
		return false
	}
	switch sub {
	case "commit":
		return readCommit(a, s, args)
	case "push":
		if has("-d", "--delete", "--tags", "-n", "--dry-run", "--mirror", "--prune") {
			return nil
		}
		if len(texts) > 1 {
			a.refs = texts[1:]
		}
		a.silent = has("-q", "--quiet")
		return a
	case "checkout", "switch":
		a.verb = "switch"
		for i, w := range args {
			if w.text == "--" || w.text == "-p" || w.text == "--patch" {
				return discards(a, args[i+1:])
			}
			if slices.Contains([]string{"-b", "-B", "-c", "-C", "--create", "--orphan"}, w.text) && i+1 < len(args) {
				a.fresh = len(texts) == 1
				if !args[i+1].open {
					a.name = args[i+1].text
				}
				return a
			}
		}
		if len(texts) == 1 && texts[0] == "." {
			return discards(a, args)
		}
		if len(texts) != 1 || has("--detach", "-d") {
			return &gitAct{step: n, verb: "detach"}
		}
		if !args[len(args)-1].open {
			a.name = texts[0]
		}
		a.silent = sub == "checkout" // a name may be that of a file
		return a
	case "restore":
		if has("--staged", "-S") && !has("--worktree", "-W") {
			return nil
		}
		return discards(a, args)
	case "reset":
		if has("--") || len(texts) > 1 || len(texts) == 1 && (strings.ContainsAny(texts[0], "*") || strings.Contains(texts[0], ".") && !strings.Contains(texts[0], "..")) {
			return nil // of files: the index only
		}
		a.name = "HEAD"
		if len(texts) == 1 {
			a.name = texts[0]
		}
		a.amend = has("--hard") // the files too
		return a
	case "stash":
		switch {
		case len(texts) == 0 || texts[0] == "push" || texts[0] == "save":
			return a
		case texts[0] == "pop" || texts[0] == "apply":
			a.verb = "pop"
			return a
		}
		return nil
	case "rebase", "filter-branch":
		a.verb = "rebase"
		return a
	case "merge", "cherry-pick", "revert", "am":
		a.verb = "pick" // makes commits of its own
		return a
	case "pull":
		if has("--rebase", "-r") || strings.Contains(s.text, "--rebase") {
			a.verb = "rebase"
			return a
		}
		return nil
	case "status":
		return a
	case "branch":
		switch {
		case has("--show-current"):
			a.verb = "show"
			return a
		case len(texts) == 0 && !has("-r", "--remotes", "--format"), len(texts) == 0 && has("-a", "-v", "-vv"):
			a.verb = "star"
			return a
		}
		return nil
	case "rev-parse":
		if has("--abbrev-ref") && len(texts) == 1 && texts[0] == "HEAD" {
			a.verb = "show"
			return a
		}
	}
	return nil
}

// discards is a call that takes back changes of files: of those it names, or of
// all where it names a folder or a pattern.
func discards(a *gitAct, args []word) *gitAct {
	a.verb = "discard"
	for _, w := range args {
		if strings.HasPrefix(w.text, "-") {
			continue
		}
		name := shellPath(w.text)
		if name == "" || w.open || name == "." || strings.HasSuffix(name, "/") {
			a.refs = nil
			return a
		}
		a.refs = append(a.refs, name)
	}
	return a
}

// readCommit reads the arguments of "git commit".
func readCommit(a *gitAct, s *step, args []word) *gitAct {
	known := false
	for i := 0; i < len(args); i++ {
		w := args[i]
		value := func() word {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return word{open: true}
		}
		take := func(w word) {
			if !known { // the first is the subject
				known = true
				if !w.open {
					a.subject = subjectOf(w.text)
				}
			}
		}
		switch {
		case w.text == "--":
			return a
		case w.text == "--dry-run" || w.text == "--short" || w.text == "--porcelain" || w.text == "--interactive":
			return nil
		case w.text == "--amend":
			a.amend = true
		case w.text == "-q" || w.text == "--quiet":
			a.silent = true
		case w.text == "-m" || w.text == "--message":
			take(value())
		case strings.HasPrefix(w.text, "--message="):
			take(word{strings.TrimPrefix(w.text, "--message="), w.open})
		case w.text == "-F" || w.text == "--file":
			if file := value(); file.text == "-" && s.body != "" {
				take(word{s.body, strings.ContainsAny(s.body, "$`")})
			} else {
				known = true
			}
		case w.text == "--author" || w.text == "--date" || w.text == "-C" || w.text == "-c" || w.text == "--fixup" || w.text == "-t" || w.text == "--trailer":
			value()
		case strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && len(w.text) > 2:
			// Options in one word: -am, -qm, -mtext.
			for j := 1; j < len(w.text); j++ {
				switch w.text[j] {
				case 'q':
					a.silent = true
				case 'm':
					if rest := w.text[j+1:]; rest != "" {
						take(word{rest, w.open})
					} else {
						take(value())
					}
					j = len(w.text)
				case 'F', 'C', 'c', 't', 'S', 'u':
					j = len(w.text)
				}
			}
		}
	}
	return a
}

// subjectOf is the subject that git takes from a message: its first paragraph on
// one line.
func subjectOf(message string) string {
	var words []string
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(line)
		if line == "" && len(words) > 0 {
			break
		}
		if line == "" || strings.HasPrefix(line, "#") && len(words) == 0 && len(message) > 1 && strings.Contains(message, "\n") {
			continue
		}
		words = append(words, line)
	}
	return strings.Join(words, " ")
}

// gitLine is a line of output with which git tells what it did.
type gitLine struct {
	kind               gitKind
	branch, hash, text string
}

type gitKind uint8

const (
	committed   gitKind = iota + 1 // "[main 1234567] subject"
	pushed                         // "1234567..89abcde main -> main"
	notPushed                      // "! [rejected]", "error: failed to push"
	onBranch                       // "On branch main"
	switched                       // "Switched to branch 'main'"
	starred                        // "* main"
	pullAddress                    // "https://github.com/o/r/pull/12"
	upToDate
)

// readGitLine reads one line of output.
func readGitLine(line string) (gitLine, bool) {
	if len(line) < 4 || len(line) > 1000 {
		return gitLine{}, false
	}
	switch c := line[0]; {
	case c == '[':
		head, subject, ok := strings.Cut(line[1:], "] ")
		if !ok {
			return gitLine{}, false
		}
		head = strings.Replace(head, "detached HEAD", "HEAD", 1)
		branch, hash, _ := strings.Cut(head, " ")
		hash = strings.TrimPrefix(hash, "(root-commit) ")
		if !isHash(hash) || !branchName(branch) {
			return gitLine{}, false
		}
		return gitLine{committed, branch, hash, subject}, true
	case c == '!':
		if strings.Contains(line, "rejected]") || strings.Contains(line, "[remote failure]") {
			return gitLine{kind: notPushed}, true
		}
	case strings.HasPrefix(line, "error: failed to push"), strings.HasPrefix(line, "fatal: "):
		return gitLine{kind: notPushed}, true
	case line == "Everything up-to-date":
		return gitLine{kind: upToDate}, true
	case strings.HasPrefix(line, "On branch "):
		if name := line[len("On branch "):]; branchName(name) {
			return gitLine{kind: onBranch, branch: name}, true
		}
	case strings.HasPrefix(line, "Switched to "), strings.HasPrefix(line, "Already on '"):
		if _, name, ok := strings.Cut(line, "'"); ok {
			if name = strings.TrimSuffix(name, "'"); branchName(name) {
				return gitLine{kind: switched, branch: name}, true
			}
		}
	case strings.HasPrefix(line, "https://"):
		if pullURL(line) {
			return gitLine{kind: pullAddress, text: line}, true
		}
	case c == '*' && line[1] == ' ' && line[2] != '[':
		if name, _, _ := strings.Cut(line[2:], " "); branchName(name) && name != "(HEAD" {
			return gitLine{kind: starred, branch: name}, true
		}
	}
	// A line of a push: a sign, "old..new" or "[new branch]", and where it went.
	if at := strings.Index(line, " -> "); at > 0 {
		left := strings.Fields(strings.TrimLeft(line[:at], "*+ "))
		if len(left) < 2 {
			return gitLine{}, false
		}
		name := left[len(left)-1]
		to, _, _ := strings.Cut(line[at+4:], " ")
		a, b, dots := strings.Cut(left[0], "..")
		if (dots && isHash(a) && isHash(strings.TrimPrefix(b, ".")) || left[0] == "[new" && left[1] == "branch]") && branchName(name) && branchName(to) {
			return gitLine{kind: pushed, branch: name, text: to}, true
		}
	}
	return gitLine{}, false
}

func isHash(s string) bool {
	if len(s) < 4 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func branchName(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsAny(s, " ~^:?*[\\\t'\"<>|")
}

// pullURL reports whether a text is the address of a pull or merge request.
func pullURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok || len(s) > 300 || strings.ContainsAny(s, " \t\"'<>") {
		return false
	}
	for _, mark := range [...]string{"/pull/", "/pulls/", "/merge_requests/", "/pull-requests/"} {
		if host, number, ok := strings.Cut(rest, mark); ok && strings.Count(host, "/") >= 2 && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}
