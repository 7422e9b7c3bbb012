package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// Record is what was installed, as a file in the data directory keeps it.
type Record struct {
	Done []Change `json:"done"`
	// Made are the folders that were made for the record.
	Made []string `json:"made,omitempty"`

	path string
}

// OpenRecord reads the record of a data directory, to be looked at; it is empty if nothing was installed.
func OpenRecord(data string) (*Record, error) {
	r := &Record{path: filepath.Join(data, "install", "installed.json")}
	return r, loadJSON(r.path, r)
}

// UpdateRecord calls f with the record of a data directory, while no other process changes that.
func UpdateRecord(ctx context.Context, data string, f func(*Record) error) error {
	var r *Record
	err := alone(ctx, data, func(made []string) (err error) {
		if r, err = OpenRecord(data); err != nil {
			return err
		}
		r.Made = append(made, r.Made...)
		return f(r)
	})
	if r != nil && len(r.Done) == 0 {
		removeFolders(r.Made)
	}
	return err
}

// Agents are the agents that something was installed in.
func (r *Record) Agents() (names []string) {
	for _, d := range r.Done {
		if !slices.Contains(names, d.Agent) {
			names = append(names, d.Agent)
		}
	}
	return names
}

// Knows reports whether something was installed in an agent's folder.
func (r *Record) Knows(a Agent) bool {
	return slices.ContainsFunc(r.Done, func(d Change) bool {
		return d.Agent == a.Name && (d.Root == a.Folder || d.Path == "" && d.Root == a.cache())
	})
}

// earlier is where in the record the change of the same file, or the series of commands for the same folder, is; -1 if
// it is not there.
func (r *Record) earlier(c Change) int {
	return slices.IndexFunc(r.Done, func(d Change) bool {
		return d.Path == c.Path && (c.Path != "" || d.Agent == c.Agent && d.Root == c.Root)
	})
}

// put puts a change in the place of an earlier one, or of none at -1 at the end.
func (r *Record) put(at int, c Change) {
	if at < 0 {
		r.Done = append(r.Done, c)
		return
	}
	r.Done[at] = c
}

// Pending are the changes without commands that have run already: those of a plugin whose files stay as
// they are.
func (r *Record) Pending(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
		i := r.earlier(c)
		return c.Path == "" && i >= 0 && len(r.Done[i].Undo) == len(c.Undo) &&
			!slices.ContainsFunc(changes, func(o Change) bool { return o.Agent == c.Agent && o.OfPlugin() })
	})
}

// save writes the record, or removes its folder when nothing is left.
func (r *Record) save() error {
	if len(r.Done) == 0 {
		err := os.RemoveAll(filepath.Dir(r.path))
		removeFolders(r.Made)
		return err
	}
	r.Made = append(r.Made, missing(r.path)...)
	return saveJSON(r.path, r, false)
}

// backup is where the copy of a file of this content is.
func (r *Record) backup(hash string) string {
	return filepath.Join(filepath.Dir(r.path), "backups", hash)
}

// Apply makes changes. Where one fails, the others of its agent are left out. The record knows of
// each before it is made, so that Remove can take back half an installation.
func (r *Record) Apply(ctx context.Context, changes []Change) (err error) {
	failed := map[string]bool{}
	for _, c := range changes {
		if failed[c.Agent] {
			continue
		}
		var one error
		if c.Path == "" {
			one = r.applyCommands(ctx, c)
		} else {
			one = r.applyFile(c)
		}
		if one != nil {
			failed[c.Agent] = true
			err = errors.Join(err, fmt.Errorf("%s: %w", c.Agent, one))
		}
	}
	return err
}

func (r *Record) applyFile(c Change) error {
	real, old, err := read(c.Path, c.Root)
	if err != nil {
		return err
	}
	after, err := c.apply(old)
	if err != nil {
		return err
	}
	var before Change
	clean, at := old, r.earlier(c) // what it would be without ours
	if at >= 0 {
		before = r.Done[at]
		if c.isOurs() && old != nil && digest(old) != before.Hash {
			return fmt.Errorf("%s: %w: it was changed since it was installed; move it away first", c.Path, ErrOthers)
		}
		c.addEarlier(before)
		if clean, err = r.before(before, old, true); err != nil {
			return err
		}
	}
	if c.Existed, c.Hash = clean != nil, digest(after); c.Existed {
		c.Backup = digest(clean)
		r.Made = append(r.Made, missing(r.path)...)
		if err := write(r.backup(c.Backup), clean); err != nil {
			return err
		}
	}
	c.Made = append(c.Made, missing(real)...)
	r.put(at, c)
	if err := errors.Join(r.save(), r.dropBackup(before)); err != nil {
		return err
	}
	return write(real, after)
}

// addEarlier puts in what the record knows of an earlier change to the same file.
func (c *Change) addEarlier(before Change) {
	for _, o := range before.Edits {
		i := slices.IndexFunc(c.Edits, func(e Edit) bool { return o.Kind == e.Kind && slices.Equal(o.Path, e.Path) })
		if i < 0 {
			c.Edits = append(c.Edits, o)
		} else if c.Edits[i].Old == "" {
			c.Edits[i].Old, c.Edits[i].Names = o.Old, o.Names
		}
	}
	c.Made = before.Made
}

// dropBackup removes the backup of a change that the record no longer has, unless it is another one's too.
func (r *Record) dropBackup(of Change) error {
	if of.Backup == "" || slices.ContainsFunc(r.Done, func(d Change) bool { return d.Backup == of.Backup }) {
		return nil
	}
	return os.Remove(r.backup(of.Backup))
}

// applyCommands runs commands, and notes those that take back what was run, now or earlier. The last one takes
// back the first.
func (r *Record) applyCommands(ctx context.Context, c Change) (err error) {
	ran := 0
	for ; ran < len(c.Run) && err == nil; ran++ {
		err = run(ctx, c.Env, c.Run[ran])
	}
	if err != nil {
		ran--
		err = fmt.Errorf("%w; the plugin is in %s; `claude --plugin-dir` accepts that folder too", err, c.Run[0][len(c.Run[0])-1])
	}
	c.Undo = c.Undo[len(c.Undo)-ran:]
	at := r.earlier(c)
	if at >= 0 && len(r.Done[at].Undo) > ran {
		c.Undo = r.Done[at].Undo
	}
	if len(c.Undo) > 0 {
		r.put(at, c)
	}
	return errors.Join(err, r.save())
}

// Remove takes back what was installed in an agent, the last first. What others changed since is
// left, named by an error that wraps ErrOthers, and stays in the record, unless force is set.
func (r *Record) Remove(ctx context.Context, agent string, force bool) (err error) {
	for i := len(r.Done) - 1; i >= 0; i-- {
		d := r.Done[i]
		if d.Agent != agent {
			continue
		}
		failed := r.undo(ctx, d, force)
		if failed == nil {
			r.Done = slices.Delete(r.Done, i, i+1)
			failed = errors.Join(r.dropBackup(d), r.save())
		}
		err = errors.Join(err, failed)
	}
	return err
}

// undo takes one change back.
func (r *Record) undo(ctx context.Context, d Change, force bool) error {
	if d.Path == "" {
		if err := undoCommands(ctx, d); err != nil && !force {
			return fmt.Errorf("%w; --force forgets it", err)
		}
		return os.RemoveAll(d.Root)
	}
	real, now, err := read(d.Path, d.Root)
	if err != nil {
		return err
	}
	back, err := r.before(d, now, force)
	switch {
	case back == nil && now != nil:
		err = errors.Join(err, os.Remove(real))
	case string(back) != string(now):
		err = errors.Join(err, write(real, back))
	}
	if err == nil {
		if d.OfPlugin() { // what Python made of it
			err = os.RemoveAll(filepath.Join(filepath.Dir(real), "__pycache__"))
		}
		removeFolders(d.Made)
	}
	return err
}

// before is a file without what was installed in it, nil for none. Errors are about what is left in it.
func (r *Record) before(d Change, now []byte, force bool) (back []byte, err error) {
	switch same := digest(now) == d.Hash; {
	case now == nil, same && !d.Existed:
		return nil, nil
	case d.Backup != "" && (same || force && d.isOurs()):
		if back, err = os.ReadFile(r.backup(d.Backup)); err != nil {
			return now, err
		}
		return append([]byte{}, back...), nil
	}
	back = now
	for i := len(d.Edits) - 1; i >= 0; i-- {
		text, failed := d.Edits[i].remove(back, force)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", d.Path, failed))
			continue
		}
		back = text
	}
	if text := strings.TrimSpace(string(back)); !d.Existed && (text == "" || text == "{}") {
		back = nil
	}
	return back, err
}

// undoCommands runs commands. The user may have removed what the first ones remove: then the last
// is enough.
func undoCommands(ctx context.Context, d Change) error {
	var all, last error
	for _, command := range d.Undo {
		last = run(ctx, d.Env, command)
		all = errors.Join(all, last)
	}
	if last == nil {
		return nil
	}
	return all
}

// run runs a command of an agent's program, which keeps its own settings, with the variables of its folder.
func run(ctx context.Context, env, command []string) error {
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, claudeFolder+"=") }), env...)
	out, err := run.CombinedOutput()
	if err != nil {
		said := clip.Short(strings.TrimSpace(string(out)), 500)
		return fmt.Errorf("%s: %w%s", strings.Join(command, " "), err, strings.TrimSuffix(": "+said, ": "))
	}
	return nil
}
