package quality_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// eachTranscript calls visit with every public transcript that can be read.
func eachTranscript(t testing.TB, visit func(path string, tr transcript.Transcript)) {
	t.Helper()
	dir := corpus.Dir(t, "transcripts")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
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

// A22: agents that have lost nothing yet must not be taken for ones that miss
// something. Measured: 0 of 3,129 messages; the bound is 1 in 1,000.
func TestFewFalsePositives(t *testing.T) {
	said, taken := 0, 0
	eachTranscript(t, func(path string, tr transcript.Transcript) {
		end := tr.Thread.Len()
		if len(tr.Compactions) > 0 {
			end = tr.Compactions[0].At
		}
		for i, m := range tr.Thread.All() {
			if i >= end || m.Role != thread.Assistant || m.Text() == "" {
				continue
			}
			said++
			if class, ok := quality.Asks(m.Text()); ok {
				taken++
				t.Logf("%s, message %d: %s", filepath.Base(path), i, class)
			}
		}
	})
	t.Logf("%d of %d messages before any compaction are taken for asking", taken, said)
	if said < 3000 {
		t.Errorf("only %d messages were read", said)
	}
	if taken*1000 > said {
		t.Errorf("%d of %d messages are false alarms, more than 1 in 1,000", taken, said)
	}
}

// A22: after compactions by the agents themselves, which took all content out
// of sight, they read files again; before, and in the same number of turns
// after a boundary at which nothing was removed, the monitor is silent.
func TestRealCompactions(t *testing.T) {
	var sum, none quality.Metrics
	boundaries := 0
	eachTranscript(t, func(path string, tr transcript.Transcript) {
		if len(tr.Compactions) == 0 {
			return
		}
		real, idle := quality.New(tr.Name, nil), quality.New(tr.Name, nil)
		next := 0
		for i, m := range tr.Thread.All() {
			if next < len(tr.Compactions) && tr.Compactions[next].At == i && i > 0 {
				before := tr.Thread.Prefix(i)
				p := &plan.Plan{ThreadID: before.ID(), ThreadVersion: before.Version()}
				p.Add(plan.Removal{Span: before.Range(0, i)})
				real.Compacted(before, p)
				idle.Compacted(before, &plan.Plan{})
				boundaries++
			}
			for next < len(tr.Compactions) && tr.Compactions[next].At <= i {
				next++
			}
			real.Message(t.Context(), *m)
			idle.Message(t.Context(), *m)
		}
		for _, one := range []struct {
			from quality.Metrics
			to   *quality.Metrics
		}{{real.Metrics(), &sum}, {idle.Metrics(), &none}} {
			one.to.Compactions += one.from.Compactions
			one.to.Rereads += one.from.Rereads
			one.to.Reruns += one.from.Reruns
			one.to.Alerts += one.from.Alerts
			one.to.UserRepeats += one.from.UserRepeats
			one.to.RehydrationRequests += one.from.RehydrationRequests
		}
	})
	t.Logf("%d compactions: %d files read again, %d commands run again, %d alerts, %d complaints", sum.Compactions, sum.Rereads, sum.Reruns, sum.Alerts, sum.UserRepeats)
	if sum.Compactions != boundaries || boundaries < 40 {
		t.Errorf("%d compactions of %d", sum.Compactions, boundaries)
	}
	if sum.Rereads < 10 {
		t.Errorf("%d files were read again after %d compactions: the monitor sees too little", sum.Rereads, boundaries)
	}
	if none.Rereads+none.Reruns+none.Alerts != 0 {
		t.Errorf("nothing was removed, and yet: %+v", none)
	}
}
