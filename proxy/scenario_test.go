package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/internal/test/scenario"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestScenarios runs the scenarios with an agent that sends its whole history each time. The rows that they show
// stand in their files.
func TestScenarios(t *testing.T) {
	scenario.Run(t, "../testdata/scenarios", "proxy", func(t *testing.T, s *scenario.Setting) func(scenario.Step) []byte {
		up := proxytest.New(t)
		url, _ := start(t, up, proxy.Options{Config: s.Config, Window: s.Window})
		return func(step scenario.Step) []byte {
			answer := proxytest.Answer{Text: "ok"}
			if step.Answer != nil {
				answer = proxytest.Answer{Text: step.Answer.Text(), Calls: step.Answer.Calls()}
			}
			up.Model = func(*proxytest.Request) proxytest.Answer { return answer }
			asked := *s.Base
			asked.Messages = step.All
			body, err := openai.Chat{}.Encode(&asked)
			if err != nil {
				t.Fatal(err)
			}
			got, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			if said, err := io.ReadAll(got.Body); err != nil || got.StatusCode != http.StatusOK {
				t.Fatalf("%s: %.500s, %v", got.Status, said, err)
			}
			sent := up.Requests()
			return sent[len(sent)-1].Body
		}
	})
}
