package transcript_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// row is what index.json says of a file.
type row struct {
	File        string
	Format      string
	Transcripts int
	Messages    int
	UserTurns   int `json:"user_turns"`
	ToolCalls   int `json:"tool_calls"`
	Compactions int
}

func index(t testing.TB) (dir string, rows []row) {
	t.Helper()
	dir = corpus.Dir(t, "transcripts")
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	return dir, rows
}

func TestCorpus(t *testing.T) {
	dir, rows := index(t)
	for _, r := range rows {
		if os.Getenv("ONLY") != "" && !strings.Contains(r.Format+r.File, os.Getenv("ONLY")) {
			continue
		}
		t.Run(r.File, func(t *testing.T) {
			f, err := transcript.Open(filepath.Join(dir, r.File), nil)
			if err != nil {
				t.Fatal(err)
			}
			calls, plain, msgs, inj, recap, orphans := 0, 0, 0, 0, 0, 0
			for _, tr := range f.Transcripts {
				pair := thread.Pair(tr.Thread)
				for i, m := range tr.Thread.All() {
					msgs++
					calls += len(m.Calls())
					if m.StartsTurn() {
						plain++
					}
					switch m.Kind {
					case thread.Injected:
						inj++
					case thread.Recap:
						recap++
					}
					if m.Role == thread.Tool {
						if _, ok := pair.Call(i); !ok {
							orphans++
						}
					}
				}
			}
			tr := f.Transcripts[0]
			mark := ""
			if plain != r.UserTurns || calls != r.ToolCalls || len(f.Transcripts) != r.Transcripts {
				mark = "<<<<"
			}
			t.Logf("%s n=%d/%d msgs %d/%d calls %d/%d turns %d/%d inj %d recap %d comp %d/%d side %d orph %d model %s title %q warn %v skip %v unk %v %s", f.Format, len(f.Transcripts), r.Transcripts, msgs, r.Messages, calls, r.ToolCalls, plain, r.UserTurns,
				inj, recap, len(tr.Compactions), r.Compactions, len(tr.Side), orphans, tr.Model, tr.Title, f.Report.Warnings, f.Report.Skipped, f.Report.Unknown, mark)
		})
	}
}
