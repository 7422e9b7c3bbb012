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
	rank    byte   // of a check: 3 names what failed, 2 counts, 1 is a bare word
	prefix  string // how a line begins
	part    string // what stands in it
	form    func() *regexp.Regexp
	example string
}

// Events of lines of checks, and of a check that lists what is wrong and says by its status that it did.
const (
	failed  = "failed"
	passed  = "passed"
	listing = "format by output"
)

// table is what the rows say.
type table struct {
	commands map[string][]*command // by the first word
	printed  [256][]*printed       // by the first byte of a line
	values   map[string][]string   // options with a value, by program
	words    map[string][]string   // lists of words and phrases
	scripts  map[string]string     // what a part of a script's name tells
	prints   map[string]kinds      // by scripts of a kind
	names    map[string]kinds
	any      kinds // all that checks print
	nothing  kinds // what says something by printing nothing
}

var read = sync.OnceValue(func() *table {
	t := &table{commands: map[string][]*command{}, values: map[string][]string{}, words: map[string][]string{}, scripts: map[string]string{}, prints: map[string]kinds{}, names: map[string]kinds{}}
	for line := range strings.Lines(events) {
		cells := strings.SplitN(strings.TrimSpace(line), "|", 6)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch cells[0] {
		case "words":
			t.words[cells[1]] = append(t.words[cells[1]], strings.Fields(cells[2])...)
		case "phrases":
			for phrase := range strings.FieldsSeq(cells[2]) {
				t.words[cells[1]] = append(t.words[cells[1]], strings.ReplaceAll(phrase, "~", " "))
			}
		case "values":
			for name := range strings.FieldsSeq(cells[1]) {
				t.values[name] = strings.Fields(cells[2])
			}
		case "scripts":
			for part := range strings.FieldsSeq(cells[2]) {
				t.scripts[part] = cells[1]
			}
			t.prints[cells[1]] = t.kinds(cells[3])
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

// is reports whether a word stands in a list of the table.
func is(list, word string) bool { return slices.Contains(read().words[list], word) }

// has reports whether a text has one of the phrases of a list.
func has(list, text string) bool {
	return slices.ContainsFunc(read().words[list], func(phrase string) bool { return strings.Contains(text, phrase) })
}

// begins reports whether a text begins with one of the phrases of a list, in whatever letters.
func begins(list, text string) bool {
	return slices.ContainsFunc(read().words[list], func(phrase string) bool { return scan.HasPrefixFold(text, phrase) })
}

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
	for _, name := range c.words[0].of {
		t.commands[name] = append(t.commands[name], c)
	}
}

// forms are what stands in the lines of the table for parts that differ.
var forms = strings.NewReplacer("…", `.*`, "<n>", `[1-9][0-9]*`, "<#>", `[0-9]+`, "<s>", `\s+`, "<file>", `[^\s:]+`, "<old>", `[0-9a-f]{4,64}`,
	"<hash>", `(?P<hash>[0-9a-f]{4,64})`, "<branch>", `(?P<branch>[^\s~^:?*\[\\'"<>|]{1,200})`, "<to>", `\S+`, "<subject>", `(?P<subject>.*)`,
	"<url>", `(?P<url>https://[^/\s"'<>]*(?:/[^/\s"'<>]*){2,}/(?:pulls?|merge_requests|pull-requests)/[0-9]+)`)

// differing is a part of a line of the table that differs.
var differing = lazyregexp.New(`…|<[a-z#]+>`)

func (t *table) addPrinted(cells []string) {
	event, rank, _ := strings.Cut(cells[3], " ")
	p := &printed{by: t.kinds(cells[1]), event: event, rank: (rank + "0")[0] - '0', example: cells[5]}
	if p.rank > 0 {
		t.any |= p.by
	}
	line := cells[2]
	if line == "(nothing)" {
		t.nothing |= p.by
		return
	}
	p.form = lazyregexp.New("^" + forms.Replace(regexp.QuoteMeta(line)) + "$")
	parts := differing().Split(line, -1)
	p.prefix, p.part = parts[0], slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
	digits := strings.HasPrefix(line, "<n>") || strings.HasPrefix(line, "<#>")
	for b := range 256 {
		if p.prefix != "" && p.prefix[0] == byte(b) || p.prefix == "" && (!digits || scan.IsDigit(byte(b))) {
			t.printed[b] = append(t.printed[b], p)
		}
	}
}

// told is a line of output that a row knows.
type told struct {
	*printed
	text, hash, branch, subject, url string
	several                          bool // a check said the same of something else before
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
		if p.by&^by == 0 || !strings.HasPrefix(line, p.prefix) || !strings.Contains(line, p.part) {
			continue
		}
		form := p.form()
		found := form.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		part := func(name string) string {
			if i := form.SubexpIndex(name); i >= 0 {
				return found[i]
			}
			return ""
		}
		by |= p.by
		add(told{p, line, part("hash"), part("branch"), part("subject"), part("url"), false})
	}
}

// wrapping bounds the programs around a program.
const wrapping = 4

// what says what a command does; nothing if it is not known. args are its words that are no options, from the
// one behind those of the row on, and kind the kind of a check.
func (t *table) what(words []string) (c *command, kind string, args []string) {
	if len(words) == 1 && words[0] == "" { // a line that could not be read
		return t.commands["(unread)"][0], "", nil
	}
	for range wrapping {
		words = shell.Unwrap(words)
		if len(words) == 0 || slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(t.words["asking"], w) }) {
			break
		}
		c, at, kind := t.row(words)
		if c.event != "runs" {
			for _, n := range at {
				args = append(args, words[n])
			}
			return c, kind, args
		}
		if len(at) == 0 {
			break
		}
		words = words[at[0]:]
		name := path.Base(words[0])
		if version := strings.LastIndexByte(name, '@'); version > 0 {
			name = name[:version]
		}
		if words = append([]string{name}, words[1:]...); len(t.commands[name]) == 0 {
			return t.commands["./"][0], "", nil // a script, whatever runs it
		}
	}
	return nothing, "", nil
}

// row is the first row that fits, and the places of the words behind those of the row.
func (t *table) row(words []string) (c *command, rest []int, kind string) {
	at := t.positional(words)
	for _, c := range t.commands[path.Base(words[0])] {
		if rest, kind, ok := c.fits(t, words, at); ok {
			return c, rest, kind
		}
	}
	if strings.Contains(words[0], "/") {
		return t.commands["./"][0], nil, ""
	}
	return nothing, nil, ""
}

// positional are the places of the words that are neither options nor their values, the first left out.
func (t *table) positional(words []string) (at []int) {
	name := path.Base(words[0])
	values := t.values[name]
	for n := 1; n < len(words); n++ {
		switch w := words[n]; {
		case w == "--" || name == "cargo" && strings.HasPrefix(w, "+"):
		case !strings.HasPrefix(w, "-") || w == "-":
			at = append(at, n)
		case slices.Contains(values, w) || len(w) > 2 && w[1] != '-' && scan.IsLetter(w[1]) && slices.Contains(values, "-"+w[len(w)-1:]):
			n++
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
			if slices.ContainsFunc(words[1:], p.isOption) == p.forbid {
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
		if kind == "script" && p.of[0] == "SCRIPT" {
			kind = t.scriptKind(words[at[n]])
		}
		if at = at[n+1:]; p.of[0] != "WORD" && p.of[0] != "REV" {
			rest = at
		}
	}
	return rest, kind, true
}

// isOption reports whether a word is one of the options, or what must not be there.
func (p *pattern) isOption(w string) bool {
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
	name = strings.ToLower(camel().ReplaceAllString(name, "$1-$2"))
	if strings.HasPrefix(name, "type-check") || strings.HasPrefix(name, "check-types") || strings.HasPrefix(name, "check:types") {
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
