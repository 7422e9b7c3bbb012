package truth

import "regexp"

// form is a form of line.
type form struct {
	section string // the heading above it, up to its remark in brackets
	name    string
	like    *regexp.Regexp
	all     bool // it tells of the whole log, not of the span alone
	// proof looks for what shows a claim; it returns why it is false, or nothing.
	proof func(x *index, c claim) string
}

// Parts that many forms have: the turn in front, the turn behind, and words.
const (
	inTurn = `(?:\(turn (?P<turn>\d+)\) )?`
	turnAt = `(?: \(turn (?P<turn>\d+)\))?`
)

func like(s string) *regexp.Regexp { return regexp.MustCompile(`(?s)^(?:` + s + `)$`) }

var forms []form

func init() { // the rows call functions that read the table
	const (
		work  = "Where the work stands"
		story = "What happened"
		rules = "Constraints and preferences"
		also  = "The user also said"
	)
	forms = []form{
		{"Current task", "task", like(`"(?P<words>.*)"`), true, byUser},
		{rules, "constraint", like(inTurn + `"(?P<words>.*?)"(?: \(asked: "(?P<asked>.*)"\))?`), false, byUser},
		{also, "stated", like(inTurn + `"(?P<words>.*?)"(?: \(asked: "(?P<asked>.*)"\))?`), false, byUser},
		{also, "not shown", like(`\[(?P<n>\d+) more sentences of the user may still hold and are not shown here\]`), false, manySentences},
		{"Plan", "plan", like(`(?:\[(?P<status>\w+)\] )?(?P<words>.*)`), true, planned},
		{"Open items", "open item", like(inTurn + `(?:\[(?:high|medium|low)\] )?(?P<words>.*?)(?: \| (?P<because>.*))?`), false, byAssistant},
		{"Decisions", "decision", like(inTurn + `(?:\([\d-]+T[\d:]+Z\) )?(?P<words>.*?)(?: \| because: (?P<because>.*))?`), false, byAssistant},
		{"Facts", "fact", like(inTurn + `(?P<words>.*)`), false, quoted},
		{"Identifiers in context", "identifiers", like(inTurn + `(?P<words>.*)`), false, quoted},
		{"Artifacts", "artifact", like(inTurn + `artifact:(?P<words>\S+)(?: \| .*)?`), false, func(*index, claim) string { return "" }},

		{story, "turn", like(`turn (?P<turn>\d+)(?P<outside> \(the user's message stands outside of this summary\))?|earlier`), true, turnIsThere},
		{story, "request", like(`user: "(?P<words>.*)"`), false, byUser},
		{story, "conclusion", like(`assistant: (?P<words>.*)`), false, byAssistant},
		{story, "attempt", like(`failed: (?P<words>.*)`), false, attempted},
		{story, "change", like(`changed: (?P<words>(?P<what>created|edited|deleted) (?P<file>.+?)(?:, (?P<note>moved (?:from|to) [^:|]+|restored by git))?(?:: (?P<new>.*?))?(?: \| without: (?P<old>.*))?)`), false, changed},
		{story, "held", like(`\[turns (?P<first>\d+) to (?P<last>\d+) in part; calls: (?P<calls>\d+), passages of the assistant's words: (?P<n>\d+)\]`), false, held},
		{story, "report", like(`sub-agent: (?P<words>.*)`), false, quoted},

		{"Files", "file", like(`(?P<path>.+?): (?P<ops>(?:read|created|edited|deleted)(?:, (?:read|created|edited|deleted))*)` + turnAt + `(?: \| (?P<note>.*))?`), false, touched},
		{"Calls", "call", like(inTurn + `(?P<call>.*)`), false, called},

		{work, "place", like(`(?:directory: (?P<directory>.*?))?(?: \| )?(?:branch: (?P<branch>[^|]*?))?(?: \| )?(?:pull request: (?P<pull>\S*))?`), true, placed},
		{work, "paths below", like(`paths are below (?P<folder>/.*)`), true, folderIsNamed},
		{work, "more before", like(`and (?P<n>\d+) (?P<what>.+?)(?: before these)?`), true, manyMore},
		{work, "not listed", like(`not listed for want of room: (?P<list>.*)`), true, manyMore},
		{work, "commit", like(`commit (?:(?P<hash>[0-9a-f]+) )?"(?P<subject>.*?)"(?: in (?P<dir>.*?))?(?: \((?:turn (?P<turn>\d+))?(?:, )?(?P<pushed>pushed)?\))?(?:, perhaps taken back or made anew by ` + "`(?P<by>.*)`" + `(?: \(turn (?P<since>\d+)\))?)?`), true, committed},
		{work, "newest commit", like(`newest commit in git log: "(?P<subject>.*)"` + turnAt), true, newest},
		{work, "edited", like(`edited(?: since the last commit|, not committed by the assistant \(perhaps by the user\)|(?P<perhaps>, perhaps committed)): (?P<files>.*?)(?: and \d+ before these)?(?: \((?P<until>until )?turn (?P<turn>\d+)\))?`), true, editedSince},
		{work, "unknown", like("unknown since `(?P<by>.*)`" + turnAt + `: (?P<what>.*)`), true, ranThen},
		{work, "check", like(`(?P<kind>build|test|lint|format|check) ` + "`(?P<command>.*?)(?: \\(in (?P<dir>[^()]*)\\))?`" + `: (?P<outcome>passed|succeeded|failed|its output does not tell how it went)` + turnAt + `(?: \| (?P<tail>.*))?`), true, checked},
		{work, "not allowed", like(`not allowed` + turnAt + `: (?P<call>.*)`), true, refused},
		{work, "running", like(`started in the background and not seen to end` + turnAt + `: (?P<what>.*)`), true, runs},
		{work, "next", like(`next, in the assistant's words: "(?P<words>.*)"`), true, byAssistant},
		{work, "operation", like(`(?P<outcome>done|refused|failed|asked, no result seen|canceled|done in part)` + turnAt + `: (?P<call>.*)`), true, operated},
	}
}

var (
	stash   = regexp.MustCompile(`^git stash(?: (?:push|save)\b.*| -\S*| --\S*)*$`)
	unstash = regexp.MustCompile(`^git stash (?:pop|apply)`)
)

// forgets are commands after which something that was seen before them is not known any more,
// unless they are taken back or it is seen again: branch is of the branch, tree of uncommitted
// changes of all files, or of those that the command names.
var forgets = []struct {
	like   *regexp.Regexp // of a command, without options of git itself
	branch bool
	tree   bool
	back   *regexp.Regexp // of a later command that takes it back
}{
	{regexp.MustCompile(`^git (?:checkout|switch) (?:-[bBcC] )?([\w./-]+)$`), true, false, nil},
	{regexp.MustCompile(`^git reset .*--hard`), false, true, nil},
	{regexp.MustCompile(`^git (?:checkout|restore) (?:\S+ )?(?:-- )?\.$`), false, true, nil},
	{stash, false, true, unstash},
	{regexp.MustCompile(`^git (?:checkout|restore) (?:.* )?-- `), false, false, nil},
}
