package e2e

import (
	"fmt"
	"strings"
	"testing"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy"
)

// TestSDKThread: a message thread of the official SDK, which knows the field by its JSON
// alone, goes on over the window: each request holds what is new.
func TestSDKThread(t *testing.T) {
	for _, place := range places {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", place, stream), func(t *testing.T) {
				_, up := compacting(t, place)
				url, client := before(t, place, up, proxy.Options{Window: 30_000})
				c := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("k"), anthropicoption.WithMaxRetries(0), anthropicoption.WithHTTPClient(client),
					anthropicoption.WithHeaderAdd("anthropic-beta", "message-threads-2026-08-12"))
				thread := map[string]any{"type": "create"}
				for n := range 40 {
					q := anthropic.MessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 1000, Messages: []anthropic.MessageParam{
						anthropic.NewUserMessage(anthropic.NewTextBlock(fmt.Sprintf("The number of house %d is H%04d. %s", n, n*37, strings.Repeat("It has a door, a window and a roof. ", 170)))),
					}}
					if n == 0 {
						q.System = []anthropic.TextBlockParam{{Text: "You know houses."}}
					}
					in := anthropicoption.WithJSONSet("thread", thread)
					var message anthropic.Message
					if stream {
						events := c.Messages.NewStreaming(t.Context(), q, in)
						for events.Next() {
							if err := message.Accumulate(events.Current()); err != nil {
								t.Fatal(err)
							}
						}
						if err := events.Err(); err != nil {
							t.Fatalf("turn %d: %v", n, err)
						}
					} else {
						answered, err := c.Messages.New(t.Context(), q, in)
						if err != nil {
							t.Fatalf("turn %d: %v", n, err)
						}
						message = *answered
					}
					thread = map[string]any{"type": "continue", "previous_message_id": message.ID}
				}
				accepted(t, up)
				last := up.Requests()[len(up.Requests())-1]
				if body := string(last.Body); !strings.Contains(body, "The number of house 39") || !strings.Contains(body, "You know houses.") || gjson.Get(body, "thread").Exists() {
					t.Errorf("the provider got %.300s", body)
				}
			})
		}
	}
}

// TestSDKConversation: a conversation of the official SDK goes on over the window, and
// lists all that was said in it.
func TestSDKConversation(t *testing.T) {
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			_, up := compacting(t, place)
			url, client := before(t, place, up, proxy.Options{Window: 30_000})
			c := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0), option.WithHTTPClient(client))
			made, err := c.Conversations.New(t.Context(), conversations.ConversationNewParams{Items: []responses.ResponseInputItemUnionParam{said(0)}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Conversations.Items.New(t.Context(), made.ID, conversations.ItemNewParams{Items: []responses.ResponseInputItemUnionParam{said(1)}}); err != nil {
				t.Fatal(err)
			}
			for n := 2; n < 40; n++ {
				q := responses.ResponseNewParams{Model: "gpt-5.2", Input: responses.ResponseNewParamsInputUnion{OfInputItemList: []responses.ResponseInputItemUnionParam{said(n)}}}
				if q.Conversation.OfString = param.NewOpt(made.ID); n%2 == 0 {
					q.Conversation = responses.ResponseNewParamsConversationUnion{OfConversationObject: &responses.ResponseConversationParam{ID: made.ID}}
				}
				if _, err := c.Responses.New(t.Context(), q); err != nil {
					t.Fatalf("turn %d: %v", n, err)
				}
			}
			accepted(t, up)
			listed, err := c.Conversations.Items.List(t.Context(), made.ID, conversations.ItemListParams{})
			if err != nil {
				t.Fatal(err)
			}
			for n := range 40 {
				if got := strings.Count(listed.RawJSON(), fmt.Sprintf("The number of house %d is", n)); got != 1 {
					t.Errorf("house %d is listed %d times", n, got)
				}
			}
			whole := 0
			for _, q := range up.Requests() {
				if q.Path == "/v1/responses" && !gjson.GetBytes(q.Body, "conversation").Exists() {
					whole++
				}
			}
			if whole < 5 {
				t.Errorf("%d requests held the conversation themselves", whole)
			}
		})
	}
}
