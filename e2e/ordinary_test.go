package e2e

import (
	"context"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// ordinary is an agent as anybody writes one with an SDK: it keeps its whole
// history, sends it whole with each request, and knows no other tools than its
// own.
type ordinary struct {
	history history
	client  client
	world   *world
	stream  bool
	used    wire.Usage // of all answers
	again   int        // requests that were made again because the answer broke off
}

// history is a conversation in an SDK's types.
type history interface {
	// user and result add what the model is told next; results that follow each
	// other answer one turn.
	user(text string)
	result(call, text string)
	// ask sends everything and adds the answer.
	ask(ctx context.Context, stream bool) (answered, error)
	// params is the next request.
	params() any
}

func newOrdinary(c client, stream bool) *ordinary {
	a := &ordinary{client: c, world: &world{}, stream: stream}
	around := c.around(taskTools)
	switch c := c.(type) {
	case *messagesClient:
		a.history = &messagesHistory{client: c, next: around.(anthropic.MessageNewParams)}
	case *chatClient:
		a.history = &chatHistory{client: c, next: around.(openai.ChatCompletionNewParams)}
	case *responsesClient:
		a.history = &responsesHistory{client: c, next: around.(responses.ResponseNewParams)}
	}
	return a
}

// run works on the task to its end, and returns the model's last words.
func (a *ordinary) run(ctx context.Context) (report string, err error) {
	a.history.user(taskText())
	for notes := 0; ; {
		answer, err := a.ask(ctx)
		if err != nil {
			return "", err
		}
		a.used.Input += answer.usage.Input
		a.used.Output += answer.usage.Output
		calls := 0
		report = ""
		for _, m := range answer.messages {
			report += m.Text()
			for _, c := range m.Calls() {
				calls++
				done := a.world.run(c)
				r, _ := done.Result()
				a.history.result(c.ID, r.Text())
			}
		}
		switch {
		case calls > 0:
		case notes < len(customers) && len(a.world.locked) < len(services):
			a.history.user(note(notes))
			notes++
		default:
			return report, nil
		}
	}
}

// ask asks again where an answer broke off, which the SDKs leave to the agent.
func (a *ordinary) ask(ctx context.Context) (answered, error) {
	for again := 0; ; again++ {
		answer, err := a.history.ask(ctx, a.stream)
		if err == nil {
			return answer, nil
		}
		if status, _ := a.client.refusal(err); status >= 400 || again == 3 {
			return answered{}, fmt.Errorf("after %d locks: %w", len(a.world.locked), err)
		}
		a.again++
	}
}

type messagesHistory struct {
	client *messagesClient
	next   anthropic.MessageNewParams
	mark   *anthropic.CacheControlEphemeralParam // of the block that is marked
}

func (h *messagesHistory) user(text string) {
	h.next.Messages = append(h.next.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(text)))
}

func (h *messagesHistory) result(call, text string) {
	block := anthropic.NewToolResultBlock(call, text, false)
	if last := &h.next.Messages[len(h.next.Messages)-1]; last.Role == anthropic.MessageParamRoleUser {
		last.Content = append(last.Content, block)
		return
	}
	h.next.Messages = append(h.next.Messages, anthropic.NewUserMessage(block))
}

// ask moves the cache mark to the last block, as agents do.
func (h *messagesHistory) ask(ctx context.Context, stream bool) (answered, error) {
	if h.mark != nil {
		*h.mark = anthropic.CacheControlEphemeralParam{}
	}
	last := h.next.Messages[len(h.next.Messages)-1].Content
	h.mark = last[len(last)-1].GetCacheControl()
	*h.mark = anthropic.NewCacheControlEphemeralParam()
	m, err := h.client.message(ctx, h.next, stream)
	if err != nil {
		return answered{}, err
	}
	h.next.Messages = append(h.next.Messages, m.ToParam())
	return readMessage(m)
}

func (h *messagesHistory) params() any { return h.next }

type chatHistory struct {
	client *chatClient
	next   openai.ChatCompletionNewParams
}

func (h *chatHistory) user(text string) {
	h.next.Messages = append(h.next.Messages, openai.UserMessage(text))
}

func (h *chatHistory) result(call, text string) {
	h.next.Messages = append(h.next.Messages, openai.ToolMessage(text, call))
}

func (h *chatHistory) ask(ctx context.Context, stream bool) (answered, error) {
	whole, err := h.client.completion(ctx, h.next, stream)
	if err != nil {
		return answered{}, err
	}
	answer, err := readCompletion(whole)
	if err == nil {
		h.next.Messages = append(h.next.Messages, whole.Choices[0].Message.ToParam())
	}
	return answer, err
}

func (h *chatHistory) params() any { return h.next }

type responsesHistory struct {
	client *responsesClient
	next   responses.ResponseNewParams
}

func (h *responsesHistory) add(item responses.ResponseInputItemUnionParam) {
	h.next.Input.OfInputItemList = append(h.next.Input.OfInputItemList, item)
}

func (h *responsesHistory) user(text string) {
	h.add(responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser))
}

func (h *responsesHistory) result(call, text string) {
	item := responses.ResponseInputItemParamOfFunctionCallOutput(text)
	item.OfFunctionCallOutput.CallID = openai.String(call)
	h.add(item)
}

func (h *responsesHistory) ask(ctx context.Context, stream bool) (answered, error) {
	whole, err := h.client.response(ctx, h.next, stream)
	if err != nil {
		return answered{}, err
	}
	for _, item := range whole.Output {
		switch item := item.AsAny().(type) {
		case responses.ResponseOutputMessage:
			p := item.ToParam()
			h.add(responses.ResponseInputItemUnionParam{OfOutputMessage: &p})
		case responses.ResponseFunctionToolCall:
			p := item.ToParam()
			h.add(responses.ResponseInputItemUnionParam{OfFunctionCall: &p})
		case responses.ResponseReasoningItem:
			p := item.ToParam()
			h.add(responses.ResponseInputItemUnionParam{OfReasoning: &p})
		default:
			return answered{}, fmt.Errorf("an item of the type %T", item)
		}
	}
	return readResponse(whole)
}

func (h *responsesHistory) params() any { return h.next }
