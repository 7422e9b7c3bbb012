package palimpsest_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// screenshot is a picture of about 1,300 tokens.
func screenshot(t testing.TB) thread.Media {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1000, 1000))); err != nil {
		t.Fatal(err)
	}
	return thread.Media{Type: thread.Image, MIME: "image/png", Data: base64.StdEncoding.EncodeToString(b.Bytes())}
}

func hasPicture(m *thread.Message) bool {
	r, _ := m.Result()
	for _, p := range r.Content {
		if _, ok := p.(thread.Media); ok {
			return true
		}
	}
	return false
}

// TestPicturesAreNotExternalized: an artifact holds only text, so no pointer promises the
// full content of a result with a picture. Old pictures go in other ways, and the newest,
// which the model has not seen, stays. A7
func TestPicturesAreNotExternalized(t *testing.T) {
	for _, tool := range []string{"browser_screenshot", "WebFetch"} {
		for _, words := range []string{"", strings.Repeat("A button says Order. The list shows bolts. ", 150)} {
			for _, p := range []policy.Policy{policy.Auto{}, policy.Ladder{MaxInputTokens: 14_000}} {
				t.Run(fmt.Sprintf("%s, %s, %d bytes of text", tool, p.Name(), len(words)), func(t *testing.T) {
					artifacts := artifact.NewStore(mem.New(), nil)
					c, err := palimpsest.New(palimpsest.Config{Policy: p, Recall: &palimpsest.Recall{}, Artifacts: artifacts})
					if err != nil {
						t.Fatal(err)
					}
					s := c.Session("t")
					step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 14_000, Messages: []thread.Message{plain(thread.User, "Order the bolts.")}}
					for n := range 40 {
						p, err := s.PrepareStep(t.Context(), step)
						if err != nil || p.Failed != nil || p.Tokens > 14_000 {
							t.Fatalf("step %d: %v, %v, %d tokens", n, err, p.Failed, p.Tokens)
						}
						if newest := &p.Messages[len(p.Messages)-1]; n > 0 && !hasPicture(newest) {
							t.Fatalf("step %d does not show the new picture: %v", n, newest.Parts)
						}
						id := fmt.Sprint("shot_", n)
						call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{
							thread.Text{Text: fmt.Sprintf("I click on button %d.", n)}, thread.ToolCall{ID: id, Name: tool, Arguments: fmt.Sprintf(`{"n":%d}`, n)},
						}}
						if err := s.FinishStep(t.Context(), nil, llm.Usage{}, call); err != nil {
							t.Fatal(err)
						}
						var content []thread.Part
						if words != "" {
							content = append(content, thread.Text{Text: fmt.Sprintf("Page %d. ", n) + words})
						}
						step.Messages = []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Content: append(content, screenshot(t))}}}}
					}
					plans, err := s.Plans(t.Context())
					if err != nil || len(plans) == 0 {
						t.Fatalf("%d plans, %v", len(plans), err)
					}
					for v, p := range plans {
						for _, x := range p.Externalizations {
							t.Errorf("plan %d externalizes %s as %s", v+1, x.Span.First(), x.ArtifactID)
						}
						for _, x := range p.Externalized() {
							if x.ArtifactID == artifact.IDOf("t", "") {
								t.Errorf("plan %d keeps an artifact of nothing: %s", v+1, x.Path)
							}
						}
					}
				})
			}
		}
	}
}
