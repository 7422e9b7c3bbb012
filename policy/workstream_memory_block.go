package policy

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

//go:embed prompts/workstream.memory.txt
var memoryTask string

//go:embed prompts/workstream.memory.user.txt
var memoryUser string

// memoryChars is the largest summary of a memory block that is made by rule, in bytes.
const memoryChars = 8_000

// CompactMemory folds the oldest 10 entries of a memory block into its summary, as long as
// there are 15; a smaller block is returned as it is. Of a model's text only the sentences
// that the entries back are used. Without a model, and where none is left, the entries are
// appended to the summary, which loses its oldest lines when it grows too long. On an
// error the memory is returned with what was folded before it; nothing is lost.
func (w Workstream) CompactMemory(ctx context.Context, m state.Memory) (state.Memory, error) {
	for {
		oldest, due := m.Due()
		if !due {
			return m, nil
		}
		next, err := w.foldMemory(ctx, m, oldest)
		if err != nil {
			return m, fmt.Errorf("policy workstream: compact the memory block: %w", err)
		}
		m = next
	}
}

// foldMemory makes the oldest entries part of the summary.
func (w Workstream) foldMemory(ctx context.Context, m state.Memory, oldest []string) (state.Memory, error) {
	entries := strings.Join(neutralEntries(oldest), "\n")
	user := fillTemplate(strings.TrimSpace(memoryUser), "{{previous}}", escapeTags(m.Summary), "{{entries}}", escapeTags(entries))
	model := &summaryModel{situation: &history{Situation: &Situation{}}, model: w.Model}
	folded, _, err := writeOrFallback(ctx, w.Model,
		func() (state.Memory, error) {
			text, err := model.generateText(ctx, prompt.System{Text: memoryTask, Role: "system"}, user, nil)
			if err != nil {
				return m, err
			}
			// The block speaks in the system's role: what the entries do not say has no
			// place in it.
			said := []thread.Message{{ID: "entries", Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Join(oldest, "\n")}}}}
			g := summarize.NewGrounds(ctx, said, m.Summary)
			kept, err := g.Prose(strings.ToValidUTF8(text, "\uFFFD"))
			if err == nil {
				err = isAbout(g, kept.Text)
			}
			return m.Folded(kept.Text, len(oldest)), err
		},
		func(error) (state.Memory, error) {
			text := strings.TrimSpace(m.Summary + "\n" + entries)
			if over := len(text) - memoryChars; over > 0 {
				text = text[clip.Boundary(text, over):]
				if _, rest, ok := strings.Cut(text, "\n"); ok {
					text = rest
				}
			}
			return m.Folded(text, len(oldest)), nil
		},
		func(error) bool { return true })
	return folded, err
}
