package recall

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// question is a query as it was understood.
type question struct {
	text     string   // without filters
	words    string   // without phrases and prefixes
	phrases  []string // in double quotes
	prefixes []string // words that end with a star, without it
	only     filter
	likely   filter // counts more, and excludes nothing
}

// filter admits some entries; the zero value admits all.
type filter struct {
	threadID    string
	tool        string // whose result the entry is
	ran, call   folded // the tool or the program that the entry calls, or is the output of
	role        thread.Role
	file        folded
	first, last int // turns; no limit without last
	during      period
}

// filters are those that a query can hold, as NAME:VALUE. set is false for a value that is none: then
// they are words, and Options.Check says what it takes, where want does.
var filters = []struct {
	name, example, want string
	set                 func(f *filter, value string, now time.Time) bool
}{
	{"from", "from:user", " (or assistant, tool, system)", func(f *filter, value string, _ time.Time) bool {
		f.role = thread.Role(strings.ToLower(value))
		return slices.Contains([]thread.Role{thread.User, thread.Assistant, thread.Tool, thread.System}, f.role)
	}},
	{"tool", "tool:pytest", "", func(f *filter, value string, _ time.Time) bool { f.setRan(value); return true }},
	{"file", "file:client.go", "", func(f *filter, value string, _ time.Time) bool {
		f.file = newFolded(value)
		return !strings.HasPrefix(value, "//") // an address
	}},
	{"turn", "turn:3-9", " (the first turn and the last, or one)", func(f *filter, value string, _ time.Time) bool {
		first, last, isRange := strings.Cut(value, "-")
		if !isRange {
			last = first
		}
		var errs [2]error
		f.first, errs[0] = strconv.Atoi(first)
		f.last, errs[1] = strconv.Atoi(last)
		return errs == [2]error{} && f.last > 0 && f.first <= f.last
	}},
	{"on", "on:2026-03-01", "", func(f *filter, value string, now time.Time) (ok bool) {
		f.during, ok = periodOf(value, now)
		return ok
	}},
	{"after", "after:2026-03-01", "", func(f *filter, value string, now time.Time) bool {
		p, ok := periodOf(value, now)
		f.during.from = p.until
		return ok
	}},
	{"before", "before:yesterday", "", func(f *filter, value string, now time.Time) bool {
		p, ok := periodOf(value, now)
		f.during.until = p.from
		return ok
	}},
}

// Check returns an error for a filter that has no value, as from: at the end of a query, or one that is none, as
// from:usr, which Search takes as words. The error says what the filter takes. The options do not matter; nil is good.
func (*Options) Check(query string) error {
	for n, part := range strings.Split(query, `"`) {
		for word := range strings.FieldsSeq(part) {
			name, value, is := strings.Cut(word, ":")
			for _, f := range filters {
				if is && n%2 == 0 && hasFilters(query) && strings.EqualFold(name, f.name) && (value == "" && strings.HasSuffix(query, word) ||
					value != "" && f.want != "" && !f.set(&filter{}, value, time.Time{})) {
					return fmt.Errorf("%.60q: %s: wants a value behind it, without a space, such as %s%s; in double quotes it is a word", word, f.name, f.example, f.want)
				}
			}
		}
	}
	return nil
}

// hasFilters reports whether a query is none that is searched as a description.
func hasFilters(query string) bool {
	return len(query) <= maxPhrased && strings.Count(query, `"`) <= maxQuotes
}

// said are verbs of who asks for what was said.
const said = ` (?:say|said|ask|asked|tell|told|want|wanted|write|wrote|mention|mentioned)\b`

// spoken are words that say what is likely meant. The first group, if there is one, is a tool.
var spoken = []struct {
	form    func() *regexp.Regexp
	example string
	likely  filter
}{
	{lazyregexp.New(`(?i)\b(?:I|the user)` + said), "what did I say about retries", filter{role: thread.User}},
	{lazyregexp.New(`(?i)\b(?:you|the (?:assistant|model))` + said), "what you said about retries", filter{role: thread.Assistant}},
	{lazyregexp.New(`(?i)\boutput of (?:the )?([\w./-]*\w)`), "in the output of pytest", filter{role: thread.Tool}},
}

// maxPhrased is the length in bytes up to which a query is also searched as it is; a longer
// one is a description. maxQuotes is the number of quotes up to which they have a meaning.
const maxPhrased, maxQuotes = 300, 4

// newQuestion reads a query, seen from the time of the latest entry.
func newQuestion(query string, o *Options, now time.Time) question {
	q := question{only: filter{threadID: o.ThreadID, tool: o.Tool, role: o.Role}}
	if !hasFilters(query) {
		q.words = strings.ReplaceAll(query, `"`, " ")
		q.text = strings.TrimSpace(strings.ReplaceAll(query, `"`, ""))
		return q
	}
	var kept []string
	for n, part := range strings.Split(query, `"`) {
		if n%2 == 1 {
			kept = append(kept, part)
			if part = strings.TrimSpace(part); part != "" {
				q.phrases = append(q.phrases, part)
			}
			continue
		}
		for field := range strings.FieldsSeq(part) {
			space, rest, _ := strings.Cut(part, field)
			kept, part = append(kept, space), rest
			if q.only.read(field, now) {
				continue
			}
			kept = append(kept, field)
			prefix, is := strings.CutSuffix(field, "*")
			if prefix = strings.TrimLeft(prefix, "*./"); is && utf8.RuneCountInString(prefix) > 1 {
				q.prefixes = append(q.prefixes, strings.ToLower(prefix))
				continue
			}
			q.words += field + " "
		}
		kept = append(kept, part)
	}
	q.text = strings.TrimSpace(strings.Join(kept, ""))
	for _, s := range spoken {
		if m := s.form().FindStringSubmatch(q.words); m != nil {
			q.likely = s.likely
			if len(m) > 1 {
				q.likely.setRan(m[1])
			}
		}
	}
	return q
}

// read adds a filter such as from:user; false is for other words.
func (f *filter) read(word string, now time.Time) bool {
	name, value, _ := strings.Cut(word, ":")
	for _, known := range filters {
		with := *f
		if value != "" && strings.EqualFold(name, known.name) && known.set(&with, value, now) {
			*f = with
			return true
		}
	}
	return false
}

// admits reports whether entry i is one that the filter is for.
func (f *filter) admits(x *Index, i int) bool {
	e := &x.entries[i]
	return (f.threadID == "" || f.threadID == e.ThreadID) && (f.tool == "" || f.tool == e.Tool) && (f.role == "" || f.role == e.Role && e.Author == "") &&
		(f.last == 0 || f.first <= e.Turn && e.Turn <= f.last) &&
		(f.during.from.IsZero() || !e.Time.Before(f.during.from)) && (f.during.until.IsZero() || !e.Time.IsZero() && e.Time.Before(f.during.until)) &&
		(f.ran.phrase == "" || strings.EqualFold(f.ran.phrase, e.Tool) || e.Tool != "" && f.ran.inWord(e.Call) || e.Tool == "" && f.call.index(e.Text) >= 0) &&
		(f.file.phrase == "" || f.file.index(e.Call) >= 0 || f.file.index(x.views[i]) >= 0)
}

// setRan sets the tool or program that an entry calls: its name stands before the arguments.
func (f *filter) setRan(name string) { f.ran, f.call = newFolded(name), newFolded(name+" {") }
