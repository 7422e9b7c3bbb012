package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// compacting is the official SDK in front of a provider that cannot compact and
// that holds responses, by way of a proxy that emulates compaction.
func compacting(t *testing.T, place string) (*openai.Client, *proxytest.Upstream) {
	t.Helper()
	up := proxytest.New(t)
	up.NoCompaction, up.Chains, up.Window = true, true, 30_000
	up.Count = func(p *prompt.Prompt) int { // four bytes for a token
		n := 0
		for i := range p.Messages {
			m := &p.Messages[i]
			n += len(m.Text()) / 4
			if r, ok := m.Result(); ok {
				n += len(r.Text()) / 4
			}
		}
		return n
	}
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		return proxytest.Answer{Text: fmt.Sprintf("Noted, this is answer %d.", q.N)}
	}
	url, client := before(t, place, up, proxy.Options{Emulate: []string{"openai"}, Window: 30_000})
	c := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0), option.WithHTTPClient(client))
	return &c, up
}

// before is the address of a proxy before an upstream, and the client that asks it.
func before(t *testing.T, place string, up *proxytest.Upstream, o proxy.Options) (string, *http.Client) {
	t.Helper()
	o.OpenAI, o.Anthropic = up.URL+"/v1", up.URL
	if place == "transport" {
		p, err := proxy.NewTransport(&o)
		if err != nil {
			t.Fatal(err)
		}
		return up.URL, httpClient(p)
	}
	p, err := proxy.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return front.URL, front.Client()
}

// said is a message of the user's: about 1,500 tokens that begin with a fact.
func said(n int) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(fmt.Sprintf("The number of house %d is H%04d. %s", n, n*37, strings.Repeat("It has a door, a window and a roof. ", 170)), "user")
}

func accepted(t *testing.T, up *proxytest.Upstream) {
	t.Helper()
	for _, q := range up.Requests() {
		if q.Refused != "" || strings.Contains(string(q.Body), "palimpsest.c1.") {
			t.Errorf("request %d: %.300s: %.200s", q.N, q.Refused, q.Body)
		}
	}
}

// TestSDKResponsesCompact: Responses.Compact of the official SDK gives the user's messages
// and one compaction, and its output is the next input.
func TestSDKResponsesCompact(t *testing.T) {
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			c, up := compacting(t, place)
			var input []responses.ResponseInputItemUnionParam
			for n := range 8 {
				input = append(input, said(n), responses.ResponseInputItemParamOfMessage(fmt.Sprintf("House %d is noted.", n), "assistant"))
			}
			res, err := c.Responses.Compact(context.Background(), responses.ResponseCompactParams{
				Model: "gpt-5.2", Instructions: param.NewOpt("Be brief."), Input: responses.ResponseCompactParamsInputUnion{OfResponseInputItemArray: input},
			})
			if err != nil {
				t.Fatal(err)
			}
			if res.Object != "response.compaction" || res.ID == "" || res.CreatedAt == 0 || len(res.Output) != 9 || len(up.Requests()) != 0 {
				t.Fatalf("%s", res.RawJSON())
			}
			if item := res.Output[8].AsCompaction(); item.EncryptedContent == "" || item.ID == "" {
				t.Fatalf("%s", res.Output[8].RawJSON())
			}
			var next []responses.ResponseInputItemUnionParam
			for _, item := range res.Output {
				next = append(next, param.Override[responses.ResponseInputItemUnionParam](rawJSON(item.RawJSON())))
			}
			next = append(next, responses.ResponseInputItemParamOfMessage("What is the number of house 0?", "user"))
			if _, err := c.Responses.New(context.Background(), responses.ResponseNewParams{Model: "gpt-5.2", Store: param.NewOpt(false), Input: responses.ResponseNewParamsInputUnion{OfInputItemList: next}}); err != nil {
				t.Fatal(err)
			}
			accepted(t, up)
			if body := string(up.Requests()[0].Body); strings.Count(body, "The number of house 3 is H0111") != 1 || !strings.Contains(body, "What is the number") {
				t.Errorf("the provider got %.500s", body)
			}
		})
	}
}

// TestSDKResponsesThreshold: a stream of the official SDK with context_management shows
// the compaction as its first item, and accumulates.
func TestSDKResponsesThreshold(t *testing.T) {
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			c, up := compacting(t, place)
			var input []responses.ResponseInputItemUnionParam
			compactions := 0
			for n := range 24 {
				input = append(input, said(n))
				stream := c.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{
					Model: "gpt-5.2", Store: param.NewOpt(false), Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input},
					ContextManagement: []responses.ResponseNewParamsContextManagement{{Type: "compaction", CompactThreshold: param.NewOpt(int64(10_000))}},
				})
				var done responses.Response
				var streamed []string
				for stream.Next() {
					switch e := stream.Current().AsAny().(type) {
					case responses.ResponseOutputItemDoneEvent:
						streamed = append(streamed, e.Item.Type)
					case responses.ResponseCompletedEvent:
						done = e.Response
					}
				}
				if err := stream.Err(); err != nil {
					t.Fatal(err)
				}
				for i, item := range done.Output {
					if item.Type != streamed[i] {
						t.Fatalf("streamed were %v, the answer is %s", streamed, done.RawJSON())
					}
					if item.Type == "compaction" {
						compactions++
						input = nil // what stands before it may go
					}
					input = append(input, param.Override[responses.ResponseInputItemUnionParam](rawJSON(item.RawJSON())))
				}
			}
			accepted(t, up)
			if compactions < 2 {
				t.Errorf("%d compactions", compactions)
			}
		})
	}
}

// TestSDKResponsesPrevious: a conversation of the official SDK that names only the
// response before goes on over the window, and asks for a compaction when it
// likes.
func TestSDKResponsesPrevious(t *testing.T) {
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			c, up := compacting(t, place)
			previous := ""
			for n := range 40 {
				input := []responses.ResponseInputItemUnionParam{said(n)}
				trigger := n == 12
				if trigger {
					item := responses.NewResponseInputItemCompactionTriggerParam()
					input = append(input, responses.ResponseInputItemUnionParam{OfCompactionTrigger: &item})
				}
				q := responses.ResponseNewParams{Model: "gpt-5.2", Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input}}
				if previous != "" {
					q.PreviousResponseID = param.NewOpt(previous)
				}
				res, err := c.Responses.New(context.Background(), q)
				if err != nil {
					t.Fatalf("turn %d: %v", n, err)
				}
				if trigger != (len(res.Output) == 1 && res.Output[0].Type == "compaction") {
					t.Errorf("turn %d: %s", n, res.RawJSON())
				}
				previous = res.ID
			}
			accepted(t, up)
			last := up.Requests()[len(up.Requests())-1]
			if !strings.Contains(string(last.Body), "The number of house 39") || strings.Contains(string(last.Body), "previous_response_id") {
				t.Errorf("the provider got %.300s", last.Body)
			}
		})
	}
}

func httpClient(t http.RoundTripper) *http.Client { return &http.Client{Transport: t} }

func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }
