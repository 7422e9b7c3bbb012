// The program is an agent over github.com/sashabaranov/go-openai whose requests go
// through Palimpsest in the same process. It reads files of the folder that it is started in:
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

	"github.com/sashabaranov/go-openai"

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
	answer, err := agent(context.Background(), newClient(t), newRequest(os.Args[1]), readFile)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	log.Printf("%d requests, %d compactions", t.Totals().Requests, t.Totals().Compactions)
}

// newClient takes key and server from the environment, which the SDK does not.
func newClient(over http.RoundTripper) *openai.Client {
	config := openai.DefaultConfig(os.Getenv("OPENAI_API_KEY"))
	config.BaseURL = cmp.Or(os.Getenv("OPENAI_BASE_URL"), config.BaseURL)
	config.HTTPClient = &http.Client{Transport: over}
	return openai.NewClientWithConfig(config)
}

func newRequest(task string) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{
		Model: cmp.Or(os.Getenv("MODEL"), "gpt-5.4-mini"),
		Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: "read_file", Description: "Reads a file of the current folder, or of one below it.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		}}},
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: task}},
	}
}

// agent is an agent loop with one tool: nothing in it knows of Palimpsest. It returns the answer.
func agent(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest, tool func(input string) (string, error)) (string, error) {
	for {
		resp, err := client.CreateChatCompletion(ctx, request)
		if err != nil {
			return "", err
		}
		said := resp.Choices[0].Message
		if len(said.ToolCalls) == 0 {
			return said.Content, nil
		}
		request.Messages = append(request.Messages, said)
		for _, call := range said.ToolCalls {
			out, err := tool(call.Function.Arguments)
			if err != nil {
				out = "error: " + err.Error()
			}
			request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: call.ID, Content: out})
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
