package summarize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
)

// gitAct is what a command asks of git that changes where the work stands.
type gitAct struct {
	verb    gitVerb
	dir     string   // the folder that it is told to run in; "" for none
	name    string   // the branch or commit that it names
	subject string   // of a commit; "" if it is not known
	amend   bool     // of a commit; of a reset, that it takes the files too
	fresh   bool     // of a switch: the branch is new
	file    bool     // of a switch: the name may be that of a file
	refs    []string // what is pushed, or the files that are discarded
}

// gitVerb is what is asked of git.
type gitVerb uint8

const (
	gitCommit gitVerb = iota + 1
	gitPush
	gitSwitch
	gitDetach
	gitReset
	gitStash
	gitPop
	gitDiscard
	gitRebase
	gitPick // makes commits of its own
	gitTell // the branch alone
	gitStar // the branch, among others
	gitAsk  // for the status
	gitPull // a pull request
)

// gitSafe are the subcommands of git that print nothing but git's own words: no
// content of files, no messages as they are.
var gitSafe = set("status add commit push branch checkout switch stash pull fetch rev-parse remote rm mv reset restore merge rebase cherry-pick " +
	"revert tag")

// quiet are commands that print nothing, or what the agent itself wrote.
var quiet = set("cd pushd export set true : sleep mkdir rm mv cp touch chmod pwd gofmt")

// quietly reports whether a command cannot print lines that somebody else wrote.
func quietly(c *shell.Command) bool {
	if len(c.Words) == 0 || c.Shown == shell.NotShown {
		return true
	}
	switch name := c.Name(); name {
	case "echo", "printf":
		return !slices.ContainsFunc(c.Words, func(w shell.Word) bool { return w.Open })
	case "tail", "head", "tee": // of a pipe
		return !slices.ContainsFunc(c.Words[1:], func(w shell.Word) bool {
			return !strings.HasPrefix(w.Text, "-") && strings.Trim(w.Text, "0123456789") != ""
		})
	case "git":
		sub, _, _ := gitWords(c)
		return gitSafe[sub]
	default:
		return quiet[name]
	}
}

// gitWords returns the subcommand of a call of git, its arguments, and the folder
// it is told to run in.
func gitWords(c *shell.Command) (sub string, args []shell.Word, dir string) {
	if c.Name() != "git" {
		return "", nil, ""
	}
	for w := c.Words[1:]; len(w) > 0; w = w[1:] {
		option := w[0].Text
		valued := option == "-C" || option == "-c" || option == "--git-dir" || option == "--work-tree"
		switch {
		case valued && len(w) > 1:
			w = w[1:]
			if option == "-C" {
				dir = shell.Path(w[0].Text)
			}
			if option != "-c" && dir == "" || strings.HasPrefix(option, "--") {
				dir = shell.Unknown
			}
		case !strings.HasPrefix(option, "-"):
			return option, w[1:], dir
		}
	}
	return "", nil, dir
}

// readGit finds what a command asks of git; nil where that changes nothing.
func readGit(c *shell.Command) *gitAct {
	if name := c.Name(); len(c.Words) > 2 && (name == "gh" && c.Words[1].Text == "pr" || name == "glab" && c.Words[1].Text == "mr") {
		switch c.Words[2].Text {
		case "create", "edit", "ready":
			return &gitAct{verb: gitPull}
		case "checkout":
			return &gitAct{verb: gitSwitch}
		}
		return nil
	}
	sub, args, dir := gitWords(c)
	if sub == "" {
		return nil
	}
	a := &gitAct{dir: dir}
	var texts []string // arguments that are no options
	for _, w := range args {
		if !strings.HasPrefix(w.Text, "-") {
			texts = append(texts, w.Text)
		}
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(w shell.Word) bool { return slices.Contains(options, w.Text) })
	}
	first := ""
	if len(texts) > 0 {
		first = texts[0]
	}
	switch sub {
	case "commit":
		if has("--dry-run", "--short", "--porcelain", "--interactive") {
			return nil
		}
		a.verb = gitCommit
		a.readCommit(c, args)
	case "push":
		if has("-d", "--delete", "--tags", "-n", "--dry-run", "--mirror", "--prune") {
			return nil
		}
		a.verb = gitPush
		if len(texts) > 1 {
			a.refs = texts[1:]
		}
	case "checkout", "switch":
		a.readSwitch(sub, args, texts, has("--detach", "-d"))
	case "restore":
		if !has("--staged", "-S") || has("--worktree", "-W") {
			a.discard(args)
		}
	case "reset":
		if has("--") || len(texts) > 1 || strings.Contains(first, "*") || strings.Contains(first, ".") && !strings.Contains(first, "..") {
			return nil // of files: the index only
		}
		a.verb, a.name, a.amend = gitReset, cmp.Or(first, "HEAD"), has("--hard")
	case "stash":
		switch first {
		case "", "push", "save":
			a.verb = gitStash
		case "pop", "apply":
			a.verb = gitPop
		}
	case "rebase", "filter-branch":
		a.verb = gitRebase
	case "merge", "cherry-pick", "revert", "am":
		a.verb = gitPick
	case "pull":
		if has("-r") || strings.Contains(c.Text, "--rebase") {
			a.verb = gitRebase
		}
	case "status":
		a.verb = gitAsk
	case "branch":
		switch {
		case has("--show-current"):
			a.verb = gitTell
		case len(texts) == 0 && (!has("-r", "--remotes", "--format") || has("-a", "-v", "-vv")):
			a.verb = gitStar
		}
	case "rev-parse":
		if has("--abbrev-ref") && len(texts) == 1 && first == "HEAD" {
			a.verb = gitTell
		}
	}
	if a.verb == 0 {
		return nil
	}
	return a
}

// readSwitch reads the arguments of "git checkout" and "git switch"; texts are those
// that are no options.
func (a *gitAct) readSwitch(sub string, args []shell.Word, texts []string, detach bool) {
	a.verb = gitSwitch
	for i, w := range args {
		switch w.Text {
		case "--", "-p", "--patch":
			a.discard(args[i+1:])
			return
		case "-b", "-B", "-c", "-C", "--create", "--orphan":
			if i+1 < len(args) {
				a.fresh = len(texts) == 1
				a.name = known(args[i+1])
				return
			}
		}
	}
	switch {
	case len(texts) == 1 && texts[0] == ".":
		a.discard(args)
	case len(texts) != 1 || detach:
		*a = gitAct{verb: gitDetach, dir: a.dir}
	default:
		a.file = sub == "checkout"
		if known(args[len(args)-1]) != "" {
			a.name = texts[0]
		}
	}
}

// known is the text of a word; "" if nobody knows what it came to.
func known(w shell.Word) string {
	if w.Open {
		return ""
	}
	return w.Text
}

// discard is a call that takes back changes of files: of those it names, or of all
// where it names a folder or a pattern.
func (a *gitAct) discard(args []shell.Word) {
	a.verb = gitDiscard
	for _, w := range args {
		if strings.HasPrefix(w.Text, "-") {
			continue
		}
		name := shell.Path(w.Text)
		if name == "" || name == "." || strings.HasSuffix(name, "/") {
			a.refs = nil
			return
		}
		a.refs = append(a.refs, name)
	}
}

// readCommit reads the arguments of "git commit". The first message is the subject.
func (a *gitAct) readCommit(c *shell.Command, args []shell.Word) {
	told := false
	take := func(w shell.Word) {
		if !told {
			told = true
			a.subject = subjectOf(known(w))
		}
	}
	args = apart(args, "mFCct", "Su")
	for i := 0; i < len(args); i++ {
		value := shell.Word{Open: true}
		if i+1 < len(args) {
			value = args[i+1]
		}
		switch args[i].Text {
		case "--":
			return
		case "--amend":
			a.amend = true
		case "-m", "--message":
			take(value)
			i++
		case "-F", "--file":
			if value.Text == "-" && c.Document != "" {
				value = shell.Word{Text: c.Document, Open: strings.ContainsAny(c.Document, "$`")}
			} else {
				value.Open = true
			}
			take(value)
			i++
		case "--author", "--date", "-C", "-c", "--fixup", "-t", "--trailer":
			i++
		}
	}
}

// apart parts options that stand in one word, and those from their values: -am,
// -mtext, --message=text. A letter of valued takes the rest of its word or the next, one
// of rest only that.
func apart(args []shell.Word, valued, rest string) []shell.Word {
	var out []shell.Word
	for n, w := range args {
		switch {
		case w.Text == "--":
			return append(out, args[n:]...)
		case strings.HasPrefix(w.Text, "--"):
			name, value, ok := strings.Cut(w.Text, "=")
			out = append(out, shell.Word{Text: name})
			if ok {
				out = append(out, shell.Word{Text: value, Open: w.Open})
			}
		case !strings.HasPrefix(w.Text, "-") || len(w.Text) < 3:
			out = append(out, w)
		default:
			for i := 1; i < len(w.Text); i++ {
				out = append(out, shell.Word{Text: "-" + w.Text[i:i+1]})
				if strings.IndexByte(valued+rest, w.Text[i]) >= 0 {
					if i+1 < len(w.Text) && strings.IndexByte(valued, w.Text[i]) >= 0 {
						out = append(out, shell.Word{Text: w.Text[i+1:], Open: w.Open})
					}
					break
				}
			}
		}
	}
	return out
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
