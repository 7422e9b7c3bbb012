package summarize

import (
	"path"
	"strconv"
	"strings"
)

// harmless are commands that say nothing about the work: where they fail, the line
// says so by itself.
var harmless = set("cd pushd export set source . true : echo printf sleep mkdir unset alias ulimit umask shopt")

// judge says of each command what the line as a whole shows of it.
func (r *scriptReader) judge() []step {
	errexit, pipefail := false, false
	if w := r.all[0].words; len(w) > 1 && w[0].text == "set" {
		for i, x := range w[1:] {
			errexit = errexit || strings.HasPrefix(x.text, "-") && strings.Contains(x.text, "e")
			pipefail = pipefail || x.text == "pipefail" && i > 0
		}
	}
	out := make([]step, 0, len(r.all))
	dir := ""
	for from, list := 0, 0; from < len(r.all); list++ {
		to, either, background := from, false, false
		for ; to < len(r.all); to++ {
			after := r.all[to].after
			either = either || after == "||"
			if after == ";" || after == "&" || after == "" {
				background = after == "&"
				to++
				break
			}
		}
		counts := (to == len(r.all) || errexit) && !either && !background
		weighty := 0
		for i := from; i < to; i++ {
			if r.all[i].after != "|" && !r.all[i].harmless() {
				weighty++
			}
		}
		for i := from; i < to; i++ {
			s := r.all[i].step
			piped := r.all[i].after == "|"
			s.proved = counts && (!piped || pipefail)
			s.into, s.sure = piped, !either && !background
			s.blamed = counts && !piped && weighty == 1 && !s.harmless()
			if s.shown == allShown && piped {
				s.shown, s.most = r.shows(i + 1)
			}
			if background {
				s.shown = notShown
			}
			s.dir, s.list = dir, list
			if to := s.changesTo(); to != "" {
				dir = joinDir(dir, to)
			}
			out = append(out, s)
		}
		from = to
	}
	others := 0
	for i := range out {
		if !out[i].harmless() {
			others++
		}
	}
	for i := range out {
		out[i].alone = others == 1 && !out[i].harmless()
	}
	return out
}

func (s *step) harmless() bool {
	return len(s.words) == 0 || harmless[s.words[0].text] || len(s.words) == 1 && assigns(s.words[0]) && !s.words[0].open
}

// shows says what the commands of a pipe from i on let through, and how many lines
// at the most.
func (r *scriptReader) shows(i int) (seen shown, most int) {
	for ; i < len(r.all); i++ {
		s := &r.all[i].step
		if s.shown == notShown {
			return notShown, 0
		}
		name := ""
		if len(s.words) > 0 {
			name = s.words[0].text
		}
		switch name {
		case "tail":
			for _, w := range s.words[1:] {
				if strings.HasPrefix(w.text, "+") || w.text == "-r" {
					return partShown, 0
				}
			}
			seen = max(seen, endShown)
		case "head":
			n := headLines(s.words[1:])
			if n == 0 {
				return partShown, 0
			}
			if most == 0 || n < most {
				most = n
			}
		case "tee", "cat":
		case "grep", "egrep", "rg":
			if seen != allShown || !showsFailures(s.words[1:]) {
				return partShown, 0
			}
			seen = failsShown
		default:
			return partShown, 0
		}
		if r.all[i].after != "|" {
			return seen, most
		}
	}
	return partShown, 0
}

// headLines is how many lines "head" shows; 0 if nobody knows.
func headLines(args []word) int {
	if len(args) == 0 {
		return 10
	}
	n := strings.TrimPrefix(strings.TrimPrefix(args[0].text, "-n"), "-")
	if n == "" && len(args) == 2 {
		n = args[1].text
	} else if len(args) != 1 {
		return 0
	}
	lines, err := strconv.Atoi(n)
	if err != nil || lines < 0 {
		return 0
	}
	return lines
}

// showsFailures reports whether a search lets lines through that say FAIL.
func showsFailures(args []word) bool {
	pattern := ""
	for _, w := range args {
		if strings.HasPrefix(w.text, "-") && w.text != "-E" && w.text != "-i" && w.text != "-e" && w.text != "-iE" && w.text != "-Ei" {
			return false
		}
		if !strings.HasPrefix(w.text, "-") && pattern == "" {
			pattern = w.text
		}
	}
	for part := range strings.SplitSeq(strings.Trim(pattern, "()"), "|") {
		if strings.Trim(part, "^\\") == "FAIL" {
			return true
		}
	}
	return false
}

// changesTo is where a "cd" goes; "" for another command.
func (s *step) changesTo() string {
	if len(s.words) == 0 || s.words[0].text != "cd" && s.words[0].text != "pushd" {
		return ""
	}
	args := s.words[1:]
	for len(args) > 0 && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L") {
		args = args[1:]
	}
	if len(args) != 1 || args[0].open || args[0].text == "-" || strings.HasPrefix(args[0].text, "~") {
		return unknownDir
	}
	if to := shellPath(args[0].text); to != "" {
		return to
	}
	return unknownDir
}

// joinDir is where one is after going from one folder to another.
func joinDir(from, to string) string {
	switch {
	case path.IsAbs(to):
		return path.Clean(to)
	case to == unknownDir || from == unknownDir:
		return unknownDir
	}
	return path.Join(from, to)
}

// plain returns the words as text.
func (s *step) plain() []string {
	out := make([]string, len(s.words))
	for i, w := range s.words {
		out[i] = w.text
	}
	return out
}
