package daemon_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// lived is a thread of 30 steps with several plans and artifacts. It returns the
// sizes of its prompts.
func lived(t *testing.T, c *api.Client, id string) []int {
	t.Helper()
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: id, Labels: map[string]string{"of": id}}); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for step := range 30 {
		p, err := c.Prepare(t.Context(), id, 2*step, api.Step{API: wire.Anthropic, Body: stepRequest(step), Window: 12_000, Output: 1000})
		if err != nil {
			t.Fatalf("%s, step %d: %v", id, step, err)
		}
		sizes = append(sizes, p.Tokens)
		if _, err := c.Finish(t.Context(), id, p.Version, api.Answer{API: wire.Anthropic, Response: response(step)}); err != nil {
			t.Fatal(err)
		}
	}
	return sizes
}

// documents are all documents of a tenant, by kind and id.
func documents(t *testing.T, s store.Tenant) map[string]string {
	t.Helper()
	all := map[string]string{}
	kinds, err := s.Documents.Kinds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		page, err := s.Documents.Documents(t.Context(), kind, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			all[kind+"/"+d.ID] = string(d.Body)
		}
	}
	return all
}

// TestDelete: of a deleted thread nothing is left that could be asked for, and a
// stream of its events ends; the thread beside it is untouched. Begun anew under
// its id it is another thread.
func TestDelete(t *testing.T) {
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "daemon.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for name, db := range map[string]store.DB{"memory": mem.New(), "sqlite": file} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			artifacts := artifact.NewStore(db.Artifacts(), nil)
			h := start(t, daemon.Config{Store: db, Artifacts: artifacts, Compactor: putsAside(), Limits: daemon.Limits{Rate: 1e6}})
			c := h.client(t, "")
			sizes := lived(t, c, "gone")
			lived(t, c, "stays")
			kept := db.Tenant("")
			// What the proxy remembers of a response that goes on with the thread.
			for id, log := range map[string]string{"resp_1": "gone", "resp_2": "stays"} {
				if _, err := kept.Documents.Put(ctx, store.Document{Kind: "proxy-response", ID: id, Body: []byte(`{"log":"` + log + `","at":1,"output":["said"]}`)}); err != nil {
					t.Fatal(err)
				}
			}
			before := documents(t, kept)
			for _, want := range []string{"thread/gone", "calibration/gone", "proxy-response/resp_1"} {
				if before[want] == "" {
					t.Fatalf("there is no document %s: %v", want, before)
				}
			}
			of := func(id string) (n int) {
				for m, err := range artifacts.List(ctx, artifact.Requester{}, artifact.Filter{ThreadID: id}) {
					if err != nil {
						t.Fatal(m, err)
					}
					n++
				}
				return n
			}
			others := of("stays")
			if of("gone") == 0 || others == 0 {
				t.Fatalf("%d and %d artifacts were externalized", of("gone"), others)
			}
			list, err := c.Artifacts(ctx, "gone", "", 0)
			if err != nil {
				t.Fatal(err)
			}
			watching, err := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/threads/gone/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := h.http.Do(watching)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Body.Close()
			_, untouched := h.do(t, "GET", "/v1/threads/stays", "")

			answer, body := h.do(t, "DELETE", "/v1/threads/gone", "")
			if answer.StatusCode != 204 || body != "" {
				t.Fatalf("%d %s", answer.StatusCode, body)
			}
			if _, err := io.Copy(io.Discard, stream.Body); err != nil {
				t.Errorf("the stream did not end well: %v", err)
			}
			for _, op := range api.Operations() {
				if !strings.Contains(op.Path, "{thread}") {
					continue
				}
				path := strings.NewReplacer("{thread}", "gone", "{version}", "1", "{artifact}", list.Items[0].ID).Replace(op.Path)
				if answer, body := h.do(t, op.Method, path, ""); answer.StatusCode != 404 {
					t.Errorf("%s: %d %s", op.ID, answer.StatusCode, body)
				}
			}
			if all, err := c.Threads(ctx, "", 0); err != nil || len(all.Items) != 1 || all.Items[0].ID != "stays" {
				t.Errorf("threads are %+v: %v", all, err)
			}
			after := documents(t, kept)
			for name, body := range before {
				gone := strings.HasSuffix(name, "/gone") || name == "proxy-response/resp_1"
				if gone && after[name] != "" || !gone && after[name] != body {
					t.Errorf("document %s is %q, was %q", name, after[name], body)
				}
			}
			if of("gone") != 0 || of("stays") != others {
				t.Errorf("%d artifacts of the deleted thread are left, and %d of the other, which had %d", of("gone"), of("stays"), others)
			}
			if _, now := h.do(t, "GET", "/v1/threads/stays", ""); now != untouched {
				t.Errorf("the other thread is %s, was %s", now, untouched)
			}

			again := lived(t, c, "gone")
			if fmt.Sprint(again) != fmt.Sprint(sizes) {
				t.Errorf("begun anew its prompts take %v tokens, at first they took %v", again, sizes)
			}
			for w, err := range c.Events(ctx, "gone", "0") {
				if err != nil || w.ID != "1" || w.Event.Type != "thread_created" {
					t.Errorf("its first event is %+v: %v", w, err)
				}
				break
			}
		})
	}
}

// waitingQueue is a queue that says when somebody begins to wait for a job.
type waitingQueue struct {
	*job.Memory
	waits chan string
}

func (q waitingQueue) Wait(ctx context.Context, key string) error {
	q.waits <- key
	return q.Memory.Wait(ctx, key)
}

// TestDeleteWaits: a compaction that runs in the background is waited for, so that
// it does not write to the thread once it is gone.
func TestDeleteWaits(t *testing.T) {
	p := slow{policy.Auto{}, make(chan struct{}), make(chan struct{})}
	queue := waitingQueue{waits: make(chan string)}
	db := mem.New()
	config := daemon.Config{Store: db, Jobs: func(work job.Handlers, o *job.Options) (job.Queue, error) {
		queue.Memory = job.NewMemory(work, o)
		return queue, nil
	}}
	config.Compactor.Policy = p
	h := filled(t, config)
	defer func() {
		if err := queue.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	long := strings.Repeat("The build failed at the linker. ", 3000)
	if _, err := h.client(t, "").Append(t.Context(), "t", api.Any, api.Append{Messages: []neutral.Message{said("user", long), said("assistant", long), said("user", "Go on.")}}); err != nil {
		t.Fatal(err)
	}
	key := job.CompactKey("", "t")
	args := []byte(`{"domain":"","thread":"t","profile":{"API":"anthropic"},"budget":4000,"fixed":1}`)
	if added, err := queue.Put(t.Context(), job.Job{Kind: palimpsest.CompactJob, Key: key, Args: args}); err != nil || !added {
		t.Fatal(added, err)
	}
	<-p.begun
	deleted := make(chan error, 1)
	go func() { deleted <- h.client(t, "").DeleteThread(t.Context(), "t") }()
	select {
	case err := <-deleted:
		t.Fatalf("the thread was deleted under a compaction: %v", err)
	case waits := <-queue.waits:
		if waits != key {
			t.Errorf("the deletion waits for %s", waits)
		}
	}
	close(p.let)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if err := queue.Memory.Wait(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if infos, err := db.Tenant("").Catalog.Threads(t.Context(), "", 0); err != nil || len(infos) != 0 {
		t.Errorf("there is %+v: %v", infos, err)
	}
}
