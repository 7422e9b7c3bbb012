package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// timeoutSeconds is how long an agent waits for an answer. Reading a large session takes about
// one second.
const timeoutSeconds = 30

// Add returns an agent's settings with its hooks. Each calls the shell command with the names
// of agent and event. It replaces our earlier hooks and keeps all other bytes. Settings may
// be nil. Errors wrap ErrInput.
func (a *Agent) Add(settings []byte, command string) ([]byte, error) {
	out, err := a.Remove(settings)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		out = []byte("{}")
	}
	for _, e := range a.Events {
		matcher := ""
		if e.Matcher != "" {
			matcher = `"matcher":` + rawjson.Quote(e.Matcher) + ","
		}
		group := fmt.Sprintf(`{%s"hooks":[{"type":"command","command":%s,"timeout":%d}]}`, matcher, rawjson.Quote(command+a.commandSuffix(e.Name)+a.flags(settings, e.Name)), timeoutSeconds*a.TicksPerSecond)
		if out, err = sjson.SetRawBytes(out, "hooks."+e.Name+".-1", []byte(group)); err != nil {
			return nil, fmt.Errorf("%w: %s of %s: %w", ErrInput, a.Settings, a.Name, err)
		}
	}
	if len(settings) == 0 {
		var lines bytes.Buffer
		if err := json.Indent(&lines, out, "", "  "); err != nil {
			return nil, err
		}
		out = append(lines.Bytes(), '\n')
	}
	return out, nil
}

// commandSuffix ends the commands of our hooks, before flags of the user's; Remove recognizes them by it.
func (a *Agent) commandSuffix(event string) string { return " hook " + a.Name + " " + event }

// ownFlags are the flags of a command of ours, with the space before them; ok is false if it is none.
func (a *Agent) ownFlags(command, event string) (flags string, ok bool) {
	_, flags, ok = strings.Cut(command, a.commandSuffix(event))
	return flags, ok && (flags == "" || strings.HasPrefix(flags, " --"))
}

// flags are those that the user gave to the command of ours that is there.
func (a *Agent) flags(settings []byte, event string) string {
	for _, c := range gjson.GetBytes(settings, "hooks."+event+".#.hooks|@flatten.#.command").Array() {
		if flags, ok := a.ownFlags(c.Str, event); ok {
			return flags
		}
	}
	return ""
}

// Remove returns an agent's settings without the hooks that Add added. Errors wrap
// ErrInput.
func (a *Agent) Remove(settings []byte) ([]byte, error) {
	if len(strings.TrimSpace(string(settings))) == 0 {
		return settings, nil
	}
	if !rawjson.Valid(settings) || !gjson.ParseBytes(settings).IsObject() {
		return nil, fmt.Errorf("%w: %s of %s is not a JSON object, or has comments: change it by hand", ErrInput, a.Settings, a.Name)
	}
	out := string(settings)
	for _, e := range a.Events {
		path := "hooks." + e.Name
		groups := gjson.Get(out, path).Array()
		for n, group := range slices.Backward(groups) {
			kept, ours := group.Get("hooks").Array(), 0
			for m, h := range slices.Backward(kept) {
				if _, ok := a.ownFlags(h.Get("command").String(), e.Name); ok {
					ours++
					out = jsonedit.Delete(out, fmt.Sprintf("%s.%d.hooks.%d", path, n, m))
				}
			}
			if ours > 0 && ours == len(kept) {
				out = jsonedit.Delete(out, fmt.Sprintf("%s.%d", path, n))
			}
		}
		if left := gjson.Get(out, path); left.IsArray() && len(groups) > 0 && len(left.Array()) == 0 {
			out = jsonedit.Delete(out, path)
		}
	}
	if left := gjson.Get(out, "hooks"); left.IsObject() && len(left.Map()) == 0 && gjson.GetBytes(settings, "hooks").Raw != left.Raw {
		out = jsonedit.Delete(out, "hooks")
	}
	return []byte(out), nil
}
