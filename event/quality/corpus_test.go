package quality_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// eachTranscript calls visit with every public transcript that can be read, or, where
// the run is not a long one, with every second.
func eachTranscript(t testing.TB, visit func(path string, tr transcript.Transcript)) {
	t.Helper()
	dir := corpus.Dir(t, "transcripts")
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if seen++; seen%2 == 0 && !corpus.Long() {
			return nil
		}
		file, err := transcript.Open(path, nil)
		if errors.Is(err, transcript.ErrUnknownFormat) || errors.Is(err, transcript.ErrEmpty) || errors.Is(err, transcript.ErrBinary) {
			return nil // notices, the index
		}
		if err != nil {
			t.Logf("%s: %v", filepath.Base(path), err)
			return nil
		}
		for _, tr := range file.Transcripts {
			visit(path, tr)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRealTranscripts(t *testing.T) {
	var calm falseAlarms
	var after realCompactions
	eachTranscript(t, func(path string, tr transcript.Transcript) {
		calm.visit(t, path, tr)
		after.visit(t, tr)
	})
	t.Run("few false positives", calm.check)
	t.Run("compactions", after.check)
}

// falseAlarms: agents that have lost nothing yet must not be taken for ones that
// miss something (A22). Measured: 0 of 3,129 messages; the bound is 1 in 1,000.
type falseAlarms struct{ said, taken int }

func (f *falseAlarms) visit(t *testing.T, path string, tr transcript.Transcript) {
	end := tr.Thread.Len()
	if len(tr.Compactions) > 0 {
		end = tr.Compactions[0].At
	}
	for i, m := range tr.Thread.All() {
		if i >= end || m.Role != thread.Assistant || m.Text() == "" {
			continue
		}
		f.said++
		if class, ok := quality.Asks(m.Text()); ok {
			f.taken++
			t.Logf("%s, message %d: %s", filepath.Base(path), i, class)
		}
	}
}

func (f *falseAlarms) check(t *testing.T) {
	t.Logf("%d of %d messages before any compaction are taken for asking", f.taken, f.said)
	least := 1500
	if corpus.Long() {
		least = 3000
	}
	if f.said < least {
		t.Errorf("only %d messages were read", f.said)
	}
	if f.taken*1000 > f.said {
		t.Errorf("%d of %d messages are false alarms, more than 1 in 1,000", f.taken, f.said)
	}
}

// realCompactions: after compactions by the agents themselves, which
// took all content out of sight, they read files again; a monitor that is told
// that nothing was removed is silent (A22).
type realCompactions struct {
	sum, none  quality.Metrics
	boundaries int
}

func (r *realCompactions) visit(t *testing.T, tr transcript.Transcript) {
	if len(tr.Compactions) == 0 {
		return
	}
	told, idle := quality.New(tr.Name, nil), quality.New(tr.Name, nil)
	next := 0
	for i, m := range tr.Thread.All() {
		if next < len(tr.Compactions) && tr.Compactions[next].At == i && i > 0 {
			before := tr.Thread.Prefix(i)
			p := &plan.Plan{ThreadID: before.ID(), ThreadVersion: before.Version()}
			p.Add(plan.Removal{Span: before.Range(0, i)})
			told.Compacted(before, p)
			idle.Compacted(before, &plan.Plan{})
			r.boundaries++
		}
		for next < len(tr.Compactions) && tr.Compactions[next].At <= i {
			next++
		}
		told.Message(t.Context(), *m)
		idle.Message(t.Context(), *m)
	}
	for _, one := range []struct {
		from quality.Metrics
		to   *quality.Metrics
	}{{told.Metrics(), &r.sum}, {idle.Metrics(), &r.none}} {
		one.to.Compactions += one.from.Compactions
		one.to.Rereads += one.from.Rereads
		one.to.Reruns += one.from.Reruns
		one.to.Alerts += one.from.Alerts
		one.to.UserRepeats += one.from.UserRepeats
		one.to.RehydrationRequests += one.from.RehydrationRequests
	}
}

func (r *realCompactions) check(t *testing.T) {
	t.Logf("%d compactions: %d files read again, %d commands run again, %d alerts, %d complaints", r.sum.Compactions, r.sum.Rereads, r.sum.Reruns, r.sum.Alerts, r.sum.UserRepeats)
	least := 20
	if corpus.Long() {
		least = 40
	}
	if r.sum.Compactions != r.boundaries || r.boundaries < least {
		t.Errorf("%d compactions of %d", r.sum.Compactions, r.boundaries)
	}
	if r.sum.Rereads < 10 {
		t.Errorf("%d files were read again after %d compactions: the monitor sees too little", r.sum.Rereads, r.boundaries)
	}
	if r.none.Rereads+r.none.Reruns+r.none.Alerts != 0 {
		t.Errorf("nothing was removed, and yet: %+v", r.none)
	}
}
