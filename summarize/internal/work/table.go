package work

import (
	"cmp"
	_ "embed" // the table
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

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
	form      func() *regexp.Regexp // its operands, each behind a space
	options   [][]string            // of each, one is among its words
	forbidden []string              // none of these is
	event     string
	reports   kinds    // what its output says
	unknown   []string // what nobody knows after it
	example   string
}

// printed is a row that says what a line of output tells.
type printed struct {
	by      kinds
	event   string
	rank    byte   // of a check, how much it says: 3 names something, 2 counts, 1 is a bare word; 3 more if it failed
	prefix  string // how a line begins
	part    string // what stands in it
	bytes   uint64 // of part
	form    func() *regexp.Regexp
	example string
}

// Events of lines of checks, and of a check that lists what is wrong and says by its status that it did.
const (
	failed  = "failed"
	passed  = "passed"
	listing = "format by output"
	// Of a task of a runner that begins, and of one that passed.
	finished = "finished"
	begun    = "begun"
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

// Words of a row that stand for others.
var wordForms = strings.NewReplacer("WORD", `\S+`, "REV", `(?:(?:HEAD|@)[~^@]\S*|(?:origin|upstream)/\S*|\S*[~^][0-9]*|[0-9a-f]{7,64})`, ".", `\.`, ",", "|")

func (t *table) addCommand(cells []string) {
	c := &command{event: cells[2], reports: t.kinds(cells[3]), unknown: strings.Fields(cells[4]), example: cells[5]}
	words := strings.Fields(cells[1])
	form, args := "^", "(?P<args>"
	for _, word := range words[1:] {
		switch {
		case word == "…":
			form += `(?: \S+)*`
		case word == "$":
			form += "$"
		case strings.HasPrefix(word, "!"):
			c.forbidden = strings.Split(word[1:], ",")
		case strings.HasPrefix(word, "-"):
			c.options = append(c.options, strings.Split(word, ","))
		default:
			if word == "WORD" {
				form, args = form+args, ""
			}
			form += " (?:" + wordForms.Replace(word) + ")"
		}
	}
	c.form = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(strings.ReplaceAll(form, "SCRIPT", t.scriptForm()) + args + "(?: .*)?)$")
	})
	for name := range strings.SplitSeq(words[0], ",") {
		t.commands[name] = append(t.commands[name], c)
	}
}

// scriptForm is how the name of a script reads that tells what it checks, by a part of it.
func (t *table) scriptForm() string {
	parts := slices.SortedFunc(maps.Keys(t.scripts), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return `(?:\S*?[^a-zA-Z0-9 ])??(?P<part>(?i:` + strings.Join(parts, "|") + `))(?:[^a-z0-9 ]\S*)?`
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
	if event == failed {
		p.rank += 3
	}
	line := cells[2]
	if line == "(nothing)" {
		t.nothing |= p.by
		return
	}
	p.form = lazyregexp.New("^" + forms.Replace(regexp.QuoteMeta(line)) + "$")
	parts := differing().Split(line, -1)
	p.prefix, p.part = parts[0], slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
	p.bytes = bytesIn(p.part)
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
	several                          bool   // a check said the same of something else before
	task                             string // of a runner, that printed it; "" if that is not known
	apart                            bool   // the line names the task: others may have printed what stands around it
}

// maxTold bounds a line that is looked at, in bytes.
const maxTold = 1000

// bytesIn are the bytes of a text, by their last six bits.
func bytesIn(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] & 63)
	}
	return set
}

// tell appends what a line says: for each kind of output what the first row that fits says.
func (t *table) tell(line string, add func(told)) {
	if line == "" || len(line) > maxTold {
		return
	}
	by, bytes := kinds(0), bytesIn(line)
	for _, p := range t.printed[line[0]] {
		if p.by&^by == 0 || p.bytes&^bytes != 0 || !strings.HasPrefix(line, p.prefix) || !strings.Contains(line, p.part) {
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
		add(told{printed: p, text: line, hash: part("hash"), branch: part("branch"), subject: part("subject"), url: part("url")})
	}
}

// wrapping bounds the programs around a program.
const wrapping = 4

// what says what a command does; noCommand if it is not known. args are its words that are no options, from the
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
		c, kind, args := t.row(words)
		if c.event != "runs" {
			return c, kind, args
		}
		if len(args) == 0 {
			break
		}
		name, at := path.Base(args[0]), slices.Index(words[1:], args[0])
		if version := strings.LastIndexByte(name, '@'); version > 0 {
			name = name[:version]
		}
		if words = append([]string{name}, words[at+2:]...); len(t.commands[name]) == 0 {
			return t.commands["./"][0], "", nil // a script, whatever runs it
		}
	}
	return noCommand, "", nil
}

// How many bytes of the operands of a command, and of one of them, are held against a row.
const (
	maxOperands = 500
	maxOperand  = 300
)

// row is the first row that fits, with the kind of a check and the words behind those of the row.
func (t *table) row(words []string) (c *command, kind string, args []string) {
	name := path.Base(words[0])
	operands := shell.Operands(words[1:], t.values[name]...)
	if name == "cargo" { // of another tool chain
		operands = slices.DeleteFunc(operands, func(w string) bool { return strings.HasPrefix(w, "+") })
	}
	var head strings.Builder // what the forms are held against
	n := 0
	for ; n < len(operands) && head.Len() < maxOperands; n++ {
		word := strings.Join(strings.Fields(operands[n]), "_")
		head.WriteString(" " + word[:min(len(word), maxOperand)])
	}
	for _, c := range t.commands[name] {
		found := c.fits(words[1:], head.String())
		if found == nil {
			continue
		}
		if kind, _, _ = strings.Cut(c.event, " "); kind == "script" {
			kind = t.scripts[strings.ToLower(found[c.form().SubexpIndex("part")])]
		}
		return c, kind, append(strings.Fields(found[c.form().SubexpIndex("args")]), operands[n:]...)
	}
	if strings.Contains(words[0], "/") {
		return t.commands["./"][0], "", nil
	}
	return noCommand, "", nil
}

// fits returns the parts of the operands of a command with these words, if the row is of it.
func (c *command) fits(words []string, operands string) []string {
	has := func(options []string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			name, _, _ := strings.Cut(w, "=")
			return slices.Contains(options, name)
		})
	}
	if has(c.forbidden) || slices.ContainsFunc(c.options, func(options []string) bool { return !has(options) }) {
		return nil
	}
	return c.form().FindStringSubmatch(operands)
}
