package summarize

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

func TestShowWork(t *testing.T) {
	names := strings.Fields(os.Getenv("SHOW"))
	for _, name := range names {
		file, err := transcript.Open(filepath.Join(corpus.Dir(t, "transcripts"), name), nil)
		if err != nil {
			t.Fatal(err)
		}
		for n, tr := range file.Transcripts {
			if n > 7 {
				break
			}
			var memo memo
			w := foldWork(state.Work{}, tr.Thread.Messages(), memo.facts)
			_ = json.Marshal
			fmt.Printf("######## %s %d (%d messages)\n%s\n", name, n, len(tr.Thread.Messages()), summary.RenderWork(w))
		}
	}
}
