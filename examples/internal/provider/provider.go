// Package provider stands in for the providers in the examples: it speaks Chat
// Completions and Anthropic's Messages, with a scripted model behind a small window.
package provider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Serve starts a provider whose model is the script.
func Serve(script *adaptertest.Script) *httptest.Server {
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
