package install

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Kind is how an edit changes a file.
type Kind string

// The kinds of edits.
const (
	wholeFile   Kind = "file"       // the whole file is ours
	jsonMember  Kind = "member"     // Value is added at Path of a JSON object, which may have comments
	statusLine  Kind = "statusline" // the status line at Path, by the shell command Value
	hooksOf     Kind = "hooks"      // the hooks of the agent Path, which call the shell command Value; without one, none
	tomlTable   Kind = "table"      // Value, a table with its header, is added to a TOML file
	settingLine Kind = "setting"    // Value, the line of a policy, is added to this program's own settings
)

// Edit is one thing that is added to a file, and what is needed to take it out again.
type Edit struct {
	Kind  Kind     `json:"kind"`
	What  string   `json:"what,omitempty"` // in a few words
	Path  []string `json:"path,omitempty"`
	Value string   `json:"value,omitempty"`
	// Old is what was at the place before, and Names how many names of the path were there.
	Old   string `json:"old,omitempty"`
	Names int    `json:"names,omitempty"`

	text string // of a whole file
}

// ErrOthers is wrapped by errors about what is not ours, or was changed since it was: it is left
// as it is.
var ErrOthers = errors.New("left as it is")

// errChanged is about what was changed since we put it there.
func errChanged(what string) error {
	return fmt.Errorf("%w: %s was changed since it was installed; `palimpsest uninstall --force` removes it", ErrOthers, what)
}

// apply makes the edits one after the other, in a text that is nil for a new file. It notes in them
// what was there before. What others put there is an error that wraps ErrOthers.
func (c Change) apply(text []byte) (_ []byte, err error) {
	for i := range c.Edits {
		if text, err = c.Edits[i].apply(text); errors.Is(err, jsonedit.ErrShape) {
			err = fmt.Errorf("%w; correct it, and install again", err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	return text, nil
}

// apply makes the edit. What is there already, of an earlier installation, is put in anew.
func (e *Edit) apply(text []byte) ([]byte, error) {
	doc := string(text)
	switch e.Kind {
	case wholeFile:
		if text != nil && !strings.Contains(strings.ToLower(doc), "palimpsest") {
			return nil, fmt.Errorf("%w: it is no file of ours; move it away first", ErrOthers)
		}
		return []byte(e.text), nil
	case hooksOf:
		return e.hooks(text, e.Value)
	case tomlTable:
		if header().MatchString(doc) {
			return text, nil
		}
		return e.appendTo(doc, "\n", inline(), "it lists MCP servers in one line; add palimpsest there")
	case settingLine:
		if strings.Contains("\n"+doc, "\n"+e.Value) {
			return text, nil
		}
		return e.appendTo(doc, "", ownPolicy(), "it names a policy already: give that one `rules: agent` in its `summarizer`")
	}
	old, names, err := jsonedit.Member(doc, e.Path...)
	if err != nil {
		return nil, err
	}
	value := e.Value
	if e.Kind == statusLine {
		if value, err = e.status(old); err != nil {
			return nil, err
		}
	} else if old != "" && !strings.Contains(old, "palimpsest") {
		return nil, fmt.Errorf("%w: it has another %s", ErrOthers, strings.Join(e.Path, "."))
	}
	if sameJSON(old, value) {
		return text, nil
	}
	if command := gjson.Get(value, "command"); e.Kind == jsonMember && old != "" { // what else the user set there stays
		if sameJSON(gjson.Get(old, "command").Raw, command.Raw) {
			return text, nil
		}
		out, err := jsonedit.SetMember(doc, command.Raw, slices.Concat(e.Path, []string{"command"})...)
		return []byte(out), err
	}
	e.Names = names
	out, err := jsonedit.SetMember(doc, value, e.Path...)
	return []byte(out), err
}

// hooks puts the hooks of an agent into its settings, or takes them out where no command is given.
func (e *Edit) hooks(text []byte, command string) ([]byte, error) {
	h, err := hook.Find(e.Path[0])
	if err != nil || command == "" && text == nil {
		return text, err
	}
	if command == "" {
		return h.Remove(text)
	}
	out, err := h.Add(text, command)
	if err == nil && sameJSON(string(out), string(text)) { // in another order
		return text, nil
	}
	return out, err
}

var (
	// header matches the header of our table in TOML, inline any other way to have it, and tableHeader
	// that of any table.
	header      = lazyregexp.New(`(?m)^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*["']?palimpsest["']?[ \t]*[.\]]`)
	inline      = lazyregexp.New(`(?m)^[ \t]*mcp_servers[ \t]*(=|\.[ \t]*["']?palimpsest)`)
	tableHeader = lazyregexp.New(`(?m)^[ \t]*\[`)
	// tableEnd matches what adds nothing to the table before it.
	tableEnd = lazyregexp.New(`^([ \t\r]*(#.*)?\n)*[ \t]*(#.*)?(\[|$)`)
	// ownPolicy matches the line of a policy in this program's settings.
	ownPolicy = lazyregexp.New(`(?m)^["']?policy["']?[ \t]*:`)
)

// appendTo puts the value at the end of a document behind a gap, unless the document has what is in
// its way.
func (e *Edit) appendTo(doc, gap string, way *regexp.Regexp, why string) ([]byte, error) {
	switch {
	case way.MatchString(doc):
		return nil, fmt.Errorf("%w: %s", ErrOthers, why)
	case doc == "":
		gap = ""
	case !strings.HasSuffix(doc, "\n"):
		gap += "\n"
	}
	return []byte(doc + gap + e.Value), nil
}

const (
	statusSuffix = " statusline"
	chain        = " --after "
)

// refreshSeconds is how often Claude Code asks for the status line besides: it does not ask by
// itself after a compaction.
const refreshSeconds = 10

// isStatusLine reports whether a status line of Claude Code is ours.
func isStatusLine(value string) bool {
	head, _, _ := strings.Cut(gjson.Get(value, "command").Str, chain)
	return strings.HasSuffix(head, statusSuffix) && strings.Contains(head, "palimpsest")
}

// status is our status line, which runs the one that was there before.
func (e *Edit) status(old string) (string, error) {
	command := e.Value + statusSuffix
	if old != "" && (!rawjson.Valid(old) || gjson.Get(old, "type").Str != "command") {
		return "", fmt.Errorf("%w: its status line is of another form: set the command %q by hand, which takes the one before as --after", ErrOthers, command)
	}
	before := gjson.Get(old, "command").Str
	switch _, chained, ok := strings.Cut(before, chain); {
	case isStatusLine(old) && ok: // of an earlier installation
		command += chain + chained
	case isStatusLine(old) || old == "":
	default:
		command += chain + "'" + strings.ReplaceAll(before, "'", `'\''`) + "'"
		e.Old, e.What = old, "a status line, which runs yours first"
	}
	value, err := jsonedit.SetMember(cmp.Or(old, `{"type":"command"}`), rawjson.Quote(command), "command") // its padding stays
	if err == nil && !gjson.Get(value, "refreshInterval").Exists() {
		value, err = jsonedit.SetMember(value, strconv.Itoa(refreshSeconds), "refreshInterval")
	}
	return value, err
}

// remove takes the edit out of a text that others may have changed since. What they changed of
// it is left, with an error that wraps ErrOthers, unless force is set.
func (e *Edit) remove(text []byte, force bool) ([]byte, error) {
	doc := string(text)
	switch e.Kind {
	case wholeFile:
		if !force { // one that was not changed is not asked about
			return text, errChanged("it")
		}
		return nil, nil
	case hooksOf:
		if e.Value == "" {
			return text, nil
		}
		return e.hooks(text, "")
	case settingLine:
		if at := strings.Index("\n"+doc, "\n"+e.Value); at >= 0 {
			doc = doc[:at] + doc[at+len(e.Value):]
		}
		return []byte(doc), nil
	case tomlTable:
		return e.removeTable(doc, force)
	}
	now, _, err := jsonedit.Member(doc, e.Path...)
	switch {
	case err != nil || now == "" || e.Kind == statusLine && !isStatusLine(now): // another one took its place
		return text, err
	case e.Kind == jsonMember && !holds(now, e.Value) && !force:
		return text, errChanged(strings.Join(e.Path, "."))
	case e.Old != "":
		doc, err = jsonedit.SetMember(doc, e.Old, e.Path...)
	default:
		doc, err = jsonedit.RemoveMember(doc, e.Names, e.Path...)
	}
	return []byte(doc), err
}

func (e *Edit) removeTable(doc string, force bool) ([]byte, error) {
	at := header().FindStringIndex(doc)
	if at == nil {
		return []byte(doc), nil
	}
	rest, same := strings.CutPrefix(doc[at[0]:], e.Value)
	if !same || !tableEnd().MatchString(rest) || header().MatchString(rest) {
		if !force {
			return []byte(doc), errChanged("the table mcp_servers.palimpsest")
		}
		rest = ""
		if next := tableHeader().FindStringIndex(doc[at[1]:]); next != nil {
			rest = doc[at[1]+next[0]:]
		}
	}
	head := doc[:at[0]]
	if strings.HasSuffix(head, "\n\n") {
		head = head[:len(head)-1]
	}
	return []byte(head + rest), nil
}

// sameJSON reports whether two values say the same; comments in one are a difference.
func sameJSON(a, b string) bool { return holds(a, b) && holds(b, a) }

// holds reports whether a JSON value is another one, or an object with at least its members.
func holds(value, other string) bool {
	v, o := gjson.Parse(value), gjson.Parse(other)
	if !o.IsObject() || !v.IsObject() {
		return strings.Join(strings.Fields(value), "") == strings.Join(strings.Fields(other), "")
	}
	same := true
	o.ForEach(func(name, member gjson.Result) bool {
		same = holds(v.Get(gjson.Escape(name.Str)).Raw, member.Raw)
		return same
	})
	return same
}
