package secret_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/secret"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestRealSessions: real sessions were published after somebody took the secrets out of them, so each one that is
// found is a mistake. One that is put into a real result is found there.
func TestRealSessions(t *testing.T) {
	var messages, bytes int
	err := filepath.WalkDir(corpus.Dir(t, "transcripts"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !corpus.Long() && !strings.Contains(path, "own-runs") && !strings.Contains(path, "claude-code-viewer") {
			return err
		}
		read, err := transcript.Open(path, nil)
		if err != nil {
			return nil // it is no transcript
		}
		for _, tr := range read.Transcripts {
			all := tr.Thread.Messages()
			messages += len(all)
			masked, n := secret.Messages(all)
			for i := range masked {
				if n > 0 && masked[i].Frame != all[i].Frame {
					t.Errorf("%s: message %d has a secret", filepath.Base(path), i)
				}
			}
			for _, m := range all {
				if r, ok := m.Result(); ok && len(r.Content) > 0 {
					text := r.Text()
					bytes += len(text)
					r.Content = append(r.Content[:len(r.Content):len(r.Content)], thread.Text{Text: text[:len(text)/2] + "\nexport GITHUB_TOKEN=ghp_q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8\n" + text[len(text)/2:]})
					m.Parts = []thread.Part{r}
					if _, n := secret.Messages([]thread.Message{m}); n != 1 {
						t.Errorf("%s: message %s: a token in it was not found", filepath.Base(path), m.ID)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d messages; results of %d bytes", messages, bytes)
}
