// The program is an agent over github.com/openai/openai-go whose requests go through
// Palimpsest in the same process. It reads files of the folder that it is started in:
//
//	OPENAI_API_KEY=… go run . "Compare what go.mod and go.sum say."
//
// OPENAI_BASE_URL names another server, with its /v1, MODEL another model.
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

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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
func newClient(over http.RoundTripper) openai.Client {
	return openai.NewClient(option.WithHTTPClient(&http.Client{Transport: over}))
}

func newRequest(task string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: cmp.Or(os.Getenv("MODEL"), openai.ChatModelGPT5_4Mini),
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "read_file", Description: openai.String("Reads a file of the current folder, or of one below it."),
			Parameters: map[string]any{
				"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"},
			},
		})},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(task)},
	}
}

// agent is an agent loop with one tool: nothing in it knows of Palimpsest. It returns the answer.
func agent(ctx context.Context, client *openai.Client, request openai.ChatCompletionNewParams, tool func(input string) (string, error)) (string, error) {
	for {
		resp, err := client.Chat.Completions.New(ctx, request)
		if err != nil {
			return "", err
		}
		said := resp.Choices[0].Message
		if len(said.ToolCalls) == 0 {
			return said.Content, nil
		}
		request.Messages = append(request.Messages, said.ToParam())
		for _, call := range said.ToolCalls {
			out, err := tool(call.Function.Arguments)
			if err != nil {
				out = "error: " + err.Error()
			}
			request.Messages = append(request.Messages, openai.ToolMessage(out, call.ID))
		}
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
