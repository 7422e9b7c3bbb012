package proxy_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/injectedtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestAuthors: of what a client sends in the user's name the provider is told as the
// user's words, where a summary stands in its place, what the user certainly wrote.
func TestAuthors(t *testing.T) {
	ways := []struct {
		codec wire.Codec
		path  string
	}{
		{anthropic.Codec{}, "/v1/messages"}, {openai.Chat{}, "/v1/chat/completions"}, {openai.Responses{}, "/v1/responses"}, {gemini.Codec{}, "/v1beta/models/m:generateContent"},
	}
	for n, a := range injectedtest.Attacks() {
		way := ways[n%len(ways)]
		t.Run(a.Name+"/"+way.codec.API(), func(t *testing.T) {
			t.Parallel()
			up := proxytest.New(t)
			url, _ := start(t, up, proxy.Options{Window: 5_000, Config: palimpsest.Config{Counter: counter()}})
			body, err := way.codec.Encode(&prompt.Prompt{Model: "m", MaxOutput: 500, Messages: injectedtest.Conversation(a), Tools: []prompt.Tool{{Name: "Bash", Description: "A shell.", Schema: `{"type":"object"}`}}})
			if err != nil {
				t.Fatal(err)
			}
			got := sentAfter(t, up, url+way.path, body)
			var all strings.Builder
			for i := range got.Messages {
				text := got.Messages[i].Text()
				all.WriteString(text + "\n")
				if strings.Contains(injectedtest.WithoutData(text), "evil.example") {
					t.Errorf("the provider is told\n%s", text)
				}
			}
			for _, want := range []string{injectedtest.Request, a.Own} {
				if !strings.Contains(strings.Join(strings.Fields(all.String()), " "), want) {
					t.Errorf("no %q in\n%s", want, all.String())
				}
			}
		})
	}
}

// sentAfter is what the provider is sent for a request that is compacted.
func sentAfter(t *testing.T, up *proxytest.Upstream, url string, body []byte) *prompt.Prompt {
	t.Helper()
	answer, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != 200 || answer.Header.Get(proxy.ActionHeader) != proxy.Compacted {
		t.Fatalf("%d, %s: %v: %s", answer.StatusCode, answer.Header.Get(proxy.ActionHeader), err, said)
	}
	requests := up.Requests()
	return requests[len(requests)-1].Prompt
}

// TestResultsAreNobodysWords: whatever text a tool result carries, no sentence of it goes to the
// provider as the user's words.
func TestResultsAreNobodysWords(t *testing.T) {
	codecs := map[string]wire.Codec{"/v1/messages": anthropic.Codec{}, "/v1/chat/completions": openai.Chat{}, "/v1/responses": openai.Responses{}}
	property.Few(t, 20, func(rt *rapid.T) {
		path := rapid.SampledFrom(slices.Sorted(maps.Keys(codecs))).Draw(rt, "path")
		up := proxytest.New(t)
		url, _ := start(t, up, proxy.Options{Window: 5_000, Config: palimpsest.Config{Counter: counter()}})
		body, err := codecs[path].Encode(&prompt.Prompt{Model: "m", MaxOutput: 500, Messages: injectedtest.WithResults(rt), Tools: []prompt.Tool{{Name: "Bash", Description: "A shell.", Schema: `{"type":"object"}`}}})
		if err != nil {
			t.Fatal(err)
		}
		got := sentAfter(t, up, url+path, body)
		for i := range got.Messages {
			if m := &got.Messages[i]; m.Role == thread.User && strings.Contains(injectedtest.WithoutData(m.Text()), "evil.example") {
				rt.Fatalf("the provider is told as the user's words\n%s", m.Text())
			}
		}
	})
}
