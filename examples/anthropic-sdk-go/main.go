// The program is an agent over github.com/anthropics/anthropic-sdk-go whose requests go
// through Palimpsest in the same process.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

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
	client := anthropic.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithHTTPClient(over))
	err := agent(ctx, &client)
	return model.Report(), err
}

// agent is an agent loop: nothing in it knows of Palimpsest.
func agent(ctx context.Context, client *anthropic.Client) error {
	var takes struct {
		Properties any
		Required   []string
	}
	if err := json.Unmarshal([]byte(adaptertest.ReadPartTakes), &takes); err != nil {
		return err
	}
	request := anthropic.MessageNewParams{
		Model: "scripted", MaxTokens: adaptertest.Output,
		System: []anthropic.TextBlockParam{{Text: "You read reports."}},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: adaptertest.ReadPart, Description: anthropic.String(adaptertest.ReadPartSays),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: takes.Properties, Required: takes.Required},
		}}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(adaptertest.Task))},
	}
	for {
		said, err := client.Messages.New(ctx, request)
		if err != nil {
			return err
		}
		request.Messages = append(request.Messages, said.ToParam())
		var results []anthropic.ContentBlockParamUnion
		for _, block := range said.Content {
			if block.Type != "tool_use" {
				continue
			}
			var in struct{ N int }
			if err := json.Unmarshal(block.Input, &in); err != nil {
				return err
			}
			results = append(results, anthropic.NewToolResultBlock(block.ID, adaptertest.Part(in.N), false))
		}
		if len(results) == 0 {
			return nil
		}
		request.Messages = append(request.Messages, anthropic.NewUserMessage(results...))
	}
}
