package truth

import (
	"path"
	"regexp"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// places is what the log shows of folders, of git, and of the background, in order.
type places struct {
	cwd      string
	dirs     []seen
	branches []seen
	commits  []commit
	pushes   []seen  // text is the folder
	open     []*call // since changes were put aside
	aside    bool
}

// seen is something that was observed.
type seen struct {
	text string
	at   int
}

// commit is a commit that git printed, or, without a hash, a command line that made one.
type commit struct {
	hash, subject, dir string
	at, turn           int
	elsewhere          bool         // in another work tree
	only               []shell.Word // the files that it names, if it takes no others
}

var (
	directory  = regexp.MustCompile(`(?i)(?:working directory|current directory|cwd)\W{1,4}(/[^\s<>"')]+)`)
	backAt     = regexp.MustCompile(`(?m)^Shell cwd was reset to (/.*)$`)
	commitLine = regexp.MustCompile(`(?m)^\s*\[(.+?)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.*)$`)
	onBranch   = regexp.MustCompile(`(?m)^(?:On branch |Switched to (?:a new )?branch '|Already on '|Current branch: )([^\s']+)`)
	asksGit    = regexp.MustCompile(`git|\b(?:gh|glab) `)
	oneBranch  = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
	asksBranch = regexp.MustCompile(`^git (?:branch --show-current|rev-parse --abbrev-ref HEAD|symbolic-ref --short HEAD)`)
	newBranch  = regexp.MustCompile(`^git (?:-C \S+ )?(?:checkout|switch) -[bBcC] ([\w./-]+)`)
	pushFailed = regexp.MustCompile(`(?im)^\s*(?:!|fatal:|error:|remote: error)|\[(?:remote )?rejected\]|failed to push`)
	pullURL    = regexp.MustCompile(`https?://[^\s"'<>()]+/(?:pull|merge_requests|pulls)/\d+`)
)

// newPlaces reads a log for what it shows of them.
func newPlaces(x *index) *places {
	p := &places{}
	for i := range x.log {
		if c := x.ended[i]; c != nil {
			p.ran(c)
			continue
		}
		if m := &x.log[i]; m.Role != thread.Assistant {
			s := m.Text()
			if d := matched(directory, s); p.cwd == "" && d != "" {
				p.cwd = path.Clean(d)
			}
		}
	}
	return p
}

// ran takes in the result of a call.
func (p *places) ran(c *call) {
	if c.line == "" {
		return
	}
	at := c.result
	p.putAside(c)
	dir := p.cwd
	if n := len(p.dirs); n > 0 && c.Name == "Bash" { // the shell of Claude Code keeps its folder
		dir = p.dirs[n-1].text
	}
	went := func(to string) {
		dir = to
		if c.end == succeeded {
			p.dirs = append(p.dirs, seen{to, at})
		}
	}
	if w := c.str("workdir", "cwd", "directory", "working_directory"); w != "" {
		went(path.Clean(w))
	}
	c.from = dir
	for i := range c.commands {
		c.dirs = append(c.dirs, inFolder(dir, c.commands[i].Dir))
	}
	if n := len(c.commands); n > 0 && c.commands[n-1].End != "" {
		went(inFolder(dir, c.commands[n-1].End))
	}
	reset := matched(backAt, c.out)
	branches := len(p.branches)
	made, quiet := commit{at: at, turn: c.turn, elsewhere: reset != ""}, false
	for i := range c.commands {
		cmd := &c.commands[i]
		plain := plainly(cmd)
		switch name := cmd.Name(); {
		case name != "git" || c.end != succeeded && !strings.Contains(plain, "cherry-pick") && !strings.Contains(plain, "commit"):
		case strings.Contains(plain, " push") && !pushFailed.MatchString(c.out) && !strings.Contains(plain, "--dry-run"):
			p.pushes = append(p.pushes, seen{known(c.dirs[i]), at})
		case newBranch.MatchString(plain) && c.end == succeeded:
			p.branches = append(p.branches, seen{matched(newBranch, plain), at})
		case asksBranch.MatchString(plain) && len(c.commands) == 1 && oneBranch.MatchString(strings.TrimSpace(c.out)):
			p.branches = append(p.branches, seen{strings.TrimSpace(c.out), at})
		case strings.Contains(plain, " commit"):
			made = commit{"", c.line, known(c.dirs[i]), at, c.turn, reset != "", namedFiles(cmd)}
			quiet = c.end == succeeded && !cmd.Piped && (strings.TrimSpace(c.out) == "" || strings.Contains(plain, " -q") || strings.Contains(plain, " --quiet"))
		case strings.Contains(plain, " cherry-pick") || strings.Contains(plain, " revert"):
			made.dir = known(c.dirs[i])
		}
	}
	if asksGit.MatchString(c.line) { // "gh pr checkout" shows what git printed
		printed := commitLine.FindAllStringSubmatch(c.out, -1)
		for _, m := range printed {
			if made.hash, made.subject = m[2], m[3]; len(printed) > 1 {
				made.only = nil
			}
			p.commits = append(p.commits, made)
			if m[1] != "detached HEAD" {
				p.branches = append(p.branches, seen{m[1], at})
			}
		}
		if len(printed) == 0 && quiet {
			p.commits = append(p.commits, made)
		}
		for _, m := range onBranch.FindAllStringSubmatch(c.out, -1) {
			p.branches = append(p.branches, seen{m[1], at})
		}
	}
	if reset != "" { // what it did was done in another folder
		p.branches = p.branches[:branches]
		p.cwd = path.Clean(reset)
		p.dirs = append(p.dirs, seen{p.cwd, at})
	}
}

// putAside notes the calls between "git stash" and a pop.
func (p *places) putAside(c *call) {
	ran := false
	for i := range c.commands {
		switch plain := plainly(&c.commands[i]); {
		case stash.MatchString(plain) && c.end != failed:
			p.aside = true
		case unstash.MatchString(plain) && c.end != failed:
			for _, o := range p.open {
				o.aside = true
			}
			c.aside, p.open, p.aside = c.aside || ran, nil, false
		default:
			ran = ran || p.aside
		}
	}
	if p.aside {
		p.open = append(p.open, c)
	}
}

// inFolder is where one is after going from one folder to another, as a command line tells it; "" if it
// is not known.
func inFolder(from, to string) string {
	switch {
	case to == shell.Unknown:
		return ""
	case path.IsAbs(to):
		return to
	}
	return path.Join(from, to)
}

// known is a folder if it is known whole, else "".
func known(dir string) string {
	if path.IsAbs(dir) {
		return dir
	}
	return ""
}

// commitValue is an option of "git commit" whose value is the next word.
var commitValue = regexp.MustCompile(`^(?:-[a-zA-Z]*[mFCct]|--message|--file|--author|--date|--fixup|--squash|--trailer|--template)$`)

// namedFiles are the files that the arguments of "git commit" name.
func namedFiles(cmd *shell.Command) (files []shell.Word) {
	begun := false
	for i, w := range cmd.Words[1:] {
		switch {
		case !begun:
			begun = w.Text == "commit"
		case !strings.HasPrefix(w.Text, "-") && !commitValue.MatchString(cmd.Words[i].Text):
			files = append(files, w)
		}
	}
	return files
}

// inside reports whether a path is a folder that is known or lies in it; related whether one folder
// is or holds the other, as far as both are known.
func inside(p, folder string) bool { return folder != "" && strings.HasPrefix(p+"/", folder+"/") }
func related(a, b string) bool     { return a == "" || b == "" || inside(a, b) || inside(b, a) }
