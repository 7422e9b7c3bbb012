// Package wiretest holds the conformance suite that every codec passes, and
// finds the real requests it is run on. Only tests import it.
package wiretest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// cassettes names the file of recorded requests of each API.
var cassettes = map[string]string{
	wire.Anthropic: "anthropic-messages.jsonl.gz",
	wire.Chat:      "openai-chat.jsonl.gz",
	wire.Responses: "openai-responses.jsonl.gz",
	wire.Gemini:    "gemini-generatecontent.jsonl.gz",
}

// Corpus returns every real request body of an API (one of the constants of
// package wire), byte for byte, by a name that says where it came from. Where
// the corpus is not beside the project it skips the test; see package corpus.
func Corpus(t testing.TB, api string) map[string][]byte {
	t.Helper()
	bodies := map[string][]byte{}
	samples(t, api, bodies)
	recorded(t, api, bodies)
	if api == wire.Anthropic {
		dir := filepath.Join(corpus.Dir(t, "transcripts"), "vivaria-inspect")
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, file := range files {
			bodies["vivaria-inspect/"+filepath.Base(file)] = read(t, file)
		}
	}
	if len(bodies) == 0 {
		t.Fatalf("the corpus holds no request of %q", api)
	}
	return bodies
}

// samples collects the requests of real clients, one file each.
func samples(t testing.TB, api string, bodies map[string][]byte) {
	t.Helper()
	root := corpus.Dir(t, "wire-samples")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".json" {
			return err
		}
		var request struct {
			Path string
			Body json.RawMessage
		}
		if err := json.Unmarshal(read(t, file), &request); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if wire.APIOf(request.Path) == api {
			name, _ := filepath.Rel(root, file)
			bodies["wire-samples/"+filepath.ToSlash(name)] = request.Body
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// recorded collects the requests of recorded exchanges, one line each.
func recorded(t testing.TB, api string, bodies map[string][]byte) {
	t.Helper()
	name, ok := cassettes[api]
	if !ok {
		t.Fatalf("no API is called %q", api)
	}
	file := filepath.Join(corpus.Dir(t, "transcripts"), "pydantic-ai-cassettes", name)
	unzip, err := gzip.NewReader(bytes.NewReader(read(t, file)))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	lines := bufio.NewReader(unzip)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var record struct {
				Cassette string
				Body     json.RawMessage
			}
			if err := json.Unmarshal(line, &record); err != nil {
				t.Fatalf("%s:%d: %v", file, n, err)
			}
			key := "cassettes/" + strings.TrimSuffix(filepath.Base(record.Cassette), ".yaml")
			if _, taken := bodies[key]; taken {
				key += "#" + strconv.Itoa(n)
			}
			bodies[key] = record.Body
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
