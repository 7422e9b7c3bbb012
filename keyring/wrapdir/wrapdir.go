// Package wrapdir keeps wrapped data keys as files, which only their owner may
// read:
//
//	<tenant>/<version>.<revision>.json    a data key, wrapped by a master key
//	<tenant>/erased.json                  the tenant's keys were erased
//
// Names of tenants are escaped. A revision is written once, whole, under a name
// that must be free, and then the ones before it are deleted; so several
// processes may change keys without a lock, and one of them wins. Keep the
// directory in the backups of what is sealed, but the master key elsewhere. Keys
// that were erased live on in backups that are older.
package wrapdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/crash"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/keyring"
)

const (
	suffix     = ".json"
	erasedFile = "erased" + suffix
	format     = 1
)

// Keys is keyring.Keys in a directory. It is safe for concurrent use.
type Keys struct{ files durable.Dir }

// document is a wrapped key as it stands in its file, or says whose keys were
// erased.
type document struct {
	Format   int       `json:"format"`
	Tenant   string    `json:"tenant"`
	Version  int       `json:"version,omitempty"`
	Revision int       `json:"revision,omitempty"`
	Master   string    `json:"master,omitempty"`
	Sealed   []byte    `json:"sealed,omitempty"`
	Used     uint64    `json:"messages,omitempty"`
	Created  time.Time `json:"created_at,omitzero"`
}

// Open opens the directory, which it makes with all above it.
func Open(path string) (*Keys, error) {
	files, err := durable.Open(path)
	if err != nil {
		return nil, fmt.Errorf("wrapdir.Open(%s): %w", path, err)
	}
	return &Keys{files}, nil
}

// Close gives the directory back to the system. Nothing is lost without it.
func (k *Keys) Close() error { return k.files.Root.Close() }

func folderOf(tenant string) string { return durable.Escape(tenant, false) }

func fileOf(version, revision int) string {
	return strconv.Itoa(version) + "." + strconv.Itoa(revision) + suffix
}

// revisions finds the newest revision of each version, and all files of keys.
func (k *Keys) revisions(folder string) (newest map[int]int, all []string, err error) {
	entries, err := k.files.List(folder)
	if err != nil {
		return nil, nil, err
	}
	newest = map[int]int{}
	for _, e := range entries {
		if e.Name() == erasedFile {
			return nil, nil, keyring.ErrErased
		}
		if version, revision, ok := parseName(e.Name()); ok {
			newest[version] = max(newest[version], revision)
			all = append(all, e.Name())
		}
	}
	return newest, all, nil
}

func parseName(name string) (version, revision int, ok bool) {
	stem, isKey := strings.CutSuffix(name, suffix)
	left, right, hasDot := strings.Cut(stem, ".")
	version, err := strconv.Atoi(left)
	revision, err2 := strconv.Atoi(right)
	ok = isKey && hasDot && err == nil && err2 == nil && version > 0 && revision > 0
	return version, revision, ok && name == fileOf(version, revision)
}

// Load implements keyring.Keys.
func (k *Keys) Load(ctx context.Context, tenant string) ([]keyring.Wrapped, error) {
	folder := folderOf(tenant)
	var before map[int]int
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		newest, _, err := k.revisions(folder)
		if err != nil {
			return nil, err
		}
		keys, err := k.read(folder, tenant, newest)
		if err == nil || maps.Equal(newest, before) {
			return keys, err
		}
		before = newest // perhaps replaced meanwhile
	}
}

func (k *Keys) read(folder, tenant string, newest map[int]int) ([]keyring.Wrapped, error) {
	var keys []keyring.Wrapped
	for i, version := range slices.Sorted(maps.Keys(newest)) {
		name := path.Join(folder, fileOf(version, newest[version]))
		data, err := k.files.Root.ReadFile(name)
		if err != nil {
			return nil, err
		}
		w, err := decode(data)
		switch {
		case err != nil:
		case version != i+1:
			err = fmt.Errorf("the key of version %d is missing", i+1)
		case w.Tenant != tenant || w.Version != version || w.Revision != newest[version]:
			err = fmt.Errorf("it holds version %d, revision %d of tenant %q", w.Version, w.Revision, w.Tenant)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; restore it from a backup", name, err)
		}
		keys = append(keys, w)
	}
	return keys, nil
}

// Put implements keyring.Keys.
func (k *Keys) Put(ctx context.Context, w keyring.Wrapped) error {
	err := k.put(ctx, w)
	if err != nil && !errors.Is(err, keyring.ErrConflict) {
		if _, _, again := k.revisions(folderOf(w.Tenant)); errors.Is(again, keyring.ErrErased) {
			return again // Erase takes files away while they are written
		}
	}
	return err
}

func (k *Keys) put(ctx context.Context, w keyring.Wrapped) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := folderOf(w.Tenant)
	newest, _, err := k.revisions(folder)
	if err != nil {
		return err
	}
	if newest[w.Version] != w.Revision-1 || w.Revision == 1 && w.Version != len(newest)+1 || w.Version < 1 {
		return keyring.ErrConflict
	}
	data, err := encode(w)
	if err != nil {
		return err
	}
	name := path.Join(folder, fileOf(w.Version, w.Revision))
	if err := k.files.Create(name, data); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return keyring.ErrConflict
		}
		return err
	}
	crash.Point("keys: written")
	return k.settle(folder, w)
}

// keep is for how many revisions the name of an old one stays taken.
const keep = 16

// settle looks again after a revision was written, for the tenant may have been
// erased meanwhile. Then the file goes. It also goes when others are so far ahead
// that its name may have been free for the second time. Otherwise it stands, and
// what older revisions hold goes: a master key that is out of use shall open
// nothing. Their names stay for a while, so that no slow writer takes one.
func (k *Keys) settle(folder string, w keyring.Wrapped) error {
	newest, all, err := k.revisions(folder)
	if err == nil && newest[w.Version] >= w.Revision+keep {
		err = keyring.ErrConflict
	}
	if err != nil {
		return errors.Join(err, k.remove(path.Join(folder, fileOf(w.Version, w.Revision))))
	}
	for _, name := range all {
		version, revision, _ := parseName(name)
		if version != w.Version || revision >= w.Revision {
			continue
		}
		name = path.Join(folder, name)
		if revision <= w.Revision-keep {
			err = k.remove(name)
		} else if info, statErr := k.files.Root.Stat(name); statErr == nil && info.Size() > 0 {
			err = k.files.Replace(name, nil)
		}
		if err != nil {
			return err
		}
		crash.Point("keys: old emptied")
	}
	return nil
}

func (k *Keys) remove(name string) error {
	if err := k.files.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Erase implements keyring.Keys. It says first that the keys are erased, so that
// a crash in between leaves none that could be used.
func (k *Keys) Erase(ctx context.Context, tenant string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := folderOf(tenant)
	data, err := json.Marshal(document{Format: format, Tenant: tenant})
	if err != nil {
		return err
	}
	if err := k.files.Create(path.Join(folder, erasedFile), append(data, '\n')); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := k.files.List(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != erasedFile {
			if err := k.remove(path.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	return k.files.SyncDir(folder)
}

// Tenants implements keyring.Keys.
func (k *Keys) Tenants(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		folders, err := k.files.List(".")
		if err != nil {
			yield("", err)
			return
		}
		var tenants []string
		for _, folder := range folders {
			tenant, err := k.tenant(folder.Name())
			switch {
			case err != nil:
				if !yield("", err) {
					return
				}
			case tenant != nil:
				tenants = append(tenants, *tenant)
			}
		}
		slices.Sort(tenants)
		for _, tenant := range tenants {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(tenant, nil) {
				return
			}
		}
	}
}

// tenant reads whose folder it is; nil when it holds no keys.
func (k *Keys) tenant(folder string) (*string, error) {
	var before []string
	for {
		_, all, err := k.revisions(folder)
		if errors.Is(err, keyring.ErrErased) || err == nil && len(all) == 0 {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		tenant, err := k.firstTenant(folder, all)
		if err == nil || slices.Equal(all, before) {
			return tenant, err
		}
		before = all // perhaps replaced meanwhile
	}
}

// firstTenant reads the first of the files that still holds something.
func (k *Keys) firstTenant(folder string, files []string) (*string, error) {
	for _, name := range files {
		data, err := k.files.Root.ReadFile(path.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
			continue
		}
		var w keyring.Wrapped
		if err == nil {
			w, err = decode(data)
		}
		if err == nil && folderOf(w.Tenant) != folder {
			err = fmt.Errorf("it holds a key of tenant %q", w.Tenant)
		}
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w; restore it from a backup", folder, name, err)
		}
		return &w.Tenant, nil
	}
	return nil, fmt.Errorf("%s: it holds empty files only; restore them from a backup", folder)
}

func encode(w keyring.Wrapped) ([]byte, error) {
	data, err := json.MarshalIndent(document{
		Format: format, Tenant: w.Tenant, Version: w.Version, Revision: w.Revision,
		Master: w.Master, Sealed: w.Sealed, Used: w.Used, Created: w.Created,
	}, "", "  ")
	return append(data, '\n'), err
}

func decode(data []byte) (keyring.Wrapped, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return keyring.Wrapped{}, err
	}
	if d.Format != format {
		return keyring.Wrapped{}, fmt.Errorf("format %d of a data key; this program reads format %d", d.Format, format)
	}
	return keyring.Wrapped{
		Tenant: d.Tenant, Version: d.Version, Revision: d.Revision,
		Master: d.Master, Sealed: d.Sealed, Used: d.Used, Created: d.Created,
	}, nil
}
