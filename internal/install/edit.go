package install

import (
	"cmp"
	"errors"
	"fmt"
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
	wholeFile  Kind = "file"       // Value is the file
	jsonMember Kind = "member"     // Value is added at Path of a JSON object, which may have comments
	tomlTable  Kind = "table"      // Value, a table with its header, is added to a TOML file
	hooksOf    Kind = "hooks"      // the hooks of the agent Path, which call the shell command Value
	noHooks    Kind = "no hooks"   // those are taken out, because the plugin brings them
	statusLine Kind = "statusline" // the status line at Path, by the shell command Value

	settingLine Kind = "setting" // Value, the line of a policy, is added to this program's own settings
)

// part is what the kind belongs to.
func (k Kind) part() Part {
	switch k {
	case settingLine:
		return ""
	case wholeFile, noHooks:
		return Plugin
	case hooksOf:
		return Hooks
	case statusLine:
		return Status
	}
	return MCP
}

// Edit is one thing that is added to a file, and what is needed to take it out again.
type Edit struct {
	Kind  Kind     `json:"kind"`
	Path  []string `json:"path,omitempty"`
	Value string   `json:"value,omitempty"`
	// Old is what was at the place before, and Names how many names of the path were there.
	Old   string `json:"old,omitempty"`
	Names int    `json:"names,omitempty"`
}

// ErrOthers is wrapped by errors about what is not ours, or was changed since it was: it is left
// as it is.
var ErrOthers = errors.New("left as it is")

// what says what is added, in a few words.
func (e Edit) what() string {
	switch e.Kind {
	case wholeFile:
		return "the plugin"
	case noHooks:
		return ""
	case settingLine:
		return "the setting " + strings.TrimSpace(e.Value)
	case hooksOf:
		return "hooks"
	case statusLine:
		if e.Old != "" {
			return "a status line, which runs yours first"
		}
		return "a status line"
	}
	return "an MCP server"
}

// applyAll makes the edits one after the other. It notes in them what was there before.
func applyAll(path string, edits []Edit, text []byte) ([]byte, error) {
	for i := range edits {
		var err error
		if text, err = edits[i].apply(path, text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// header matches the header of our table in TOML, and inline any other way to have it.
var (
	header = lazyregexp.New(`(?m)^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*["']?palimpsest["']?[ \t]*[.\]]`)
	inline = lazyregexp.New(`(?m)^[ \t]*mcp_servers[ \t]*(=|\.[ \t]*["']?palimpsest)`)
)

// apply makes the edit. What is there already, of an earlier installation, is put in anew; what
// others put there is an error that wraps ErrOthers.
func (e *Edit) apply(path string, text []byte) ([]byte, error) {
	doc := string(text)
	switch e.Kind {
	case wholeFile:
		if text != nil && !strings.Contains(strings.ToLower(doc), "palimpsest") {
			return nil, fmt.Errorf("%w: it is no file of ours; move it away first", ErrOthers)
		}
		return []byte(e.Value), nil
	case hooksOf:
		h, err := hook.Find(e.Path[0])
		if err != nil {
			return nil, err
		}
		out, err := h.Add(text, e.Value)
		if err == nil && sameJSON(string(out), doc) { // in another order
			return text, nil
		}
		return out, err
	case noHooks:
		h, err := hook.Find(e.Path[0])
		if err != nil {
			return nil, err
		}
		return h.Remove(text)
	case tomlTable:
		if header().MatchString(doc) {
			return text, nil
		}
		if inline().MatchString(doc) {
			return nil, fmt.Errorf("%w: it lists MCP servers in one line; add palimpsest there", ErrOthers)
		}
		return []byte(doc + e.tableText(doc)), nil
	case statusLine:
		return e.applyStatus(doc)
	case settingLine:
		if !strings.Contains("\n"+doc, "\n"+e.Value) && ownPolicy().MatchString(doc) {
			return nil, fmt.Errorf("%w: it names a policy already: give that one `rules: agent` in its `summarizer`", ErrOthers)
		}
		return []byte(withLine(doc, e.Value)), nil
	}
	old, names, err := jsonedit.Member(doc, e.Path...)
	if strings.TrimSpace(doc) == "" {
		old, names, err = "", 0, nil
	}
	if err != nil || sameJSON(old, e.Value) {
		return text, err
	}
	if old != "" && !strings.Contains(old, "palimpsest") {
		return nil, fmt.Errorf("%w: it has another %s", ErrOthers, strings.Join(e.Path, "."))
	}
	e.Names = names
	out, err := jsonedit.SetMember(doc, e.Value, e.Path...)
	return []byte(out), err
}

// ownPolicy matches the line of a policy in this program's settings.
var ownPolicy = lazyregexp.New(`(?m)^["']?policy["']?[ \t]*:`)

// withLine is a document with a line at its end, unless it has the line.
func withLine(doc, line string) string {
	switch {
	case strings.Contains("\n"+doc, "\n"+line):
		return doc
	case doc != "" && !strings.HasSuffix(doc, "\n"):
		return doc + "\n" + line
	}
	return doc + line
}

// tableText is the table behind a document, with an empty line between.
func (e *Edit) tableText(doc string) string {
	switch {
	case doc == "":
		return e.Value
	case strings.HasSuffix(doc, "\n"):
		return "\n" + e.Value
	}
	return "\n\n" + e.Value
}

func (e *Edit) applyStatus(doc string) ([]byte, error) {
	old, names, err := "", 0, error(nil)
	if strings.TrimSpace(doc) != "" {
		old, names, err = jsonedit.Member(doc, e.Path...)
	}
	if err != nil {
		return nil, err
	}
	if old != "" && (!rawjson.Valid(old) || gjson.Get(old, "type").Str != "command") {
		return nil, fmt.Errorf("%w: its status line is of another form: set the command %q by hand, which takes the one before as --after", ErrOthers, e.Value+statusSuffix)
	}
	command, ok := StatusCommand(e.Value, gjson.Get(old, "command").Str)
	if !ok {
		return []byte(doc), nil
	}
	e.Old, e.Names = old, names
	value, err := jsonedit.SetMember(cmp.Or(old, `{"type":"command"}`), rawjson.Quote(command), "command") // its padding stays
	if err == nil && !gjson.Get(value, "refreshInterval").Exists() {
		value, err = jsonedit.SetMember(value, strconv.Itoa(refreshSeconds), "refreshInterval")
	}
	if err != nil {
		return nil, err
	}
	out, err := jsonedit.SetMember(doc, value, e.Path...)
	return []byte(out), err
}

// remove takes the edit out of a text that others may have changed since. What they changed of
// it is left, with an error that wraps ErrOthers, unless force is set.
func (e *Edit) remove(text []byte, force bool) ([]byte, error) {
	doc := string(text)
	switch e.Kind {
	case wholeFile:
		if !force { // one that was not changed is not asked about
			return text, fmt.Errorf("%w: it was changed since it was installed; `palimpsest uninstall --force` removes it", ErrOthers)
		}
		return nil, nil
	case noHooks:
		return text, nil
	case settingLine:
		if at := strings.Index("\n"+doc, "\n"+e.Value); at >= 0 {
			doc = doc[:at] + doc[at+len(e.Value):]
		}
		return []byte(doc), nil
	case hooksOf:
		h, err := hook.Find(e.Path[0])
		if err != nil {
			return text, err
		}
		return h.Remove(text)
	case tomlTable:
		return e.removeTable(doc, force)
	}
	now, _, err := jsonedit.Member(doc, e.Path...)
	switch {
	case err != nil:
		return text, err
	case now == "":
		return text, nil
	case e.Kind == statusLine && !IsStatusCommand(gjson.Get(now, "command").Str):
		return text, nil // another one took its place
	case e.Kind == jsonMember && !holds(now, e.Value) && !force:
		return text, fmt.Errorf("%w: %s was changed since it was installed; `palimpsest uninstall --force` removes it", ErrOthers, strings.Join(e.Path, "."))
	case e.Old != "":
		doc, err = jsonedit.SetMember(doc, e.Old, e.Path...)
	default:
		doc, err = jsonedit.RemoveMember(doc, e.Names, e.Path...)
	}
	return []byte(doc), err
}

// tableHeader matches the beginning of a table in TOML.
var tableHeader = lazyregexp.New(`(?m)^[ \t]*\[`)

func (e *Edit) removeTable(doc string, force bool) ([]byte, error) {
	at := header().FindStringIndex(doc)
	if at == nil {
		return []byte(doc), nil
	}
	end := at[0] + len(e.Value)
	if !strings.HasPrefix(doc[at[0]:], e.Value) || !ends(doc[end:]) {
		if !force {
			return []byte(doc), fmt.Errorf("%w: the table mcp_servers.palimpsest was changed since it was installed; `palimpsest uninstall --force` removes it", ErrOthers)
		}
		end = len(doc)
		if next := tableHeader().FindStringIndex(doc[at[1]:]); next != nil {
			end = at[1] + next[0]
		}
	}
	head := doc[:at[0]]
	if strings.HasSuffix(head, "\n\n") {
		head = head[:len(head)-1]
	}
	return []byte(head + doc[end:]), nil
}

// ends reports whether the rest of a TOML file adds nothing to the table before it.
func ends(rest string) bool {
	for line := range strings.Lines(rest) {
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		default:
			return strings.HasPrefix(line, "[") && !header().MatchString(line)
		}
	}
	return true
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
