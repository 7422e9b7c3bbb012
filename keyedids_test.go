package palimpsest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	storemem "github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// keyed is a store of artifacts with keys of its own, whose ids nobody can guess.
func keyed(t *testing.T, b artifact.Backend) *artifact.Store {
	t.Helper()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	return artifact.NewStore(b, &artifact.Options{Keyring: keyring.New(masters, &keyring.Memory{}, nil), KeyedIDs: true})
}

// TestKeyedIDs: with keyed ids no pointer of a plan follows from its content
// alone, all lead to it, and those of plans from before stay true: after a change
// from plain ids, and in a store with other keys that the thread was moved to. A20
func TestKeyedIDs(t *testing.T) {
	ctx, acme := t.Context(), artifact.Requester{TenantID: "acme"}
	compactor := func(db store.DB, artifacts *artifact.Store) *palimpsest.Compactor {
		t.Helper()
		s := db.Tenant("acme")
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{}, Log: s.Log, Plans: s.Plans, Artifacts: artifacts, Requester: acme, Recall: &palimpsest.Recall{}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// goOn goes on with the thread, from one step to another.
	goOn := func(c *palimpsest.Compactor, from, to int) *palimpsest.Session {
		t.Helper()
		th := c.Session("ticket-4711")
		step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
		for n := from; n < to; n++ {
			if _, err := th.PrepareStep(ctx, step); err != nil {
				t.Fatal(err)
			}
			call, result := work(n)
			if n == from || n == to-3 { // too much to be shown whole, also right after the change
				r := result.Parts[0].(thread.ToolResult)
				var text strings.Builder
				for i := range 1500 {
					fmt.Fprintf(&text, "line of file %d.%d: func Handle%d_%d()\n", n, i, n, i)
				}
				r.Content = []thread.Part{thread.Text{Text: text.String()}}
				result.Parts = []thread.Part{r}
			}
			step.Messages = []thread.Message{call, result}
		}
		return th
	}
	// pointers counts those that are new by whether they are plain hashes, and reads
	// all.
	known := map[string]bool{}
	pointers := func(db store.DB, th *palimpsest.Session, artifacts *artifact.Store) (plainIDs, keyedIDs int) {
		t.Helper()
		log, err := db.Tenant("acme").Log.Load(ctx, "ticket-4711")
		if err != nil {
			t.Fatal(err)
		}
		plans, err := th.Plans(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			for _, x := range p.Externalizations {
				i, _ := log.Index(x.Span.MessageIDs[0])
				r, _ := log.At(i).Result()
				switch {
				case known[x.ArtifactID]:
				case x.ArtifactID == artifact.IDOf(log.ID(), r.Text()):
					plainIDs++
				default:
					keyedIDs++
				}
				known[x.ArtifactID] = true
				if _, content, err := artifacts.Get(ctx, acme, x.ArtifactID); err != nil || content != r.Text() {
					t.Errorf("%s: %.40q, %v", x.ArtifactID, content, err)
				}
				if text, outcome := answer(t, th, "read_artifact", map[string]any{"artifact_id": x.ArtifactID}); outcome != thread.Success || !strings.Contains(text, "line of file") {
					t.Errorf("%s cannot be read: %s", x.ArtifactID, text)
				}
			}
		}
		return plainIDs, keyedIDs
	}
	sound := func(db store.DB, artifacts *artifact.Store) {
		t.Helper()
		if _, err := care.Check(ctx, db, func(p care.Problem) { t.Error(p) }, &care.Options{Artifacts: artifacts}); err != nil {
			t.Error(err)
		}
	}

	// Plain ids, and then keys.
	db := storemem.New()
	before := artifact.NewStore(db.Artifacts(), nil)
	if plainIDs, keyedIDs := pointers(db, goOn(compactor(db, before), 0, 60), before); plainIDs == 0 || keyedIDs > 0 {
		t.Errorf("without keys: %d plain ids, %d keyed", plainIDs, keyedIDs)
	}
	sealed := keyed(t, db.Artifacts())
	if plainIDs, keyedIDs := pointers(db, goOn(compactor(db, sealed), 60, 100), sealed); plainIDs > 0 || keyedIDs < 2 {
		t.Errorf("with keys: %d plain ids, %d keyed", plainIDs, keyedIDs)
	}
	sound(db, sealed)

	// Another store, with other keys.
	var all bytes.Buffer
	if _, err := care.Export(ctx, db, &all, &care.Options{Artifacts: sealed}); err != nil {
		t.Fatal(err)
	}
	moved := storemem.New()
	other := keyed(t, moved.Artifacts())
	if _, err := care.Import(ctx, moved, &all, &care.Options{Artifacts: other}); err != nil {
		t.Fatal(err)
	}
	if plainIDs, keyedIDs := pointers(moved, goOn(compactor(moved, other), 100, 140), other); plainIDs > 0 || keyedIDs < 2 {
		t.Errorf("after the move: %d plain ids, %d keyed", plainIDs, keyedIDs)
	}
	sound(moved, other)
}
