// Package provider stands in for the providers in the tests of the examples: it speaks
// Chat Completions and Anthropic's Messages, with a scripted model behind a small window.
package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestTask has an agent do the task of adaptertest, with Palimpsest and without it, which
// overflows. The agent asks the server of that URL over that transport, and tells what it
// answers.
func TestTask(t *testing.T, agent func(t *testing.T, url string, over http.RoundTripper) (string, error)) {
	run := func(over http.RoundTripper) (adaptertest.Report, string, error) {
		script := &adaptertest.Script{Window: adaptertest.Window}
		server := serve(script)
		defer server.Close()
		answer, err := agent(t, server.URL, over)
		return script.Report(), answer, err
	}
	if report, _, err := run(http.DefaultTransport); err == nil {
		t.Errorf("without Palimpsest the window does not overflow: %v", report)
	}
	over, err := proxy.NewTransport(&proxy.Options{Window: adaptertest.Window})
	if err != nil {
		t.Fatal(err)
	}
	report, answer, err := run(over)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Found() || report.Refused > 0 || report.Lookups == 0 || answer != report.Told {
		t.Errorf("%v; the agent says: %s", report, answer)
	}
}

// ReadPart is the tool of the task.
func ReadPart(input string) (string, error) {
	var in struct{ N int }
	err := json.Unmarshal([]byte(input), &in)
	return adaptertest.Part(in.N), err
}

func serve(script *adaptertest.Script) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := answer(script, r)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			body = fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%s}}`, strconv.Quote(err.Error()))
		}
		_, _ = io.WriteString(w, body) // the client has gone
	}))
}

func answer(script *adaptertest.Script, r *http.Request) (string, error) {
	var codec wire.Codec = openai.Chat{}
	if strings.HasSuffix(r.URL.Path, "/messages") {
		codec = anthropic.Codec{}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	var problems []error
	for _, p := range codec.Validate(body) {
		if !p.Advice {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return "", errors.Join(problems...)
	}
	asked, err := codec.Decode(string(body))
	if err != nil {
		return "", err
	}
	var tools []string
	for _, t := range asked.Tools {
		tools = append(tools, t.Name)
	}
	said, usage, err := script.Answer(asked.Messages, tools)
	if err != nil {
		return "", err
	}
	out := wiretest.ModelAnswer{Serial: strconv.Itoa(script.Report().Requests), Model: asked.Model, Text: said.Text(), Calls: said.Calls(), Stop: wire.StopEnd, Usage: usage}
	if len(out.Calls) > 0 {
		out.Stop = wire.StopTool
	}
	return wiretest.Body(codec.API(), &out), nil
}
