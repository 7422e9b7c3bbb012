package palimpsest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestSensitiveContent: what a tool declares confidential or restricted comes back neither by a search nor by itself,
// only by its id, also by that of its message, if the requester's clearance allows it; what has expired comes back by
// nothing. A10, A20
func TestSensitiveContent(t *testing.T) {
	for _, tt := range []struct {
		class, clearance artifact.Sensitivity
		expired          bool
		found, read      bool // by recall, by read_artifact
	}{
		{class: artifact.Public, found: true, read: true},
		{class: artifact.Internal, clearance: artifact.Internal, found: true, read: true},
		{class: artifact.Confidential, read: true},
		{class: artifact.Restricted, read: true},
		{class: artifact.Restricted, clearance: artifact.Internal},
		{class: artifact.Public, expired: true},
	} {
		now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		memory := &store.Memory{}
		c, err := palimpsest.New(palimpsest.Config{
			Store:     store.Tenant{Log: memory, Plans: memory},
			Tools:     toolpolicy.New(map[string]toolpolicy.Policy{"Read": {Sensitivity: string(tt.class), TTL: time.Hour}}),
			Artifacts: artifact.NewStore(new(artifact.Memory), &artifact.Options{Now: clock}), Now: clock,
			Requester: artifact.Requester{Clearance: tt.clearance}, Recall: &palimpsest.Recall{Inject: 900},
		})
		if err != nil {
			t.Fatal(err)
		}
		th, step, _ := longLoop(t, c)
		plans, err := th.Plans(t.Context())
		if err != nil || len(plans) == 0 || len(plans[0].Externalizations) == 0 {
			t.Fatalf("nothing was externalized: %v", err)
		}
		if tt.expired {
			now = now.Add(2 * time.Hour)
		}
		aside := plans[0].Externalizations[0]
		for name, id := range map[string]string{"artifact": aside.ArtifactID, "message": string(aside.Span.First())} {
			text, outcome := answer(t, th, "read_artifact", map[string]any{"artifact_id": id})
			if read := outcome == thread.Success && strings.Contains(text, "line of file"); read != tt.read {
				t.Errorf("%+v: read by the id of the %s: %v: %.200s", tt, name, read, text)
			}
		}
		log, err := memory.Load(t.Context(), "ticket-4711")
		if err != nil {
			t.Fatal(err)
		}
		i, _ := log.Index(aside.Span.First())
		r, _ := log.At(i).Result()
		line, _, _ := strings.Cut(r.Text(), "\n")
		text, _ := answer(t, th, "recall", map[string]any{"query": line})
		if found := strings.Contains(text, line); found != tt.found {
			t.Errorf("%+v: found %v: %.300s", tt, found, text)
		}
		if text, _ := answer(t, th, "recall", map[string]any{"query": log.At(i - 1).Calls()[0].Arguments}); !tt.found && strings.Contains(text, line) {
			t.Errorf("%+v: shown beside its call: %.900s", tt, text)
		}
		step.Messages = []thread.Message{plain(thread.User, "What does this say: "+line)}
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		shown := ""
		for _, m := range p.Messages {
			r, _ := m.Result()
			for n, text := range strings.Split(m.Text()+r.Text(), "[Recalled Content - message:") {
				if n > 0 {
					shown += text
				}
			}
		}
		if injected := strings.Contains(shown, line); injected != tt.found {
			t.Errorf("%+v: comes back by itself: %v", tt, injected)
		}
	}
}
