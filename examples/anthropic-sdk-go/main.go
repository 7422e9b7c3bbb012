// The program is an agent over github.com/anthropics/anthropic-sdk-go whose requests go
// through Palimpsest in the same process. It reads files of the folder that it is started in:
//
//	ANTHROPIC_API_KEY=… go run . "Compare what go.mod and go.sum say."
//
// ANTHROPIC_BASE_URL names another server, MODEL another model.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/palimpsest-ai/palimpsest/proxy"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal(`usage: go run . "what the agent is to do"`)
	}
	t, err := proxy.NewTransport(&proxy.Options{}) // the window is that of the model
	if err != nil {
		log.Fatal(err)
	}
	client := newClient(t)
	answer, err := agent(context.Background(), &client, newRequest(os.Args[1]), readFile)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	log.Printf("%d requests, %d compactions", t.Totals().Requests, t.Totals().Compactions)
}

// newClient takes key and server from the environment, as the SDK does.
func newClient(over http.RoundTripper) anthropic.Client {
	return anthropic.NewClient(option.WithHTTPClient(&http.Client{Transport: over}))
}

func newRequest(task string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: cmp.Or(os.Getenv("MODEL"), anthropic.ModelClaudeHaiku4_5), MaxTokens: 8_000,
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "read_file", Description: anthropic.String("Reads a file of the current folder, or of one below it."),
			InputSchema: anthropic.ToolInputSchemaParam{
				Properties: map[string]any{"path": map[string]any{"type": "string"}}, Required: []string{"path"},
			},
		}}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(task))},
	}
}

// agent is an agent loop with one tool: nothing in it knows of Palimpsest. It returns the answer.
func agent(ctx context.Context, client *anthropic.Client, request anthropic.MessageNewParams, tool func(input string) (string, error)) (string, error) {
	for {
		said, err := client.Messages.New(ctx, request)
		if err != nil {
			return "", err
		}
		request.Messages = append(request.Messages, said.ToParam())
		answer, results := "", []anthropic.ContentBlockParamUnion(nil)
		for _, block := range said.Content {
			answer += block.Text
			if block.Type == "tool_use" {
				out, err := tool(string(block.Input))
				if err != nil {
					out = err.Error()
				}
				results = append(results, anthropic.NewToolResultBlock(block.ID, out, err != nil))
			}
		}
		if len(results) == 0 {
			return answer, nil
		}
		request.Messages = append(request.Messages, anthropic.NewUserMessage(results...))
	}
}

func readFile(input string) (string, error) {
	var in struct{ Path string }
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		return "", err
	}
	f, err := os.OpenInRoot(".", in.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}
