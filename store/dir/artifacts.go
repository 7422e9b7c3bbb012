package dir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

// backend keeps artifacts as files. Content is written before its metadata, and
// an artifact without metadata is not there.
type backend struct{ durable.Dir }

// Put implements artifact.Backend.
func (b backend) Put(ctx context.Context, m artifact.Metadata, content []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, ok := artifactPath(m.TenantID, m.ID)
	if !ok {
		return fmt.Errorf("%q is no artifact id", m.ID)
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := b.Replace(name, content); err != nil {
		return err
	}
	return b.Replace(name+jsonSuffix, append(data, '\n'))
}

// Get implements artifact.Backend.
func (b backend) Get(ctx context.Context, tenant, id string) (artifact.Metadata, []byte, error) {
	if err := ctx.Err(); err != nil {
		return artifact.Metadata{}, nil, err
	}
	name, ok := artifactPath(tenant, id)
	if !ok {
		return artifact.Metadata{}, nil, artifact.ErrNotFound
	}
	m, err := b.metadata(name)
	if err != nil {
		return artifact.Metadata{}, nil, err
	}
	content, err := b.Root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return artifact.Metadata{}, nil, fmt.Errorf("%s is missing beside its metadata: %w", name, artifact.ErrCorrupt)
	}
	return m, content, err
}

func (b backend) metadata(name string) (artifact.Metadata, error) {
	data, err := b.Root.ReadFile(name + jsonSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return artifact.Metadata{}, artifact.ErrNotFound
	}
	if err != nil {
		return artifact.Metadata{}, err
	}
	var m artifact.Metadata
	if err := json.Unmarshal(data, &m); err != nil {
		return artifact.Metadata{}, fmt.Errorf("%s%s: %w: %w", name, jsonSuffix, artifact.ErrCorrupt, err)
	}
	return m, nil
}

// List implements artifact.Backend.
func (b backend) List(ctx context.Context, f artifact.Filter) iter.Seq2[artifact.Metadata, error] {
	return func(yield func(artifact.Metadata, error) bool) {
		root := artifactRoot(f.TenantID)
		shards, err := b.Dir.List(root)
		if err != nil {
			yield(artifact.Metadata{}, err)
			return
		}
		for _, folder := range shards {
			if !folder.IsDir() || !mayHold(folder.Name(), f.Prefix) {
				continue
			}
			names, err := b.Dir.List(path.Join(root, folder.Name()))
			if err != nil && !yield(artifact.Metadata{}, err) {
				return
			}
			for _, entry := range names {
				id, ok := strings.CutSuffix(entry.Name(), jsonSuffix)
				if !ok || !artifact.IsID(id) || !strings.HasPrefix(id, f.Prefix) {
					continue
				}
				if err := ctx.Err(); err != nil {
					yield(artifact.Metadata{}, err)
					return
				}
				m, err := b.metadata(path.Join(root, folder.Name(), id))
				switch {
				case errors.Is(err, artifact.ErrNotFound):
					continue // deleted meanwhile
				case err != nil:
					m = artifact.Metadata{ID: id}
				case f.ThreadID != "" && m.ThreadID != f.ThreadID:
					continue
				}
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// mayHold reports whether a folder can have ids with the prefix.
func mayHold(folder, prefix string) bool {
	start := "art_" + folder
	return strings.HasPrefix(start, prefix) || strings.HasPrefix(prefix, start)
}

// Delete implements artifact.Backend. Metadata goes first, so that a crash
// leaves no artifact without content.
func (b backend) Delete(ctx context.Context, tenant, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, ok := artifactPath(tenant, id)
	if !ok {
		return nil
	}
	for _, file := range []string{name + jsonSuffix, name} {
		if err := b.Root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := b.Root.Stat(path.Dir(name)); err != nil {
		return nil // there was never anything in it
	}
	return b.SyncDir(path.Dir(name))
}
