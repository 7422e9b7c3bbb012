package work

import (
	_ "embed" // the table
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
)

// events is the table, with the form of its rows.
//
//go:embed events.txt
var events string

// kinds is a set of kinds of output.
type kinds uint64

// command is a row that says what a command does.
type command struct {
	words   []pattern
	event   string
	reports kinds    // what its output says
	unknown []string // what nobody knows after it
	example string
}

// pattern is a part of the words of a command.
type pattern struct {
	gap    bool // any words may stand before it
	forbid bool // an option that must not be there
	option bool
	of     []string
}

// printed is a row that says what a line of output tells.
type printed struct {
	by      kinds
	event   string
	rank    byte // of a check: '3' names what failed, '2' counts, '1' is a bare word
	prefix  string
	form    func() *regexp.Regexp
	known   []string
	example string
}

// table is what the rows say.
type table struct {
	commands map[string][]*command // by the first word
	script   *command              // a program by its path
	unread   *command              // a line that cannot be read
	printed  [256][]*printed       // by the first byte of a line
	values   map[string][]string
	scripts  map[string]string
	prints   map[string]kinds // by scripts of a kind
	asks     map[string]bool
	names    map[string]kinds
	any      kinds    // all that checks print
	nothing  kinds    // what says something by printing nothing
	only     *printed // what a line says that is the only one
}

var read = sync.OnceValue(func() *table {
	t := &table{commands: map[string][]*command{}, values: map[string][]string{}, scripts: map[string]string{}, prints: map[string]kinds{}, names: map[string]kinds{}}
	for line := range strings.Lines(events) {
		cells := strings.SplitN(strings.TrimSpace(line), "|", 6)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch cells[0] {
		case "values":
			for name := range strings.FieldsSeq(cells[1]) {
				t.values[name] = append(t.values[name], strings.Fields(cells[2])...)
			}
		case "scripts":
			for part := range strings.FieldsSeq(cells[2]) {
				t.scripts[part] = cells[1]
			}
			t.prints[cells[1]] = t.kinds(cells[3])
		case "asks":
			t.asks = scan.WordSet(cells[1])
		case "command":
			t.addCommand(cells)
		case "output":
			t.addPrinted(cells)
		}
	}
	t.prints["check"] = t.any
	for _, list := range t.commands {
		for _, c := range list {
			if c.reports&t.names["any"] != 0 {
				c.reports = t.any
			}
		}
	}
	return t
})

// kinds is the set of some kinds.
func (t *table) kinds(names string) (k kinds) {
	for name := range strings.FieldsSeq(names) {
		if t.names[name] == 0 {
			t.names[name] = 1 << len(t.names)
		}
		k |= t.names[name]
	}
	return k
}

func (t *table) addCommand(cells []string) {
	c := &command{event: cells[2], reports: t.kinds(cells[3]), unknown: strings.Fields(cells[4]), example: cells[5]}
	gap := false
	for word := range strings.FieldsSeq(cells[1]) {
		if word == "…" {
			gap = true
			continue
		}
		word, forbid := strings.CutPrefix(word, "!")
		c.words = append(c.words, pattern{gap: gap, forbid: forbid, option: strings.HasPrefix(word, "-"), of: strings.Split(word, ",")})
		gap = false
	}
	switch c.words[0].of[0] {
	case "./":
		t.script = c
	case "(unread)":
		t.unread = c
	}
	for _, name := range c.words[0].of {
		t.commands[name] = append(t.commands[name], c)
	}
}

// forms are what stands in the lines of the table for parts that differ.
var forms = strings.NewReplacer("…", `.*`, "<n>", `[1-9][0-9]*`, "<#>", `[0-9]+`, "<s>", `\s+`, "<file>", `[^\s:]+`, "<old>", `[0-9a-f]{4,64}`,
	"<hash>", `(?P<hash>[0-9a-f]{4,64})`, "<branch>", `(?P<branch>[^\s~^:?*\[\\'"<>|]{1,200})`, "<to>", `\S+`, "<subject>", `(?P<subject>.*)`,
	"<url>", `(?P<url>https://[^/\s"'<>]*(?:/[^/\s"'<>]*){2,}/(?:pulls?|merge_requests|pull-requests)/[0-9]+)`)

func (t *table) addPrinted(cells []string) {
	event, rank, _ := strings.Cut(cells[3], " ")
	p := &printed{by: t.kinds(cells[1]), event: event, rank: (rank + "0")[0], known: strings.Fields(cells[4]), example: cells[5]}
	if p.rank != '0' {
		t.any |= p.by
	}
	line, only := strings.CutPrefix(cells[2], "(only)")
	switch {
	case line == "(nothing)":
		t.nothing |= p.by
		return
	case only:
		t.only = p
	}
	p.form = lazyregexp.New("^" + forms.Replace(regexp.QuoteMeta(line)) + "$")
	p.prefix = line[:min(len(line), strings.IndexAny(line+"<", "<…"))]
	for b := range 256 {
		if p.prefix == "" && !only && (line[0] != '<' || line[1] != 'n' && line[1] != '#' || scan.IsDigit(byte(b))) || p.prefix != "" && p.prefix[0] == byte(b) {
			t.printed[b] = append(t.printed[b], p)
		}
	}
}

// told is a line of output that a row knows.
type told struct {
	*printed
	text, hash, branch, subject, url string
}

// maxTold bounds a line that is looked at, in bytes.
const maxTold = 1000

// tell appends what a line says: for each kind of output what the first row that fits says.
func (t *table) tell(line string, add func(told)) {
	if line == "" || len(line) > maxTold {
		return
	}
	var by kinds
	for _, p := range t.printed[line[0]] {
		if p.by&^by == 0 || !strings.HasPrefix(line, p.prefix) {
			continue
		}
		m := p.form().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		by |= p.by
		x := told{printed: p, text: line}
		for i, name := range p.form().SubexpNames() {
			switch name {
			case "hash":
				x.hash = m[i]
			case "branch":
				x.branch = m[i]
			case "subject":
				x.subject = m[i]
			case "url":
				x.url = m[i]
			}
		}
		add(x)
	}
}

// wrapping bounds the programs around a program.
const wrapping = 4

// what says what a command does; nil if nothing is known of it. args are its words that are no options, from the
// one behind those of the row on, and kind the kind of a check.
func (t *table) what(words []string) (c *command, kind string, args []string) {
	for range wrapping {
		words = shell.Unwrap(words)
		if len(words) == 0 || slices.ContainsFunc(words[1:], func(w string) bool { return t.asks[w] }) {
			return nil, "", nil
		}
		var at []int
		c, at, kind = t.row(words)
		if c == nil {
			return nil, "", nil
		}
		rest, isRunner := strings.CutPrefix(c.event, "runs")
		if !isRunner || rest == " a script" {
			for _, n := range at {
				args = append(args, words[n])
			}
			return c, kind, args
		}
		if len(at) == 0 {
			return nil, "", nil
		}
		words = words[at[0]:]
		switch rest {
		case " yarn":
			words = append([]string{"yarn"}, words[1:]...)
		case " path":
			name, _, _ := strings.Cut(words[0], "@")
			words = append([]string{path.Base(name)}, words[1:]...)
		}
		if len(t.commands[path.Base(words[0])]) == 0 {
			return t.script, "", nil // a script, whatever runs it
		}
	}
	return nil, "", nil
}

// row is the first row that fits, and the places of the words behind those of the row.
func (t *table) row(words []string) (c *command, rest []int, kind string) {
	name := path.Base(words[0])
	at := t.positional(name, words)
	for _, c := range t.commands[name] {
		if rest, kind, ok := c.fits(t, words, at); ok {
			return c, rest, kind
		}
	}
	if strings.Contains(words[0], "/") {
		return t.script, nil, ""
	}
	return nil, nil, ""
}

// positional are the places of the words that are neither options nor their values, the first left out.
func (t *table) positional(name string, words []string) (at []int) {
	values := t.values[name]
	for n := 1; n < len(words); n++ {
		w := words[n]
		option := strings.HasPrefix(w, "-") && w != "-"
		switch {
		case w == "--" || name == "cargo" && strings.HasPrefix(w, "+"):
		case option && (slices.Contains(values, w) || len(w) > 2 && w[1] != '-' && scan.IsLetter(w[1]) && slices.Contains(values, "-"+w[len(w)-1:])):
			n++
		case !option:
			if at = append(at, n); len(at) == 1 {
				values = append(values[:len(values):len(values)], t.values[name+" "+w]...)
			}
		}
	}
	return at
}

// fits reports whether a row is of a command, of which the words at some places are no options.
func (c *command) fits(t *table, words []string, at []int) (rest []int, kind string, ok bool) {
	kind, _, _ = strings.Cut(c.event, " ")
	rest = at
	for _, p := range c.words[1:] {
		holds := func(n int) bool { return p.holds(t, words[n]) }
		n := 0
		switch {
		case p.forbid || p.option:
			if slices.ContainsFunc(words[1:], func(w string) bool { return p.hasOption(w) }) == p.forbid {
				return nil, "", false
			}
			continue
		case p.of[0] == "$":
			if len(at) > 0 {
				return nil, "", false
			}
			continue
		case p.gap:
			for n = len(at) - 1; n >= 0 && !holds(at[n]); n-- {
			}
		}
		if n < 0 || n >= len(at) || !holds(at[n]) {
			return nil, "", false
		}
		if p.of[len(p.of)-1] == "SCRIPT" && kind == "script" {
			kind = t.scriptKind(words[at[n]])
		}
		if at = at[n+1:]; p.of[0] != "WORD" && p.of[0] != "REV" {
			rest = at
		}
	}
	return rest, kind, true
}

// hasOption reports whether a word is one of the options, or what must not be there.
func (p *pattern) hasOption(w string) bool {
	name, _, _ := strings.Cut(w, "=")
	return slices.Contains(p.of, name) || !p.option && slices.Contains(p.of, path.Base(w))
}

// holds reports whether a word is one of those of a pattern.
func (p *pattern) holds(t *table, w string) bool {
	return slices.ContainsFunc(p.of, func(of string) bool {
		switch of {
		case "WORD":
			return w != "HEAD" && w != "@"
		case "REV":
			return namesCommit(w)
		case "SCRIPT":
			return t.scriptKind(w) != ""
		case "./":
			return strings.Contains(w, "/")
		}
		return w == of || path.Base(w) == of && strings.Contains(w, "/")
	})
}

// namesCommit reports whether an argument of git is another commit and no file.
func namesCommit(s string) bool { return commitName().MatchString(s) }

var commitName = lazyregexp.New(`^(HEAD|@)[~^@]|^(origin|upstream)/|[~^][0-9]*$|^[0-9a-f]{7,64}$`)

// scriptKind says what a script or a target checks by its name; "" if the name does not tell.
func (t *table) scriptKind(name string) (kind string) {
	if name = strings.ToLower(camel().ReplaceAllString(name, "$1-$2")); strings.HasPrefix(name, "type-check") || strings.HasPrefix(name, "check-types") || strings.HasPrefix(name, "check:types") {
		return "lint"
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if kind = t.scripts[part]; kind != "" {
			return kind
		}
	}
	return ""
}

var camel = lazyregexp.New(`([a-z])([A-Z])`)

// checkKinds are the kinds of checks, as in state.Check.
var checkKinds = scan.WordSet("build test lint format check")
