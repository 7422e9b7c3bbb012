package work

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
)

// gitCall is a call of git that changes the state of the work, or shows it.
type gitCall struct {
	verb      gitVerb
	command   string   // "git pull", "git stash pop"
	dir       string   // the folder of "git -C"; "" for none
	name      string   // the branch or commit that it names
	subject   string   // of a commit; "" if unknown
	amend     bool     // of a commit
	all       bool     // of a commit or "git add": all changes of files that git knows
	untracked bool     // of "git add" of all: new files too
	hard      bool     // of a reset
	newBranch bool     // of a switch: the branch is new
	maybeFile bool     // of a switch: the name may be a file
	from      string   // of discarded files: the commit that they are taken from
	refs      []string // what is pushed, the files that are added, committed or discarded, the branch that is renamed
	unsure    bool     // of such files: which they are is not known
	maybeRev  bool     // of discarded files: the first may be a commit that they are taken from
}

// gitVerb is the kind of a call of git.
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
	gitClean
	gitPull
	gitRebase
	gitMerge        // merge, cherry-pick and the like, which make commits
	gitShowBranch   // prints the branch alone
	gitListBranches // lists the branches
	gitStatus       // status
	gitLog          // log of the current branch, the newest first, a line for each commit
	gitPullRequest  // a pull request
	gitMergePull    // merges a pull request, leaves its branch and deletes it
	gitRename       // gives a branch another name
	gitAdd
)

// gitOwnWords are the subcommands of git that print only git's own words, and neither contents of
// files nor messages.
var gitOwnWords = scan.WordSet("status add commit push branch checkout switch stash pull fetch rev-parse remote rm mv reset restore merge rebase cherry-pick " +
	"revert tag")

// quietCommands print nothing, or only words of the agent.
var quietCommands = scan.WordSet("cd pushd popd export set true : sleep mkdir rm mv cp touch chmod pwd gofmt test [ [[")

// printsOwnWords reports whether a command cannot print lines that others wrote.
func printsOwnWords(c *shell.Command) bool {
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
		return gitOwnWords[sub]
	default:
		return quietCommands[name]
	}
}

// ReadUnsure reads the commands of a line with loops, conditions or subshells, or that could not be read, of
// which nobody knows which ran: whether one adds files, or commits where the shell is.
func (c *Call) ReadUnsure(line []shell.Command) {
	if !shellSpeech[toolclass.Normal(c.Name)] {
		return
	}
	c.ownWords = true
	c.readMassEdit(line)
	moves := false
	for i := range line {
		command := &line[i]
		sub, _, dir := gitWords(command)
		c.mayAdd = c.mayAdd || sub == "add" || command.Unread()
		if sub == "commit" || command.Unread() {
			git := readGit(command)
			c.mayCommit, c.commitsPart = true, c.commitsPart || git == nil || !git.all
		}
		moves = moves || dir != "" || command.To != ""
		c.ownWords = c.ownWords && printsOwnWords(command)
	}
	c.mayCommit = c.mayCommit && !moves
}

// gitWords returns the subcommand of a call of git, its arguments, and the folder of -C.
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

// readGit reads a call of git, gh or glab; nil if it is of no interest.
func readGit(c *shell.Command) *gitCall {
	if name := c.Name(); len(c.Words) > 2 && (name == "gh" && c.Words[1].Text == "pr" || name == "glab" && c.Words[1].Text == "mr") {
		switch c.Words[2].Text {
		case "create", "edit", "ready":
			return &gitCall{verb: gitPullRequest}
		case "checkout":
			return &gitCall{verb: gitSwitch, command: "gh pr checkout"}
		case "merge":
			if slices.ContainsFunc(c.Words, func(w shell.Word) bool { return w.Text == "-d" || w.Text == "--delete-branch" }) {
				return &gitCall{verb: gitMergePull, command: "gh pr merge"}
			}
		}
		return nil
	}
	sub, args, dir := gitWords(c)
	if sub == "" {
		return nil
	}
	a := &gitCall{dir: dir, command: "git " + sub}
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
	case "add":
		if has("-n", "--dry-run") {
			return nil
		}
		a.readAdd(args, has)
	case "restore":
		if !has("--staged", "-S") || has("--worktree", "-W") {
			a.verb = gitDiscard
			a.readRestored(args)
		}
	case "reset":
		if !has("--hard", "--soft", "--mixed", "--keep", "--merge") && (len(texts) > 1 || has("--") || first != "" && !namesCommit(first)) {
			return nil // of files: only the index
		}
		a.verb, a.name, a.hard = gitReset, cmp.Or(first, "HEAD"), has("--hard", "--keep", "--merge")
	case "clean":
		if !has("-n", "--dry-run") {
			a.verb = gitClean
		}
	case "stash":
		switch first {
		case "", "push", "save":
			a.verb = gitStash
		case "pop", "apply":
			a.verb, a.command = gitPop, "git stash "+first
		}
	case "rebase", "filter-branch":
		a.verb = gitRebase
	case "merge", "cherry-pick", "revert", "am":
		a.verb = gitMerge
	case "pull":
		a.verb = gitPull
		if has("-r") || strings.Contains(c.Text, "--rebase") {
			a.verb = gitRebase
		}
	case "status":
		a.verb = gitStatus
	case "log":
		if isPlainLog(args) {
			a.verb = gitLog
		}
	case "branch":
		switch {
		case has("--show-current"):
			a.verb = gitShowBranch
		case has("-m", "-M", "--move") && len(texts) > 0:
			a.verb, a.name, a.refs = gitRename, texts[len(texts)-1], texts[:len(texts)-1]
		case len(texts) == 0 && (!has("-r", "--remotes", "--format") || has("-a", "-v", "-vv")):
			a.verb = gitListBranches
		}
	case "rev-parse":
		if has("--abbrev-ref") && len(texts) == 1 && first == "HEAD" {
			a.verb = gitShowBranch
		}
	}
	if a.verb == 0 {
		return nil
	}
	return a
}

// plainLogOptions are options of "git log" that leave the first line to the newest commit.
var plainLogOptions = scan.WordSet("-n --decorate --no-decorate --stat --name-only --no-color --abbrev-commit --no-pager")

// isPlainLog reports whether the arguments of "git log" make it begin with the newest commit of
// the current branch, on one line.
func isPlainLog(args []shell.Word) bool {
	oneline := false
	for _, w := range args {
		switch option := w.Text; {
		case option == "--oneline":
			oneline = true
		case w.Open || !plainLogOptions[option] && strings.Trim(strings.TrimPrefix(strings.TrimPrefix(option, "-"), "n"), "0123456789") != "":
			return false
		}
	}
	return oneline
}

// readSwitch reads the arguments of "git checkout" and "git switch"; texts are those that are no
// options.
func (a *gitCall) readSwitch(sub string, args []shell.Word, texts []string, detach bool) {
	a.verb = gitSwitch
	for i, w := range args {
		switch w.Text {
		case "--", "-p", "--patch":
			a.verb = gitDiscard
			a.named(args[i+1:])
			a.unsure = a.unsure || w.Text != "--"
			if i > 0 && !strings.HasPrefix(args[i-1].Text, "-") {
				a.from = args[i-1].Text
			}
			return
		case "-b", "-B", "-c", "-C", "--create", "--orphan":
			if i+1 < len(args) {
				a.newBranch = len(texts) == 1
				a.name = known(args[i+1])
				return
			}
		}
	}
	switch {
	case detach || len(texts) == 0:
		a.verb = gitDetach
	case len(texts) > 1 || texts[0] == ".": // only files come in twos
		a.verb = gitDiscard
		a.named(args)
		a.maybeRev = len(texts) > 1
		if namesCommit(texts[0]) {
			a.ofCommit(texts[0])
		}
	default:
		a.maybeFile = sub == "checkout"
		a.named(args)
		if known(args[len(args)-1]) != "" {
			a.name = texts[0]
		}
	}
}

// namesCommit reports whether an argument of git is a commit and no file.
func namesCommit(s string) bool {
	return strings.HasPrefix(s, "HEAD") || strings.HasPrefix(s, "@") || strings.HasPrefix(s, "origin/") || strings.HasPrefix(s, "upstream/") || strings.ContainsAny(s, "~^") || len(s) > 6 && isHash(s)
}

// known is the text of a word; "" if it depends on an expansion.
func known(w shell.Word) string {
	if w.Open {
		return ""
	}
	return w.Text
}

// named notes the files that arguments name, or that it is not known which they are.
func (a *gitCall) named(args []shell.Word) {
	for _, w := range args {
		name := shell.Path(w.Text)
		switch {
		case strings.HasPrefix(w.Text, "--pathspec-from-file"):
			a.unsure = true
		case strings.HasPrefix(w.Text, "-"):
		case name == "" || w.Open || strings.Contains(name, "[") || strings.HasPrefix(name, ":") || strings.HasPrefix(name, "~"):
			a.unsure = true
		default:
			a.refs = append(a.refs, path.Clean(name))
		}
	}
	if len(a.refs) > maxNames {
		a.refs, a.unsure = nil, true
	}
}

// maxNames is how many files a call of git may name: each is compared with all that were edited.
const maxNames = 256

// ofCommit notes that the first name is no file but the commit that the others are taken from.
func (a *gitCall) ofCommit(commit string) {
	a.from, a.maybeRev = commit, false
	if len(a.refs) > 0 && !a.unsure {
		a.refs = a.refs[1:]
	}
}

// readAdd reads the arguments of "git add".
func (a *gitCall) readAdd(args []shell.Word, has func(...string) bool) {
	a.verb = gitAdd
	a.named(args)
	update, every := has("-u", "--update"), has("-A", "--all")
	a.all = (update || every) && len(a.refs) == 0 && !a.unsure
	a.untracked = a.all && !update
	// Without names it was told what to add in another way; with -u, new files stay out.
	a.unsure = a.unsure || update && len(a.refs) > 0 || !a.all && len(a.refs) == 0 || has("-p", "--patch", "-i", "--interactive", "-e", "--edit", "-N", "--intent-to-add")
}

// readRestored reads the arguments of "git restore".
func (a *gitCall) readRestored(args []shell.Word) {
	for len(args) > 0 {
		w := args[0]
		args = args[1:]
		switch source := w.Text == "-s" || w.Text == "--source"; {
		case source:
			a.from, args = unknownBranch, args[min(1, len(args)):]
		case strings.HasPrefix(w.Text, "-s"), strings.HasPrefix(w.Text, "--source="):
			a.from = unknownBranch
		case w.Text == "-p", w.Text == "--patch":
			a.unsure = true
		default:
			a.named([]shell.Word{w})
		}
	}
}

// readCommit reads the arguments of "git commit". The subject is in the first message.
func (a *gitCall) readCommit(c *shell.Command, args []shell.Word) {
	told := false
	take := func(w shell.Word) {
		if !told {
			told = true
			a.subject = subjectOf(known(w))
		}
	}
	given, named := options(args)
	a.named(named)
	for _, o := range given {
		switch o.name {
		case "--amend":
			a.amend = true
		case "-a", "--all":
			a.all = true
		case "-p", "--patch", "-i", "--include", "--pathspec-from-file":
			a.unsure = true
		case "-m", "--message":
			take(o.value)
		case "-F", "--file":
			if o.value.Text != "-" || c.Document.Text == "" {
				take(shell.Word{Open: true})
			}
			take(c.Document)
		}
	}
}

// option is an option of a command, with its value if it takes one.
type option struct {
	name  string
	value shell.Word
}

// valued are the options of "git commit" that take a value.
var valued = scan.WordSet("-m --message -F --file --author --date -C --reuse-message -c --reedit-message --fixup --squash -t --template --trailer " +
	"--cleanup --pathspec-from-file")

// options reads the arguments of "git commit": its options, such as -am, -mtext, --message=text,
// and the files that it names.
func options(args []shell.Word) (out []option, named []shell.Word) {
	for len(args) > 0 {
		w := args[0]
		args = args[1:]
		if w.Text == "--" {
			return out, append(named, args...)
		}
		next := func() shell.Word {
			value := shell.Word{Open: true}
			if len(args) > 0 {
				value, args = args[0], args[1:]
			}
			return value
		}
		name, value, told := strings.Cut(w.Text, "=")
		switch {
		case strings.HasPrefix(w.Text, "--") && !told && valued[name]:
			out = append(out, option{name, next()})
		case strings.HasPrefix(w.Text, "--"):
			out = append(out, option{name, shell.Word{Text: value, Open: w.Open}})
		case strings.HasPrefix(w.Text, "-"):
			for letters := w.Text[1:]; letters != ""; {
				o := option{name: "-" + letters[:1]}
				letters = letters[1:]
				switch {
				case valued[o.name] && letters == "":
					o.value = next()
				case valued[o.name], o.name == "-S", o.name == "-u":
					o.value, letters = shell.Word{Text: letters, Open: w.Open}, ""
				}
				out = append(out, o)
			}
		default:
			named = append(named, w)
		}
	}
	return out, named
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

// gitLine is a line of output in which git says what it did.
type gitLine struct {
	kind               gitKind
	branch, hash, text string
}

type gitKind uint8

const (
	committed    gitKind = iota + 1 // "[main 1234567] subject"
	pushed                          // "1234567..89abcde main -> main"
	notPushed                       // "! [rejected]", "error: failed to push"
	onBranch                        // "On branch main"
	switched                        // "Switched to branch 'main'"
	starred                         // "* main"
	pullAddress                     // "https://github.com/o/r/pull/12"
	filesTaken                      // "Updated 1 path from the index"
	filesChanged                    // "2 files changed, 3 insertions(+)"
)

// readGitLine reads one line of output.
func readGitLine(line string) (gitLine, bool) {
	if len(line) < 4 || len(line) > 1000 {
		return gitLine{}, false
	}
	kind, name := gitKind(0), ""
	switch c := line[0]; {
	case c == '[':
		head, subject, ok := strings.Cut(line[1:], "] ")
		branch, hash, _ := strings.Cut(strings.Replace(head, "detached HEAD", "HEAD", 1), " ")
		hash = strings.TrimPrefix(hash, "(root-commit) ")
		if !ok || !isHash(hash) || !branchName(branch) {
			return gitLine{}, false
		}
		return gitLine{committed, branch, hash, subject}, true
	case c == '!' && (strings.Contains(line, "rejected]") || strings.Contains(line, "[remote failure]")),
		strings.HasPrefix(line, "error: failed to push"), strings.HasPrefix(line, "fatal: "):
		return gitLine{kind: notPushed}, true
	case strings.HasPrefix(line, "On branch "):
		kind, name = onBranch, line[len("On branch "):]
	case strings.HasPrefix(line, "Switched to "), strings.HasPrefix(line, "Already on '"):
		_, name, _ = strings.Cut(line, "'")
		kind, name = switched, strings.TrimSuffix(name, "'")
	case c == '*' && line[1] == ' ' && line[2] != '[' && !strings.HasPrefix(line, "* (HEAD"):
		name, _, _ = strings.Cut(line[2:], " ")
		kind = starred
	case pullRequest().MatchString(line):
		return gitLine{kind: pullAddress, text: line}, true
	case strings.HasPrefix(line, "Updated ") && (strings.Contains(line, " path from ") || strings.Contains(line, " paths from ")):
		_, from, _ := strings.Cut(line, " from ")
		return gitLine{kind: filesTaken, text: from}, true
	case scan.IsDigit(c) && (strings.Contains(line, " file changed") || strings.Contains(line, " files changed")):
		return gitLine{kind: filesChanged}, true
	}
	if kind != 0 && branchName(name) {
		return gitLine{kind: kind, branch: name}, true
	}
	// A line of a push: a sign, "old..new" or "[new branch]", and "branch -> remote branch".
	if at := strings.Index(line, " -> "); at > 0 {
		left := strings.Fields(strings.TrimLeft(line[:at], "*+ "))
		if len(left) < 2 {
			return gitLine{}, false
		}
		name := left[len(left)-1]
		to, _, _ := strings.Cut(line[at+4:], " ")
		a, b, dots := strings.Cut(left[0], "..")
		if (dots && isHash(a) && isHash(strings.TrimPrefix(b, ".")) || left[0] == "[new" && left[1] == "branch]") && branchName(name) && branchName(to) {
			return gitLine{kind: pushed, branch: name, hash: strings.TrimPrefix(b, "."), text: to}, true
		}
	}
	return gitLine{}, false
}

var (
	hash        = lazyregexp.New(`^[0-9a-f]{4,64}$`)
	logLine     = lazyregexp.New(`^[0-9a-f]{7,40} (\([^()]*\) )?\S`)
	pullRequest = lazyregexp.New(`^https://[^/\s"'<>]*(/[^/\s"'<>]*){2,}/(pulls?|merge_requests|pull-requests)/[0-9]+$`)
)

func isHash(s string) bool { return hash().MatchString(s) }

func branchName(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsAny(s, " ~^:?*[\\\t'\"<>|")
}
