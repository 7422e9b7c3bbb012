package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// long are some of the longer real conversations.
func long(t *testing.T) []transcript.Transcript {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), "*", "*.jsonl*"))
	if err != nil {
		t.Fatal(err)
	}
	var found []transcript.Transcript
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() < 100_000 || info.Size() > 2_000_000 {
			continue
		}
		f, err := transcript.Open(path, nil)
		if err != nil || f.Transcripts[0].Thread.Len() < 100 {
			continue
		}
		if found = append(found, f.Transcripts[0]); len(found) == 4 {
			return found
		}
	}
	t.Fatalf("only %d long conversations were found", len(found))
	return nil
}

// TestRealConversations: real conversations go through a daemon over SQLite, step
// by step and for each API. Every request is one that the provider takes, and
// afterwards the log has what was said, with the ids that it has anywhere. A12
func TestRealConversations(t *testing.T) {
	codecs := []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "daemon.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c := start(t, daemon.Config{Store: db, Limits: daemon.Limits{Rate: 1e6, Burst: 1e6}}).client(t, "")
	for n, tr := range long(t) {
		codec := codecs[n%len(codecs)]
		t.Run(codec.API(), func(t *testing.T) { replay(t, c, codec, tr) })
	}
}

func replay(t *testing.T, c *api.Client, codec wire.Codec, tr transcript.Transcript) {
	const steps, window = 60, 24_000
	ctx := t.Context()
	th, err := c.CreateThread(ctx, api.NewThread{})
	if err != nil {
		t.Fatal(err)
	}
	base := &neutral.Prompt{Model: "some-model", MaxOutput: 1000}
	var news []neutral.Message
	version, asked := 0, 0
	for _, m := range tr.Thread.All() {
		form := neutral.MessageOf(m)
		if m.Role != thread.Assistant || asked == steps {
			news = append(news, form)
			continue
		}
		asked++
		p, err := c.Prepare(ctx, th.ID, version, api.Step{API: codec.API(), Base: base, Messages: news, Window: window})
		if err != nil {
			t.Fatalf("step %d: %v", asked, err)
		}
		for _, problem := range codec.Validate(p.Body) {
			if !problem.Advice {
				t.Fatalf("step %d: the %s API would refuse the request: %v", asked, codec.API(), problem)
			}
		}
		a, err := c.Finish(ctx, th.ID, p.Version, api.Answer{Messages: []neutral.Message{form}})
		if err != nil {
			t.Fatalf("step %d: %v", asked, err)
		}
		version, news = a.Version, nil
	}
	got, err := c.Thread(ctx, th.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d steps, %d messages, %d plans", asked, got.Version, got.PlanVersion)
	log, err := c.Log(ctx, th.ID, "", 500)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range log.Items {
		if want := string(tr.Thread.At(i).ID); m.ID != want {
			t.Fatalf("message %d has id %s, want %s", i, m.ID, want)
		}
	}
}
