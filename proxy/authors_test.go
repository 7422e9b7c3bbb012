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
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/test/injectedtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/policy"
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

// TestAuthorsAreTraceable: conversations in which every author says a rule go through the proxy, of clients that say who
// they are and others, over each API, under each policy. In what the provider is sent every sentence is by whoever said
// it.
func TestAuthorsAreTraceable(t *testing.T) {
	codecs := map[string]wire.Codec{"/v1/messages": anthropic.Codec{}, "/v1/chat/completions": openai.Chat{}, "/v1/responses": openai.Responses{}, "/v1beta/models/m:generateContent": gemini.Codec{}}
	policies := []policy.Policy{
		policy.Auto{}, policy.Notes{}, policy.Ladder{MaxInputTokens: 3600, SafetyBuffer: -1, RehydrationReserve: -1}, policy.Session{Keep: 3, ContextLimit: 13_000}, policy.Timeline{MaxTokens: 2700, KeepRecent: 200},
		policy.Workstream{Tail: 2, ContextSize: 2000, OutputReserve: 200, SafetyMargin: 100}, policy.Loop{ContextLimit: 2500, MaxOutput: 500},
	}
	compacted := map[string]int{}
	property.Few(t, 60, func(rt *rapid.T) {
		path := rapid.SampledFrom(slices.Sorted(maps.Keys(codecs))).Draw(rt, "path")
		client := rapid.SampledFrom([]string{"claude-cli/2.1.300 (external, cli)", "some-client/1"}).Draw(rt, "client")
		chosen := rapid.SampledFrom(policies).Draw(rt, "policy")
		up := proxytest.New(t)
		url, _ := start(t, up, proxy.Options{Window: 3_400, Config: palimpsest.Config{Counter: counter(), Policy: chosen}})
		log := injectedtest.Signed(rt, 10, 40, injected.Agent(client))
		for n := 2; n <= len(log); n = min(n+6, max(len(log), n+1)) {
			if log[n-1].Role == thread.Assistant {
				continue // the client waits for what it called
			}
			body, err := codecs[path].Encode(&prompt.Prompt{Model: "m", MaxOutput: 500, System: []prompt.System{{Text: strings.Repeat("You keep tables. ", 400)}}, Messages: log[:n], Tools: injectedtest.SignedTools})
			if err != nil {
				rt.Fatal(err)
			}
			r, err := http.NewRequest(http.MethodPost, url+path, bytes.NewReader(body))
			if err != nil {
				rt.Fatal(err)
			}
			r.Header.Set("User-Agent", client)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				rt.Fatal(err)
			}
			said, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != http.StatusOK {
				rt.Fatalf("%d, %v: %s", res.StatusCode, err, said)
			}
			if res.Header.Get(proxy.ActionHeader) == proxy.Compacted {
				compacted[chosen.Name()]++
			}
			requests := up.Requests()
			sent := requests[len(requests)-1].Prompt
			messages := injected.MarkInjected(sent.Messages, nil)
			for _, system := range sent.System {
				messages = append(messages, thread.Message{Role: thread.System, Parts: []thread.Part{thread.Text{Text: system.Text}}})
			}
			if err := injectedtest.Misquoted(messages); err != nil {
				rt.Fatalf("%s, %s, %s, %s: %v", chosen.Name(), path, client, res.Header.Get(proxy.ActionHeader), err)
			}
		}
	})
	for _, p := range policies {
		if compacted[p.Name()] == 0 && !testing.Short() { // few are drawn then
			t.Errorf("%s never compacted: %v", p.Name(), compacted)
		}
	}
}
