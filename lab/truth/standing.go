package truth

import (
	"regexp"
	"strings"
)

// commit is a commit of git that was made.
type commit struct {
	hash, subject string
	at            int
	order         int  // of its command in the command line
	elsewhere     bool // in another work tree
	dir           string
	only          []word // the files that it names, if it takes no others
}

// takes reports whether a commit takes a file; doubtful says that only the shell knows.
func (c commit) takes(file string) (ok, doubtful bool) {
	for _, w := range c.only {
		name := at(c.dir, w.text)
		ok = ok || w.text == "." || inside(file, name) || strings.HasSuffix(file, "/"+w.text) || strings.Contains(file, "/"+w.text+"/")
		doubtful = doubtful || w.dynamic
	}
	return ok || len(c.only) == 0, doubtful
}

// named are the files that the arguments of "git commit" name.
func named(cmd command) (files []word) {
	past := false // the subcommand
	for i := 1; i < len(cmd.words); i++ {
		w := cmd.words[i]
		switch {
		case w.text == "--":
			return append(files, cmd.words[i+1:]...)
		case !past:
			past = w.text == "commit"
		case commitValue.MatchString(w.text):
			i++
		case !strings.HasPrefix(w.text, "-"):
			files = append(files, w)
		}
	}
	return files
}

// commitValue is an option of "git commit" whose value is the next word.
var commitValue = regexp.MustCompile(`^(?:-[a-zA-Z]*[mFCct]|--message|--file|--author|--date|--fixup|--squash|--trailer|--template)$`)

// started is a process or an agent in the background.
type started struct {
	id, what string
	at       int
	ended    int // the message that tells its end; -1 while it runs
}

var (
	commitLine = regexp.MustCompile(`(?m)^\s*\[(.+?)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.*)$`)
	onBranch   = regexp.MustCompile(`(?m)^(?:On branch |Switched to (?:a new )?branch '|Already on '|Current branch: )([^\s']+)`)
	asksGit    = regexp.MustCompile(`git|\b(?:gh|glab) `)
	star       = regexp.MustCompile(`(?m)^\* ([^\s(]+)\s*$`)
	pushFailed = regexp.MustCompile(`(?im)^\s*(?:!|fatal:|error:|remote: error)|\[(?:remote )?rejected\]|failed to push`)
	oneBranch  = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

	background = regexp.MustCompile(`(?i)running in (?:the )?background with (?:task )?ID: ?([\w-]+)|^Async agent launched successfully\.?\s+agentId: ?([\w-]+)|Process running with session ID (\d+)`)
	endedNote  = regexp.MustCompile(`(?s)<task-notification>.*?<task-id>([\w-]+)</task-id>.*?<status>(\w+)</status>`)
	shellNote  = regexp.MustCompile(`Background (?:Bash|command|shell)[^\n]{0,80}?\b([\w-]{5,})\b[^\n]{0,200}?\(?status: (completed|failed|killed)`)
	overStatus = regexp.MustCompile(`<status>(completed|failed|killed|stopped)</status>`)

	taskMade = regexp.MustCompile(`^Task #(\w+) created successfully: (.*)`)
	taskRow  = regexp.MustCompile(`(?m)^#(\w+)\.? \[(\w+)\] (.*)$`)
	listTool = regexp.MustCompile(`(?i)todo|plan|task_?list`)
)

// git replays the commands of git in a command line that succeeded.
func (r *replay) git(c *call) {
	// The shell was put back where it was: what it did was done in another folder.
	elsewhere := backAt.MatchString(c.out)
	branches := len(r.branch)
	for i, cmd := range c.commands {
		if cmd.name() != "git" || len(cmd.words) < 2 {
			continue
		}
		sub, rest := gitCommand(cmd)
		switch sub {
		case "commit":
			if !r.committed(c, i, elsewhere) && (cmd.option("-q", "--quiet") || strings.TrimSpace(c.out) == "") && !cmd.piped {
				r.commits = append(r.commits, commit{"", c.line, c.result, i, elsewhere, c.gitDir(i), named(cmd)})
			}
		case "cherry-pick":
			r.committed(c, i, elsewhere)
		case "push":
			if !pushFailed.MatchString(c.out) && !cmd.option("--dry-run", "-n") {
				r.pushes = append(r.pushes, seen{text: c.gitDir(i), at: c.result})
			}
		case "checkout", "switch":
			if len(rest) > 1 && cmd.option("-b", "-c", "-B", "-C") && !rest[1].dynamic {
				r.branch = append(r.branch, seen{text: rest[1].text, at: c.result})
			}
		case "branch", "rev-parse", "symbolic-ref":
			if out := strings.TrimSpace(c.out); (cmd.option("--show-current", "--abbrev-ref", "--short")) && oneBranch.MatchString(out) && len(c.commands) == 1 {
				r.branch = append(r.branch, seen{text: out, at: c.result})
			}
			if m := star.FindStringSubmatch(c.out); m != nil && sub == "branch" {
				r.branch = append(r.branch, seen{text: m[1], at: c.result})
			}
		}
	}
	if asksGit.MatchString(c.line) { // "gh pr checkout" shows what git printed
		for _, m := range onBranch.FindAllStringSubmatch(c.out, -1) {
			r.branch = append(r.branch, seen{text: m[1], at: c.result})
		}
	}
	if elsewhere {
		r.branch = r.branch[:branches]
	}
}

// gitDir is the folder that a command of git works in; "" if it is not known.
func (c *call) gitDir(i int) string {
	dir := ""
	if i < len(c.places) {
		dir = c.places[i]
	}
	for k, w := range c.commands[i].words {
		if w.text == "-C" && k+1 < len(c.commands[i].words) && k < 3 {
			return at(dir, c.commands[i].words[k+1].text)
		}
	}
	return dir
}

// committed notes the commits that a call printed.
func (r *replay) committed(c *call, order int, elsewhere bool) bool {
	all := commitLine.FindAllStringSubmatch(c.out, -1)
	var only []word
	if len(all) == 1 {
		only = named(c.commands[order])
	}
	for _, m := range all {
		r.commits = append(r.commits, commit{m[2], m[3], c.result, order, elsewhere, c.gitDir(order), only})
		if m[1] != "detached HEAD" {
			r.branch = append(r.branch, seen{text: m[1], at: c.result})
		}
	}
	return len(all) > 0
}

// background notes what was started, and what was seen to end.
func (r *replay) background(c *call) {
	if m := background.FindStringSubmatch(c.out[:min(len(c.out), 600)]); m != nil {
		what := c.said
		if c.line != "" {
			what = c.line
		}
		r.started = append(r.started, started{id: m[1] + m[2] + m[3], what: what, at: c.result, ended: -1})
		return
	}
	id := c.str("task_id", "bash_id", "shell_id", "agentId", "agent_id", "id", "session_id")
	if id == "" {
		return
	}
	name := strings.ToLower(c.Name)
	if overStatus.MatchString(c.out) || (strings.Contains(name, "kill") || strings.Contains(name, "stop")) && !c.flagged || exitCode.MatchString(c.out[:min(len(c.out), 400)]) {
		r.over(id, c.result)
	}
}

func (r *replay) over(id string, at int) {
	for i := range r.started {
		if r.started[i].id == id && r.started[i].ended < 0 {
			r.started[i].ended = at
		}
	}
}

// notices reads what a harness tells of ends.
func (r *replay) notices(at int, text string) {
	for _, m := range endedNote.FindAllStringSubmatch(text, -1) {
		r.over(m[1], at)
	}
	for _, m := range shellNote.FindAllStringSubmatch(text, -1) {
		r.over(m[1], at)
	}
	for _, m := range onBranch.FindAllStringSubmatch(text, -1) {
		r.branch = append(r.branch, seen{text: m[1], at: at})
	}
}

// lists replays the agent's list of things to do.
func (r *replay) lists(c *call) {
	switch strings.ToLower(c.Name) {
	case "taskcreate":
		m := taskMade.FindStringSubmatch(c.out)
		if m == nil {
			return
		}
		for _, t := range r.todo {
			if t.id == m[1] { // numbers begin anew in a new list
				r.todo = nil
				break
			}
		}
		r.listed = true
		r.todo = append(r.todo, todo{m[1], m[2], "pending", c.result})
		return
	case "taskupdate":
		id := c.str("taskId", "task_id", "id")
		for i := range r.todo {
			if r.todo[i].id != id {
				continue
			}
			t := &r.todo[i]
			t.at = c.result
			if s := c.str("subject"); s != "" {
				t.text = s
			}
			if s := c.str("status"); s == "deleted" {
				r.todo = append(r.todo[:i:i], r.todo[i+1:]...)
			} else if s != "" {
				t.status = s
			}
			return
		}
		return
	case "tasklist":
		if strings.HasPrefix(c.out, "No tasks") {
			for _, t := range r.todo {
				if t.status != "completed" { // a list that is done is put away
					r.todo, r.emptied = nil, c.result
					break
				}
			}
			return
		}
		var now []todo
		for _, m := range taskRow.FindAllStringSubmatch(c.out, -1) {
			text := m[3]
			for _, t := range r.todo { // rows may say more than the subject
				if t.id == m[1] && strings.HasPrefix(text, t.text) {
					text = t.text
				}
			}
			now = append(now, todo{m[1], text, m[2], c.result})
		}
		if len(now) > 0 {
			r.todo, r.listed = now, true
		}
		return
	}
	if !listTool.MatchString(c.Name) {
		return
	}
	for _, k := range []string{"todos", "plan", "items", "tasks", "todo_list", "steps"} {
		rows, ok := c.args[k].([]any)
		if !ok {
			continue
		}
		var now []todo
		for _, x := range rows {
			m, ok := x.(map[string]any)
			if !ok {
				if s, is := x.(string); is {
					now = append(now, todo{text: s, at: c.result})
				}
				continue
			}
			row := &call{args: m}
			now = append(now, todo{row.str("id"), row.str("content", "step", "title", "description", "text", "task", "subject"), row.str("status", "state"), c.result})
		}
		r.todo, r.listed = now, true
		return
	}
}
