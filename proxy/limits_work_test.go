package proxy

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestCanBeHeld: what decides is how many objects a request has for its bytes, not what stands in
// its texts.
func TestCanBeHeld(t *testing.T) {
	for _, tt := range []struct {
		name string
		body string
		want bool
	}{
		{"small", `{"messages":[` + strings.Repeat(`{"role":"user","content":"a"},`, 10_000) + `{}]}`, true},
		{"tiny messages", `{"messages":[` + strings.Repeat(`{"role":"user","content":"a"},`, 200_000) + `{}]}`, false},
		{"messages of a usual size", `{"messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("a", 1000)+`"},`, 6_000) + `{}]}`, true},
		{"a long session of short steps", `{"messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("a", 180)+`"},`, 60_000) + `{}]}`, true},
		{"braces in a text", `{"content":"` + strings.Repeat(`{\"a\\\":{`, 1_000_000) + `"}`, true},
		{"a text without an end", `{"content":"` + strings.Repeat("{", 6_000_000), true},
	} {
		if got := workBytes(wire.Chat, new(identify.NewSimilar(tt.body))) < tooMuchWork; got != tt.want {
			t.Errorf("%s: %t for %d objects in %d bytes", tt.name, got, objects(tt.body), len(tt.body))
		}
	}
	doc := `{"a{":"\\\"{ {\n{x","b":[{},{"c":"\\"}, { }]}`
	if n := objects(doc); n != 4 {
		t.Errorf("%d objects", n)
	}
}

// TestSessionsCanBeHeld: no recorded session of an agent is too much work, as a request of any API.
func TestSessionsCanBeHeld(t *testing.T) {
	var files []string
	if err := filepath.WalkDir(corpus.Dir(t, "transcripts"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, ".json") {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, path := range corpus.EveryNth(files, 5) {
		f, err := transcript.Open(path, nil)
		if err != nil {
			continue // a list, or a format of another kind
		}
		for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
			p, _, err := render.Render(f.Transcripts[0].Thread, nil, &prompt.Prompt{Model: "m", Tools: f.Transcripts[0].Tools}, &render.Options{Profile: render.For(codec.API())})
			if err != nil {
				t.Fatal(path, err)
			}
			body, err := codec.Encode(p)
			if err != nil {
				continue // the API has no such message
			}
			tried++
			// As many times over as make a long one: what any request may take counts for nothing then.
			const long = 8 << 20
			_, array, _ := strings.Cut(string(body), "[")
			if body := strings.Repeat(array, 1+long/len(array)); len(array) > 100_000 && workBytes(codec.API(), new(identify.NewSimilar(body))) == tooMuchWork {
				t.Errorf("%s, %s: %d objects in %d bytes", path, codec.API(), objects(array), len(array))
			}
		}
	}
	if tried < 40 {
		t.Errorf("%d requests", tried)
	}
}
