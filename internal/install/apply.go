package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// Record is what was installed, as a file in the data directory keeps it. It is for one process
// at a time.
type Record struct {
	Done []Done `json:"done"`
	// Made are the folders of ours that were made for the record.
	Made []string `json:"made,omitempty"`

	folder string
}

// Done is a change that was made.
type Done struct {
	Change
	// Backup names a copy of the file from before, and Hash is that of what was written. With them
	// an untouched file is put back as it was, byte for byte.
	Backup string   `json:"backup,omitempty"`
	Hash   string   `json:"hash,omitempty"`
	Made   []string `json:"made,omitempty"` // folders
}

const recordName = "installed.json"

// OpenRecord reads the record of a data directory; it is empty if nothing was installed.
func OpenRecord(data string) (*Record, error) {
	r := &Record{folder: filepath.Join(data, "install")}
	text, err := os.ReadFile(filepath.Join(r.folder, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(r.folder, recordName), err)
	}
	return r, nil
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

// Knows reports whether something was installed in an agent's folder, or its plugin elsewhere.
func (r *Record) Knows(a Agent) bool {
	return slices.ContainsFunc(r.Done, func(d Done) bool { return d.Agent == a.Name && (d.Root == a.Folder || d.Path == "") })
}

// Pending are the changes without the commands that were run when the files of the plugin, of which
// none changes, were written.
func (r *Record) Pending(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
		return c.Path == "" && !slices.ContainsFunc(changes, func(o Change) bool { return o.Agent == c.Agent && o.OfPlugin() }) &&
			slices.ContainsFunc(r.Done, func(d Done) bool { return d.Agent == c.Agent && len(d.Undo) == len(c.Undo) })
	})
}

// save writes the record, or removes it with its folders when nothing is left.
func (r *Record) save() error {
	path := filepath.Join(r.folder, recordName)
	if len(r.Done) == 0 {
		err := os.Remove(path)
		removeFolders(append(slices.Clone(r.Made), r.folder, filepath.Join(r.folder, "backups")))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	made, err := write(path, append(text, '\n'), newFile)
	r.Made = append(r.Made, made...)
	if len(made) > 0 && err == nil {
		return r.save() // with the folders
	}
	return err
}

// Apply makes a change. The record knows of it before it is made, so that Remove can take back
// half an installation.
func (r *Record) Apply(ctx context.Context, c Change) error {
	if c.Path == "" {
		return r.applyCommands(ctx, c)
	}
	real, err := place(c.Path, c.Root)
	if err != nil {
		return err
	}
	old, mode, err := current(real)
	if err != nil {
		return err
	}
	if string(old) != string(c.Before) { // somebody wrote to it since the plan
		if c.After, err = applyAll(c.Path, c.Edits, old); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	d := Done{Change: c, Hash: digest(c.After)}
	if d.Existed = old != nil; c.isOurs() {
		d.Edits = []Edit{{Kind: wholeFile}} // its hash is enough
	}
	if i := slices.IndexFunc(r.Done, func(d Done) bool { return d.Path == c.Path }); i >= 0 {
		if c.isOurs() && old != nil && digest(old) != r.Done[i].Hash {
			return fmt.Errorf("%s: %w: it was changed since it was installed; move it away first", c.Path, ErrOthers)
		}
		d = r.Done[i].again(d, old)
		r.Done = slices.Delete(r.Done, i, i+1)
	} else if d.Existed {
		if d.Backup, err = r.backup(old); err != nil {
			return err
		}
	}
	r.Done = append(r.Done, d)
	if err := r.save(); err != nil {
		return err
	}
	made, err := write(real, c.After, mode)
	if len(made) > 0 {
		r.Done[len(r.Done)-1].Made = append(d.Made, made...)
		err = errors.Join(err, r.save())
	}
	return err
}

// applyCommands runs commands, and notes those that take back what was run. The last one takes
// back the first.
func (r *Record) applyCommands(ctx context.Context, c Change) (err error) {
	r.Done = slices.DeleteFunc(r.Done, func(d Done) bool { return d.Agent == c.Agent && d.Path == "" })
	ran := 0
	for ; ran < len(c.Run) && err == nil; ran++ {
		err = run(ctx, c.Run[ran])
	}
	if err != nil {
		ran--
	}
	if ran > 0 {
		r.Done = append(r.Done, Done{Change: Change{Agent: c.Agent, Root: c.Root, Undo: c.Undo[len(c.Undo)-ran:]}})
	}
	return errors.Join(err, r.save())
}

// again is a change to a file that the record knows. Where the file was changed by others since,
// its backup is no longer what to go back to.
func (d Done) again(now Done, old []byte) Done {
	kept := slices.DeleteFunc(slices.Clone(d.Edits), func(o Edit) bool {
		i := slices.IndexFunc(now.Edits, func(e Edit) bool { return o.Kind == e.Kind && slices.Equal(o.Path, e.Path) })
		if i >= 0 && now.Edits[i].Old == "" {
			now.Edits[i].Old, now.Edits[i].Names = o.Old, o.Names
		}
		return i >= 0
	})
	now.Edits = append(kept, now.Edits...)
	now.Made, now.Backup, now.Existed = d.Made, d.Backup, d.Existed
	if digest(old) != d.Hash {
		now.Existed = d.Existed || old != nil && !d.isOurs()
		now.Backup = ""
	}
	return now
}

// backup keeps a copy of a file, and returns its name.
func (r *Record) backup(text []byte) (string, error) {
	for n := 1; ; n++ {
		name := strconv.Itoa(n)
		path := filepath.Join(r.folder, "backups", name)
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		made, err := write(path, text, newFile)
		r.Made = append(r.Made, made...)
		return name, err
	}
}

// current reads a file and its mode; nil, and the mode of a new one, if it is not there.
func current(path string) ([]byte, fs.FileMode, error) {
	text, err := Read(path, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, newFile, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	return text, info.Mode().Perm(), nil
}

// Remove takes back what was installed in an agent, or only those parts of it, the last first,
// and says what it did. What others changed since is left, named by an error that wraps
// ErrOthers, and stays in the record, unless force is set.
func (r *Record) Remove(ctx context.Context, agent string, force bool, parts ...Part) (done []string, err error) {
	files := 0
	defer func() {
		if files > 0 {
			done = append(done, "removed "+clip.Count(files, "file")+" of the plugin")
		}
	}()
	for i := len(r.Done) - 1; i >= 0; i-- {
		d := r.Done[i]
		going, staying := d.split(parts)
		if d.Agent != agent || len(going.Edits) == 0 && going.Undo == nil {
			continue
		}
		said, failed := r.undo(ctx, going, force)
		switch {
		case failed == nil && d.OfPlugin():
			files++
		case said != "":
			done = append(done, said)
		}
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		if r.Done = slices.Delete(r.Done, i, i+1); len(staying.Edits) > 0 {
			r.Done = slices.Insert(r.Done, i, staying)
		}
		if failed := r.save(); failed != nil {
			return done, errors.Join(err, failed)
		}
	}
	return done, err
}

// split parts what goes from what stays of the edits of a file. A file that keeps some of them
// cannot be put back as it was.
func (d Done) split(parts []Part) (going, staying Done) {
	goes := func(p Part) bool { return len(parts) == 0 || slices.Contains(parts, p) }
	if d.Path == "" {
		if !goes(Plugin) {
			d.Undo = nil
		}
		return d, Done{}
	}
	going, staying = d, d
	going.Edits, staying.Edits = nil, nil
	for _, e := range d.Edits {
		if goes(e.Kind.part()) {
			going.Edits = append(going.Edits, e)
		} else {
			staying.Edits = append(staying.Edits, e)
		}
	}
	if len(staying.Edits) > 0 {
		going.Existed, going.Hash, going.Made = true, "", nil
		staying.Hash, staying.Backup = "", ""
	}
	return going, staying
}

// undo takes one change back.
func (r *Record) undo(ctx context.Context, d Done, force bool) (said string, err error) {
	if d.Path == "" {
		if err := undoCommands(ctx, d.Undo); err != nil && !force {
			return "", fmt.Errorf("%w; --force forgets it", err)
		}
		return "ran `" + strings.Join(d.Undo[0], " ") + "`", os.RemoveAll(d.Root)
	}
	real, err := place(d.Path, d.Root)
	if err != nil {
		return "", err
	}
	now, mode, err := current(real)
	if err != nil {
		return "", err
	}
	back := now
	backup := filepath.Join(r.folder, "backups", d.Backup)
	switch {
	case now == nil:
		said = d.Path + " was removed already"
	case digest(now) == d.Hash && !d.Existed:
		back = nil
	case digest(now) == d.Hash && d.Backup != "":
		if back, err = os.ReadFile(backup); err != nil {
			return "", err
		}
	default:
		for i := len(d.Edits) - 1; i >= 0; i-- {
			var failed error
			if back, failed = d.Edits[i].remove(back, force); failed != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", d.Path, failed))
			}
		}
		if text := strings.TrimSpace(string(back)); !d.Existed && (text == "" || text == "{}") {
			back = nil
		}
	}
	switch {
	case now == nil:
	case back == nil:
		said = "removed " + d.Path
		err = errors.Join(err, os.Remove(real))
	case string(back) != string(now):
		said = "restored " + d.Path
		_, failed := write(real, back, mode)
		err = errors.Join(err, failed)
	}
	if err == nil {
		if d.OfPlugin() { // what Python made of it
			_ = os.RemoveAll(filepath.Join(filepath.Dir(real), "__pycache__"))
		}
		removeFolders(d.Made)
		if d.Backup != "" {
			err = os.Remove(backup)
		}
	}
	return said, err
}

// undoCommands runs commands. The user may have removed what the first ones remove: then the last
// is enough.
func undoCommands(ctx context.Context, commands [][]string) error {
	var all, last error
	for _, command := range commands {
		last = run(ctx, command)
		all = errors.Join(all, last)
	}
	if last == nil {
		return nil
	}
	return all
}

// run runs a command of an agent's program, which keeps its own settings.
func run(ctx context.Context, command []string) error {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, clip.Short(strings.TrimSpace(string(out)), 500))
	}
	return nil
}
