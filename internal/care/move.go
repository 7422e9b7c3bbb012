package care

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ErrFormat is wrapped by errors about the input of Import.
var ErrFormat = errors.New("not an export that this version can read")

// exportVersion is the version of the format.
const exportVersion = 1

// record is one line of an export. The first line has Export, the last End; each of the
// others has Tenant and one of the rest. The records of a thread follow each other:
// messages, plans, events.
type record struct {
	Export int `json:"palimpsest_export,omitempty"`

	Tenant  string          `json:"tenant,omitempty"`
	Thread  string          `json:"thread,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
	Plan    json.RawMessage `json:"plan,omitempty"`
	Event   *event.Event    `json:"event,omitempty"`

	Document *document          `json:"document,omitempty"`
	Artifact *artifact.Metadata `json:"artifact,omitempty"`
	Content  []byte             `json:"content,omitempty"`

	End *Counts `json:"end,omitempty"`
}

// document has its body as a string, so that it stays the same byte for byte.
type document struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Body string `json:"body"`
}

// Export writes all data of a store as JSON lines, decrypted. It leaves out cached answers
// and tenants whose keys were erased. The last line counts the others, so that Import
// notices an export that was cut off.
//
// One thread at a time is in memory. Concurrent writes may be in the export or not, but
// each thread is consistent.
func Export(ctx context.Context, db store.DB, w io.Writer, artifacts *artifact.Store) (_ Counts, err error) {
	defer wrap(&err, "Export")
	e := &exporter{db: db, contents: contentsOf(db, artifacts), w: bufio.NewWriter(w)}
	err = e.export(ctx)
	return e.counts, err
}

// tally counts records; those of a thread follow each other.
type tally struct {
	counts         Counts
	tenants        map[string]bool
	tenant, thread string // of the last record of a thread
}

func (t *tally) add(r record) (begins bool) {
	if t.tenants == nil {
		t.tenants = map[string]bool{}
	}
	t.tenants[r.Tenant] = true
	t.counts.Tenants = len(t.tenants)
	switch {
	case r.Document != nil:
		t.counts.Documents++
		return false
	case r.Artifact != nil:
		t.counts.Artifacts++
		t.counts.ArtifactBytes += int64(len(r.Content))
		return false
	case r.Message != nil:
		t.counts.Messages++
	case r.Plan != nil:
		t.counts.Plans++
	case r.Event != nil:
		t.counts.Events++
	}
	if t.counts.Threads > 0 && r.Tenant == t.tenant && r.Thread == t.thread {
		return false
	}
	t.tenant, t.thread = r.Tenant, r.Thread
	t.counts.Threads++
	return true
}

type exporter struct {
	db       store.DB
	contents *artifact.Store
	w        *bufio.Writer
	tally
}

func (e *exporter) write(r record) error {
	j := json.NewEncoder(e.w)
	j.SetEscapeHTML(false)
	return j.Encode(r)
}

// put counts and writes a record of the store.
func (e *exporter) put(r record, err error) error {
	if err != nil {
		return err
	}
	e.add(r)
	return e.write(r)
}

func (e *exporter) export(ctx context.Context) error {
	err := e.write(record{Export: exportVersion})
	if err != nil {
		return err
	}
	_, e.counts.Erased, err = walk(ctx, e.db, visitor{
		thread: func(tenant string, info store.Info) error { return e.log(ctx, tenant, info) },
		document: func(tenant string, d store.Document, err error) error {
			return e.put(record{Tenant: tenant, Document: &document{d.Kind, d.ID, string(d.Body)}}, err)
		},
		artifact: func(tenant string, m artifact.Metadata, err error) error {
			var content string
			if err == nil {
				m, content, err = e.contents.Dump(ctx, tenant, m.ID)
			}
			if errors.Is(err, artifact.ErrNotFound) {
				return nil // just deleted
			}
			return e.put(record{Tenant: tenant, Artifact: &m, Content: []byte(content)}, err)
		},
	})
	if err != nil {
		return err
	}
	if err := e.write(record{End: &e.counts}); err != nil {
		return err
	}
	return e.w.Flush()
}

// log writes a thread. It reads all of it first, and leaves out one that was deleted
// meanwhile.
func (e *exporter) log(ctx context.Context, tenant string, info store.Info) error {
	s := e.db.Tenant(tenant)
	log, rest, err := readThread(ctx, s, info)
	if replaced(ctx, s, info) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range log.Len() {
		data, err := neutral.Marshal(log, i)
		if err := e.put(record{Tenant: tenant, Thread: info.ID, Message: data}, err); err != nil {
			return err
		}
	}
	for _, r := range rest {
		r.Tenant, r.Thread = tenant, info.ID
		if err := e.put(r, nil); err != nil {
			return err
		}
	}
	return nil
}

// readThread reads the log of a thread, and records of its plans and events.
func readThread(ctx context.Context, s store.Tenant, info store.Info) (log *thread.Thread, rest []record, err error) {
	// A plan may have been committed since info was read, for messages that were added since.
	if log, err = s.Log.Load(ctx, info.ID); err != nil {
		return nil, nil, err
	}
	for v := 1; v <= info.Plans; v++ {
		p, err := s.Plans.Plan(ctx, info.ID, v)
		if err != nil {
			return nil, nil, err
		}
		data, err := json.Marshal(p)
		if err != nil {
			return nil, nil, err
		}
		rest = append(rest, record{Plan: data})
	}
	for x, err := range events(ctx, s, info) {
		if err != nil {
			return nil, nil, err
		}
		rest = append(rest, record{Event: &x})
	}
	return log, rest, nil
}

// ReadHead reads the first line of an export and returns a reader of the whole, so that the
// file is known to be one before there is a store for it. The error wraps ErrFormat, or is
// that of reading.
func ReadHead(r io.Reader) (io.Reader, error) {
	var read bytes.Buffer
	var x record
	err := json.NewDecoder(io.TeeReader(r, &read)).Decode(&x)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it ends there: %w", ErrFormat)
	} else if err != nil {
		err = fmt.Errorf("%w: %w", ErrFormat, err)
	} else {
		err = checkHead(x)
	}
	if err != nil {
		return nil, fmt.Errorf("care.ReadHead: line 1: %w", err)
	}
	return io.MultiReader(&read, r), nil
}

func checkHead(x record) error {
	switch {
	case x.Export == exportVersion:
		return nil
	case x.Export > exportVersion:
		return fmt.Errorf("its version is %d, this program reads version %d: %w", x.Export, exportVersion, ErrFormat)
	}
	return fmt.Errorf("it does not begin like an export: %w", ErrFormat)
}

// ImportOptions say what Import takes. The zero value, or nil, takes the records of all tenants.
type ImportOptions struct {
	// Tenant is the one tenant whose records may be there; nil for all.
	Tenant *string
	// AnyIDs also takes messages that have an id in the form of thread.ChainID which does not follow
	// from their content: callers brought them, or the messages were changed.
	AnyIDs bool
}

// Import reads an export into a store, with the same ids, positions and versions. It skips
// data that the store already has, so an import that was cut off can be repeated; if the
// store has other data in its place, the error wraps store.ErrConflict. A record of a tenant or
// with an id that the options do not allow is an error that wraps ErrFormat. The error names
// the line; the threads before the one that the line is about are in the store.
func Import(ctx context.Context, db store.DB, r io.Reader, artifacts *artifact.Store, o *ImportOptions) (Counts, error) {
	i := &importer{db: db, contents: contentsOf(db, artifacts), ImportOptions: *cmp.Or(o, &ImportOptions{})}
	err := i.read(ctx, r)
	if err != nil {
		err = fmt.Errorf("care.Import: line %d: %w", i.line, err)
	}
	return i.counts, err
}

type importer struct {
	ImportOptions
	db       store.DB
	contents *artifact.Store
	line     int
	tally

	// The current thread: what the store has, what was read, and what is not yet written.
	info          store.Info
	last          thread.ID // of the messages read
	frames        []*thread.Frame
	batch         []thread.Message
	newEvents     []event.Event
	plans, events int
	log           *thread.Thread // nil until a plan is read
	pairs         *thread.Pairing
}

// batchSize is about how many messages are appended at once. Messages that share a frame
// stay together.
const batchSize = 500

func (i *importer) read(ctx context.Context, r io.Reader) error {
	in := json.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	for {
		i.line++
		var x record
		if err := in.Decode(&x); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("it is cut off; the store has the threads before the last one that was begun, and an import of the whole file adds the rest: %w", ErrFormat)
			}
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		switch {
		case i.line == 1:
			if err := checkHead(x); err != nil {
				return err
			}
			continue
		case x.End != nil:
			if err := i.flush(ctx); err != nil {
				return err
			}
			i.counts.Erased = x.End.Erased
			if got := i.counts; got != *x.End {
				return fmt.Errorf("%+v was read, but %+v was written: %w", got, *x.End, ErrFormat)
			}
			return nil
		}
		if err := i.take(ctx, x); err != nil {
			return err
		}
	}
}

func (i *importer) take(ctx context.Context, x record) error {
	if err := i.allowed(x); err != nil {
		return err
	}
	s := i.db.Tenant(x.Tenant)
	switch {
	case x.Document != nil:
		i.add(x)
		return i.document(ctx, s, *x.Document)
	case x.Artifact != nil:
		i.add(x)
		x.Artifact.TenantID = x.Tenant
		return i.artifact(ctx, *x.Artifact, x.Content)
	case x.Message == nil && x.Plan == nil && x.Event == nil:
		return fmt.Errorf("the record is of no known kind: %w", ErrFormat)
	}
	if x.Tenant != i.tenant || x.Thread != i.thread {
		if err := i.flush(ctx); err != nil { // of the thread before
			return err
		}
	}
	if i.add(x) {
		info, err := s.Catalog.Thread(ctx, x.Thread)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		i.info, i.last, i.frames, i.plans, i.events, i.log = info, "", nil, 0, 0, nil
	}
	switch {
	case x.Message != nil:
		return i.message(ctx, x.Message)
	case x.Plan != nil:
		return i.plan(ctx, s, x.Plan)
	}
	return i.event(ctx, s, *x.Event)
}

// allowed checks whose a record is, by all of its members.
func (i *importer) allowed(x record) error {
	if i.Tenant != nil && x.Tenant != *i.Tenant {
		return fmt.Errorf("a record of tenant %q, and only those of %q may be there: %w", x.Tenant, *i.Tenant, ErrFormat)
	}
	inner, of := x.Tenant, x.Thread
	switch {
	case x.Event != nil:
		inner, of = cmp.Or(x.Event.TenantID, inner), cmp.Or(x.Event.ThreadID, of)
	case x.Artifact != nil:
		inner = cmp.Or(x.Artifact.TenantID, inner)
	}
	if inner != x.Tenant || of != x.Thread {
		return fmt.Errorf("a record of tenant %q, thread %q holds one of tenant %q, thread %q: %w", x.Tenant, x.Thread, inner, of, ErrFormat)
	}
	return nil
}

func (i *importer) message(ctx context.Context, data []byte) error {
	shares := false
	m, err := neutral.Unmarshal(data, func(back int) *thread.Frame {
		if back > len(i.frames) {
			return nil
		}
		shares = true
		return i.frames[len(i.frames)-back]
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	want := thread.ChainID(i.last, &m)
	if m.ID != "" && m.ID != want && chained().MatchString(string(m.ID)) && !i.AnyIDs {
		return fmt.Errorf("message %s: its content and the messages before it give the id %s: one of them was changed, or a caller brought the id (--any-ids takes it): %w", m.ID, want, ErrFormat)
	}
	i.last = cmp.Or(m.ID, want)
	if len(i.batch) >= batchSize && !shares {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	i.frames = append(i.frames, m.Frame)
	i.batch = append(i.batch, m)
	return nil
}

// flush writes the messages and events that were read.
func (i *importer) flush(ctx context.Context) error {
	s := i.db.Tenant(i.tenant)
	if len(i.batch) > 0 {
		if _, err := s.Log.Append(ctx, i.thread, len(i.frames)-len(i.batch), i.batch); err != nil {
			return err
		}
		i.batch = nil
	}
	if len(i.newEvents) > 0 {
		if err := s.Events.Record(ctx, i.newEvents...); err != nil {
			return err
		}
		i.newEvents = nil
	}
	return nil
}

func (i *importer) plan(ctx context.Context, s store.Tenant, data []byte) error {
	if err := i.flush(ctx); err != nil {
		return err
	}
	p, err := plan.Parse(data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if i.log == nil { // an export has the messages first
		if i.log, err = s.Log.Load(ctx, i.thread); err != nil {
			return err
		}
		i.pairs = thread.Pair(i.log)
	}
	if err := p.ValidatePairs(i.log, i.pairs); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	i.plans++
	if i.plans > i.info.Plans {
		_, err := s.Plans.Commit(ctx, i.thread, i.plans-1, store.Commit{Plan: p})
		return err
	}
	held, err := s.Plans.Plan(ctx, i.thread, i.plans)
	if err != nil {
		return err
	}
	return same(fmt.Sprintf("thread %s: plan %d", i.thread, i.plans), held, p)
}

func (i *importer) event(ctx context.Context, s store.Tenant, e event.Event) error {
	i.events++
	e.ThreadID = i.thread
	if i.events > i.info.Events {
		i.newEvents = append(i.newEvents, e)
		if len(i.newEvents) < batchSize {
			return nil
		}
		return i.flush(ctx)
	}
	held, err := s.Events.Events(ctx, i.thread, i.events-1, 1)
	if err == nil && len(held) == 0 {
		err = errors.New("it is missing")
	}
	if err != nil {
		return fmt.Errorf("event %d of the store: %w", i.events, err)
	}
	return same(fmt.Sprintf("thread %s: event %d", i.thread, i.events), held[0], e)
}

func (i *importer) document(ctx context.Context, s store.Tenant, d document) error {
	held, err := s.Documents.Document(ctx, d.Kind, d.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = s.Documents.Put(ctx, store.Document{Kind: d.Kind, ID: d.ID, Body: []byte(d.Body)})
		return err
	case err != nil:
		return err
	}
	return same(fmt.Sprintf("document %s/%s", d.Kind, d.ID), string(held.Body), d.Body)
}

// artifact stores an artifact under its id.
func (i *importer) artifact(ctx context.Context, m artifact.Metadata, content []byte) error {
	err := i.contents.Restore(ctx, m, string(content))
	if errors.Is(err, artifact.ErrConflict) {
		err = fmt.Errorf("%w; import into an empty store: %w", err, store.ErrConflict)
	}
	return err
}

// same compares the data of the store with that of the export.
func same(what string, held, want any) error {
	a, aErr := json.Marshal(held)
	b, bErr := json.Marshal(want)
	if err := errors.Join(aErr, bErr); err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s differs from that in the store; import into an empty one: %w", what, store.ErrConflict)
	}
	return nil
}
