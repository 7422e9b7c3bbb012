package truth

import (
	"regexp"
	"strings"
)

// mayRedirect replays redirections of a command that perhaps did not run.
func (r *replay) mayRedirect(c *call, cmd command, known func(word) string) {
	for _, to := range cmd.redirect {
		if strings.HasPrefix(to.op, ">") && !to.to.dynamic && to.to.text != "/dev/null" && to.to.text != "" {
			r.file(known(to.to)).doubt(c.result, true)
			r.vague = append(r.vague, vague{at: c.result, turn: c.turn, line: to.to.text, perhaps: cmd.orElse})
		}
	}
}

var (
	harmless  = regexp.MustCompile(`^(?:cd|pushd|set|export|echo|printf|true|:|mkdir|source|\.|sleep)$`)
	compound  = regexp.MustCompile(`(?m)^\s*(?:if|for|while|until|case|function)\b|\b(?:do|then)\b|[({]\s*$|^\s*\(`)
	shellSays = regexp.MustCompile(`(?m)^(?:/bin/)?-?(?:(?:ba|z|da|k)?sh|\(eval\)):.*$`)
)

// cameBefore reports whether the i-th command of a line of which a command failed, or that was
// stopped, ran in any case: nothing stands before it that could fail, or end the line. What it
// could not do it would have said.
func (c *call) cameBefore(i int) bool {
	if compound.MatchString(c.line) || i == len(c.commands)-1 && strings.Contains(c.out, "imed out") {
		return false
	}
	for k := i; k > 0; k-- {
		switch c.commands[k].operator {
		case "&&":
			if !harmless.MatchString(c.commands[k-1].name()) {
				return false
			}
		case "||":
			return false
		}
	}
	for k, cmd := range c.commands {
		if k < i && (cmd.name() == "exit" || cmd.name() == "exec" || cmd.name() == "set" && strings.Contains(cmd.plain(), "-e")) || k == i && strings.Contains(strings.Join(redirections(cmd), " "), "2>") {
			return false
		}
	}
	name := c.commands[i].name()
	for _, l := range shellSays.FindAllString(c.out, -1) {
		for _, w := range append(redirections(c.commands[i]), wordTexts(c.commands[i].words)...) {
			if w = w[strings.LastIndexByte(w, '/')+1:]; len(w) > 1 && strings.Contains(l, w) {
				return false
			}
		}
	}
	return !complains(c.out, name)
}

// redirections are the redirections of a command, as they were written.
func redirections(c command) (all []string) {
	for _, to := range c.redirect {
		all = append(all, to.op+to.to.text)
	}
	return all
}
