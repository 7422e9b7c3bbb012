// The program is an agent over github.com/openai/openai-go whose requests go through
// Palimpsest in the same process.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithHTTPClient(over))
	err := agent(ctx, &client)
	return model.Report(), err
}

// agent is an agent loop: nothing in it knows of Palimpsest.
func agent(ctx context.Context, client *openai.Client) error {
	var takes map[string]any
	if err := json.Unmarshal([]byte(adaptertest.ReadPartTakes), &takes); err != nil {
		return err
	}
	request := openai.ChatCompletionNewParams{
		Model: "scripted", MaxCompletionTokens: openai.Int(adaptertest.Output),
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: adaptertest.ReadPart, Description: openai.String(adaptertest.ReadPartSays), Parameters: takes,
		})},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You read reports."), openai.UserMessage(adaptertest.Task)},
	}
	for {
		resp, err := client.Chat.Completions.New(ctx, request)
		if err != nil {
			return err
		}
		said := resp.Choices[0].Message
		if len(said.ToolCalls) == 0 {
			return nil
		}
		request.Messages = append(request.Messages, said.ToParam())
		for _, call := range said.ToolCalls {
			var in struct{ N int }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &in); err != nil {
				return err
			}
			request.Messages = append(request.Messages, openai.ToolMessage(adaptertest.Part(in.N), call.ID))
		}
	}
}
