package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// deed is one thing that a process does to a store. It is announced before, and
// acknowledged when it is done.
type deed struct {
	Done   bool   `json:",omitempty"`
	Kind   string // append, commit, put, sweep, reseal, rotate, delete, migrate
	Tenant string
	// From and To are messages of an append; To is the version of a commit, and
	// the number of a key.
	From, To int `json:",omitempty"`
	// Name is that of a content or a database.
	Name string `json:",omitempty"`
	// ID is the artifact's, told with the acknowledgement.
	ID string `json:",omitempty"`
	// Expired says that the artifact's time is over as it is put.
	Expired bool `json:",omitempty"`
}

// The threads of each tenant: one that grows, and one that is deleted now and then.
const (
	lasting = "lasting"
	passing = "passing"
)

// textOf is what message n of a thread says: known without asking, of any size.
func textOf(tenant, id string, n int) string {
	return fmt.Sprintf("%s/%s/%d %s", tenant, id, n, strings.Repeat("wörk ", n*n*37%900))
}

// contentOf is what an artifact holds. Some are large enough for a file.
func contentOf(name string) string {
	size := 50
	if len(name)%2 == 0 {
		size = 30_000
	}
	return name + strings.Repeat(" and so on", size)
}

// worker does deeds for one tenant, whose only writer it is.
type worker struct {
	*opened
	store.Tenant
	place  place
	tenant string
	random *rand.Rand
	say    func(deed) error
	made   int // names given by this process
	run    uint64
}

// work does what a process does until it is killed, two tenants at a time.
func work(ctx context.Context, p place, process string, seed uint64, out io.Writer) error {
	o, err := p.open(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	encoder := json.NewEncoder(out)
	say := func(d deed) error {
		mu.Lock()
		defer mu.Unlock()
		return encoder.Encode(d)
	}
	failed := make(chan error)
	for n := range 2 {
		tenant := fmt.Sprintf("%s-%d", process, n)
		w := &worker{
			opened: o, Tenant: o.db.Tenant(tenant), place: p, tenant: tenant, say: say, run: seed,
			random: rand.New(rand.NewPCG(seed, uint64(n))),
		}
		go func() {
			for {
				if err := w.next(ctx); err != nil {
					failed <- fmt.Errorf("%s: %w", tenant, err)
					return
				}
			}
		}()
	}
	return <-failed
}

// next does one deed.
func (w *worker) next(ctx context.Context) error {
	switch n := w.random.IntN(40); {
	case n < 12:
		return w.append(ctx, lasting)
	case n < 16:
		return w.append(ctx, passing)
	case n < 22:
		return w.commit(ctx)
	case n < 30:
		return w.put(ctx)
	case n < 33:
		return w.do(deed{Kind: "sweep"}, func(*deed) error {
			_, err := w.artifacts.Sweep(ctx, w.who(), w.live(ctx))
			return err
		})
	case n < 35:
		return w.do(deed{Kind: "reseal"}, func(*deed) error {
			_, err := w.artifacts.Reseal(ctx, w.who())
			_, recordsErr := w.db.(store.Sealed).Reseal(ctx, w.tenant)
			return errors.Join(err, recordsErr)
		})
	case n < 37:
		return w.do(deed{Kind: "rotate"}, func(d *deed) error {
			id, err := w.ring.Rotate(ctx, w.tenant)
			d.To = numberOf(id)
			return err
		})
	case n < 39:
		return w.do(deed{Kind: "delete"}, func(*deed) error { return w.Catalog.Delete(ctx, passing) })
	default:
		return w.migrate(ctx)
	}
}

func (w *worker) who() artifact.Requester { return artifact.Requester{TenantID: w.tenant} }

// do announces a deed, does it and acknowledges it.
func (w *worker) do(d deed, f func(*deed) error) error {
	d.Tenant = w.tenant
	if err := w.say(d); err != nil {
		return err
	}
	if err := f(&d); err != nil {
		return fmt.Errorf("%+v: %w", d, err)
	}
	d.Done = true
	return w.say(d)
}

func (w *worker) name(kind string) string {
	w.made++
	return fmt.Sprintf("%s_%s_%d_%d", kind, strings.ReplaceAll(w.tenant, "-", "_"), w.run, w.made)
}

func (w *worker) append(ctx context.Context, id string) error {
	th, err := w.Log.Load(ctx, id)
	if err != nil {
		return err
	}
	d := deed{Kind: "append", Name: id, From: th.Len(), To: th.Len() + 1 + w.random.IntN(5)}
	return w.do(d, func(*deed) error {
		var list []thread.Message
		for n := d.From; n < d.To; n++ {
			list = append(list, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: textOf(w.tenant, id, n)}}})
		}
		next, err := w.Log.Append(ctx, id, d.From, list)
		if err == nil && next.Len() != d.To {
			err = fmt.Errorf("%d messages after the append", next.Len())
		}
		return err
	})
}

// commit puts in force a plan whose last record points to an artifact that has
// expired, and writes an event and a document with it, all of one version.
func (w *worker) commit(ctx context.Context) error {
	th, err := w.Log.Load(ctx, lasting)
	if err != nil || th.Len() < 2 {
		return err
	}
	_, version, err := w.Plans.Current(ctx, lasting)
	if err != nil {
		return err
	}
	document, err := w.Documents.Document(ctx, "round", lasting)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return w.do(deed{Kind: "commit", To: version + 1}, func(*deed) error {
		at := w.random.IntN(th.Len() - 1)
		id, err := w.artifacts.Put(ctx, expired(w.tenant), th.At(at).Text())
		if err != nil {
			return err
		}
		origin := plan.Origin{Strategy: "test", Reason: "for a test"}
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: lasting, ThreadVersion: th.Len(), CompactedTokens: version + 1,
			Externalizations: []plan.Externalization{{Span: th.Range(at, at+1), ArtifactID: id, Summary: summary.Summary{CurrentTask: "test"}, Origin: origin}},
			Clearings:        []plan.Clearing{{Span: th.Range(at+1, at+2), Origin: origin}},
		}
		_, err = w.Plans.Commit(ctx, lasting, version, store.Commit{
			Plan:      p,
			Events:    []event.Event{{Type: event.Completed, TokensBefore: version + 1}},
			Documents: []store.Document{{Kind: "round", ID: lasting, Version: document.Version, Body: fmt.Append(nil, version+1)}},
		})
		return err
	})
}

// expired is an artifact whose time is over.
func expired(tenant string) artifact.Metadata {
	return artifact.Metadata{ThreadID: lasting, TenantID: tenant, CreatedAt: longAgo, TTLSeconds: 1}
}

// live is whether the plan in force points to an artifact.
func (w *worker) live(ctx context.Context) func(artifact.Metadata) bool {
	p, _, err := w.Plans.Current(ctx, lasting)
	return func(m artifact.Metadata) bool {
		if p == nil || err != nil {
			return err != nil
		}
		for _, x := range p.Externalizations {
			if x.ArtifactID == m.ID {
				return true
			}
		}
		return false
	}
}

func (w *worker) put(ctx context.Context) error {
	d := deed{Kind: "put", Name: w.name("content"), Expired: w.random.IntN(3) == 0}
	return w.do(d, func(d *deed) error {
		m := artifact.Metadata{ThreadID: lasting, TenantID: w.tenant}
		if d.Expired {
			m = expired(w.tenant)
		}
		id, err := w.artifacts.Put(ctx, m, contentOf(d.Name))
		d.ID = id
		return err
	})
}

// migrate makes the tables of another database.
func (w *worker) migrate(ctx context.Context) error {
	return w.do(deed{Kind: "migrate", Name: w.name("other")}, func(d *deed) error {
		p, err := w.place.another(ctx, d.Name)
		if err != nil {
			return err
		}
		o, err := p.open(ctx)
		if err != nil {
			return err
		}
		return o.close()
	})
}

// numberOf is the number in the id of a key.
func numberOf(id string) (n int) {
	if _, err := fmt.Sscanf(id, "dk-%d", &n); err != nil && id != "" {
		fmt.Fprintln(os.Stderr, "a key called", id)
	}
	return n
}
