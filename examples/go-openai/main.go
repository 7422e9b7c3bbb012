// The program is an agent over github.com/sashabaranov/go-openai whose requests go
// through Palimpsest in the same process.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"

	"github.com/sashabaranov/go-openai"

	"github.com/palimpsest-ai/palimpsest/examples/internal/provider"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

func main() {
	for _, with := range []bool{false, true} {
		report, err := run(context.Background(), with)
		fmt.Printf("with Palimpsest: %v\n  %v\n", with, report)
		if err != nil {
			fmt.Println(" ", err)
		}
	}
}

func run(ctx context.Context, with bool) (adaptertest.Report, error) {
	model := &adaptertest.Script{Window: adaptertest.Window}
	server := provider.Serve(model)
	defer server.Close()

	over := &http.Client{}
	if with {
		t, err := proxy.NewTransport(&proxy.Options{Window: adaptertest.Window})
		if err != nil {
			log.Fatal(err)
		}
		over.Transport = t
	}
	config := openai.DefaultConfig("none")
	config.BaseURL, config.HTTPClient = server.URL+"/v1", over
	err := agent(ctx, openai.NewClientWithConfig(config))
	return model.Report(), err
}

// agent is an agent loop: nothing in it knows of Palimpsest.
func agent(ctx context.Context, client *openai.Client) error {
	request := openai.ChatCompletionRequest{
		Model: "scripted", MaxTokens: adaptertest.Output,
		Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: adaptertest.ReadPart, Description: adaptertest.ReadPartSays, Parameters: json.RawMessage(adaptertest.ReadPartTakes),
		}}},
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: "You read reports."},
			{Role: openai.ChatMessageRoleUser, Content: adaptertest.Task},
		},
	}
	for {
		resp, err := client.CreateChatCompletion(ctx, request)
		if err != nil {
			return err
		}
		said := resp.Choices[0].Message
		if len(said.ToolCalls) == 0 {
			return nil
		}
		request.Messages = append(request.Messages, said)
		for _, call := range said.ToolCalls {
			var in struct{ N int }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &in); err != nil {
				return err
			}
			request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: call.ID, Content: adaptertest.Part(in.N)})
		}
	}
}
