package install

import (
	"cmp"
	"errors"
	"fmt"
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

	text, mark string // of a whole file, and what another text of it has if it is ours
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
		if text != nil && !strings.Contains(strings.ToLower(doc), strings.ToLower(e.mark)) {
			return nil, fmt.Errorf("%w: it is no file of ours; move it away first", ErrOthers)
		}
		return []byte(e.text), nil
	case hooksOf:
		return e.hooks(text, e.Value)
	case tomlTable:
		return e.table(doc)
	case settingLine:
		if strings.Contains("\n"+doc, "\n"+e.Value) {
			return text, nil
		}
		if ownPolicy().MatchString(doc) {
			return nil, fmt.Errorf("%w: it names a policy already: give that one `rules: agent` in its `summarizer`", ErrOthers)
		}
		return e.appendTo(doc, ""), nil
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
	if e.Kind == jsonMember && old != "" { // what else the user set there stays
		return e.renew(doc, value)
	}
	e.Names = names
	out, err := jsonedit.SetMember(doc, value, e.Path...)
	return []byte(out), err
}

// renew puts into an entry of ours how this program is started, and the flag for context tools where that is wanted.
func (e *Edit) renew(doc, value string) (_ []byte, err error) {
	for _, name := range []string{"command", "args"} {
		own, path, was := gjson.Get(value, name), slices.Concat(e.Path, []string{name}), ""
		if was, _, err = jsonedit.Member(doc, path...); err != nil {
			return nil, err
		}
		now, flag := own.Raw, strings.Contains(own.Raw, contextFlag)
		if all := words(was); own.IsArray() && len(all) > 0 { // the arguments stay, with what others put there
			if now = was; name == "command" {
				now = was[:all[0][0]] + own.Get("0").Raw + was[all[0][1]:]
			}
			if flag {
				now = withContextTools(now)
			}
		} else if name == "args" && !flag {
			continue
		}
		if own.Exists() && !sameJSON(was, now) {
			if doc, err = jsonedit.SetMember(doc, now, path...); err != nil {
				return nil, err
			}
		}
	}
	return []byte(doc), nil
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

// ownPolicy matches the line of a policy in this program's settings.
var ownPolicy = lazyregexp.New(`(?m)^["']?policy["']?[ \t]*:`)

// appendTo puts the value at the end of a document behind a gap.
func (e *Edit) appendTo(doc, gap string) []byte {
	switch {
	case doc == "":
		gap = ""
	case !strings.HasSuffix(doc, "\n"):
		gap += "\n"
	}
	return []byte(doc + gap + e.Value)
}

const (
	statusSuffix = " statusline"
	chain        = " --after "
)

// refreshSeconds is how often Claude Code asks for the status line besides: it does not ask by
// itself after a compaction.
const refreshSeconds = 10

// chained is the command of a status line without ours before it; ours reports whether that was there.
func chained(value string) (command string, ours bool) {
	command = gjson.Get(value, "command").Str
	head, rest, _ := strings.Cut(command, chain)
	if !strings.HasSuffix(head, statusSuffix) || !strings.Contains(head, "palimpsest") {
		return command, false
	}
	if quoted, ok := strings.CutPrefix(rest, "'"); ok && strings.HasSuffix(quoted, "'") {
		rest = strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), `'\''`, "'")
	}
	return rest, true
}

// status is our status line, which runs the one that was there before.
func (e *Edit) status(old string) (string, error) {
	command := e.Value + statusSuffix
	if old != "" && (!rawjson.Valid(old) || gjson.Get(old, "type").Str != "command") {
		return "", fmt.Errorf("%w: its status line is of another form: set the command %q by hand, which takes the one before as --after", ErrOthers, command)
	}
	before, ours := chained(old)
	if before != "" {
		command += chain + "'" + strings.ReplaceAll(before, "'", `'\''`) + "'"
	}
	if !ours && old != "" {
		e.Old, e.What = old, "a status line, which runs yours first"
	}
	value, err := jsonedit.SetMember(cmp.Or(old, `{"type":"command"}`), rawjson.Quote(command), "command") // its padding stays
	if err == nil && !gjson.Get(value, "refreshInterval").Exists() {
		value, err = jsonedit.SetMember(value, strconv.Itoa(refreshSeconds), "refreshInterval")
	}
	return value, err
}

// withoutStatus takes ours out of a status line: what is left is the one that it runs first, as it is now; "" for none.
func (e *Edit) withoutStatus(now string, force bool) (left string, err error) {
	before, ours := chained(now)
	switch {
	case !ours && !strings.Contains(now, "palimpsest"): // another one took its place
		return now, nil
	case !ours && !force:
		return "", errChanged("the status line")
	case !ours:
		return e.Old, nil
	case before == "":
		return "", nil
	}
	left, err = jsonedit.SetMember(now, rawjson.Quote(before), "command")
	if err == nil && !gjson.Get(e.Old, "refreshInterval").Exists() && gjson.Get(now, "refreshInterval").Int() == refreshSeconds {
		left, err = jsonedit.RemoveMember(left, 0, "refreshInterval")
	}
	if sameJSON(left, e.Old) {
		left = e.Old
	}
	return left, err
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
	left := ""
	switch {
	case err != nil || now == "":
		return text, err
	case e.Kind == statusLine:
		left, err = e.withoutStatus(now, force)
	case !holds(now, e.Value) && !force:
		err = errChanged(strings.Join(e.Path, "."))
	}
	switch {
	case err != nil || left == now:
		return text, err
	case left != "":
		doc, err = jsonedit.SetMember(doc, left, e.Path...)
	default:
		doc, err = jsonedit.RemoveMember(doc, e.Names, e.Path...)
	}
	return []byte(doc), err
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
