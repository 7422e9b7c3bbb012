package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/toolrunner"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

const parts = 30

// emulated is a client of the Anthropic SDK behind a proxy that emulates native
// compaction for an upstream that knows nothing of it. Its model reads one part
// after the other.
func emulated(t *testing.T) (anthropic.Client, *proxytest.Upstream) {
	counter, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	up := proxytest.New(t)
	up.NoCompaction = true
	up.Count = func(p *prompt.Prompt) int { return counter.Prompt(p) }
	next := 0
	up.Model = func(*proxytest.Request) proxytest.Answer {
		if next == parts {
			return proxytest.Answer{Text: "All parts are read."}
		}
		next++
		return proxytest.Answer{Text: "On it.", Calls: []thread.ToolCall{{ID: fmt.Sprint("toolu_", next), Name: "read_part", Arguments: fmt.Sprintf(`{"number":%d}`, next)}}}
	}
	p, err := proxy.New(&proxy.Options{Anthropic: up.URL, Emulate: []string{"anthropic"}, Window: 400_000})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return anthropic.NewClient(anthropicoption.WithBaseURL(front.URL), anthropicoption.WithAPIKey("key"), anthropicoption.WithHTTPClient(front.Client())), up
}

// readPart is the tool of the task: some 3,000 tokens with a code in them.
func readPart(t *testing.T) []anthropic.BetaTool {
	t.Helper()
	type number struct {
		Number int `json:"number" jsonschema:"required"`
	}
	tool, err := toolrunner.NewBetaToolFromJSONSchema("read_part", "Reads a part.", func(_ context.Context, n number) (anthropic.BetaToolResultBlockParamContentUnion, error) {
		line := fmt.Sprintf("part %d, the pump is off and the valve stays shut until the pressure falls\n", n.Number)
		return anthropic.BetaToolResultBlockParamContentUnion{OfText: &anthropic.BetaTextBlockParam{
			Text: strings.Repeat(line, 80) + fmt.Sprintf("the code of part %d is K%05d\n", n.Number, n.Number*7919%100000) + strings.Repeat(line, 80),
		}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return []anthropic.BetaTool{tool}
}

func task(betas ...anthropic.AnthropicBeta) anthropic.BetaToolRunnerParams {
	return anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 2048, Betas: betas,
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Read all parts in order. Never change a file."))},
	}}
}

// ended checks what came of the task at the upstream.
func ended(t *testing.T, up *proxytest.Upstream, last *anthropic.BetaMessage, most int) {
	t.Helper()
	if last == nil || last.Content[len(last.Content)-1].Text != "All parts are read." {
		t.Errorf("the last message: %+v", last)
	}
	requests := up.Requests()
	for _, q := range requests {
		if q.Refused != "" || q.Tokens > most {
			t.Errorf("request %d: %d tokens, %s", q.N, q.Tokens, q.Refused)
		}
	}
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "Never change a file.") || strings.Contains(body, native.Prefix) {
		t.Errorf("the last request: %.3000s", body)
	}
}

// TestSDKThreshold: the SDK's tool runner goes through compactions by threshold,
// with pauses and without, and reads the blocks, the edits and the usage.
func TestSDKThreshold(t *testing.T) {
	for _, pause := range []bool{false, true} {
		t.Run(fmt.Sprint("pause ", pause), func(t *testing.T) {
			client, up := emulated(t)
			params := task(anthropic.AnthropicBetaCompact2026_01_12)
			params.ContextManagement = anthropic.BetaContextManagementConfigParam{Edits: []anthropic.BetaContextManagementConfigEditUnionParam{{
				OfCompact20260112: &anthropic.BetaCompact20260112EditParam{
					Trigger: anthropic.BetaInputTokensTriggerParam{Value: 50_000}, PauseAfterCompaction: param.NewOpt(pause),
				},
			}}}
			runner := client.Beta.Messages.NewToolRunner(readPart(t), params)
			compactions := 0
			var last *anthropic.BetaMessage
			for m, err := range runner.All(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				last = m
				iterations := m.Usage.Iterations
				if m.Content[0].Type != "compaction" {
					if len(iterations) != 1 || iterations[0].InputTokens != m.Usage.InputTokens {
						t.Errorf("usage: %s", m.Usage.RawJSON())
					}
					continue
				}
				compactions++
				block := m.Content[0].AsCompaction()
				if !native.IsToken(block.EncryptedContent) || block.Content == "" || block.JSON.Signature.Valid() || iterations[0].Type != "compaction" {
					t.Errorf("the block: %s, usage %s", block.RawJSON(), m.Usage.RawJSON())
				}
				if paused := m.StopReason == anthropic.BetaStopReasonCompaction; paused != pause || paused && len(m.Content) > 1 {
					t.Errorf("stopped for %s with %d blocks", m.StopReason, len(m.Content))
				}
			}
			if compactions < 1 {
				t.Error("nothing was compacted")
			}
			ended(t, up, last, 50_000)
		})
	}
}

// TestSDKStream: the same in a stream, as the SDK puts it together, with old
// results cleared as well.
func TestSDKStream(t *testing.T) {
	client, up := emulated(t)
	params := task(anthropic.AnthropicBetaCompact2026_01_12, anthropic.AnthropicBetaContextManagement2025_06_27)
	params.ContextManagement = anthropic.BetaContextManagementConfigParam{Edits: []anthropic.BetaContextManagementConfigEditUnionParam{
		{OfClearToolUses20250919: &anthropic.BetaClearToolUses20250919EditParam{
			Trigger: anthropic.BetaClearToolUses20250919EditTriggerUnionParam{OfInputTokens: &anthropic.BetaInputTokensTriggerParam{Value: 40_000}},
			Keep:    anthropic.BetaToolUsesKeepParam{Value: 12},
		}},
		{OfCompact20260112: &anthropic.BetaCompact20260112EditParam{Trigger: anthropic.BetaInputTokensTriggerParam{Value: 50_000}}},
	}}
	runner := client.Beta.Messages.NewToolRunnerStreaming(readPart(t), params)
	cleared := int64(0)
	for events, err := range runner.AllStreaming(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == "message_delta" {
				for _, done := range e.ContextManagement.AppliedEdits {
					cleared = max(cleared, done.ClearedToolUses)
				}
			}
		}
	}
	if cleared < 10 {
		t.Errorf("%d uses of tools were cleared", cleared)
	}
	ended(t, up, runner.LastMessage(), 50_000)
}

// TestSDKOnDemand: the runner asks for a summary every few turns, whole and in a
// stream; it takes the place of the history, and the next one goes on from it.
func TestSDKOnDemand(t *testing.T) {
	t.Run("whole", func(t *testing.T) {
		client, up := emulated(t)
		runner := client.Beta.Messages.NewToolRunner(readPart(t), task(anthropic.AnthropicBetaCompact2026_09_04))
		turns := 0
		for m, err := range runner.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if turns++; turns%8 == 0 && m.StopReason == anthropic.BetaStopReasonToolUse {
				runner.CompactBeforeNextTurn(anthropic.BetaCompactionConfigUnionParam{})
			}
		}
		ended(t, up, runner.LastMessage(), 40_000)
	})
	t.Run("stream", func(t *testing.T) {
		client, up := emulated(t)
		runner := client.Beta.Messages.NewToolRunnerStreaming(readPart(t), task(anthropic.AnthropicBetaCompact2026_09_04))
		turns := 0
		for events, err := range runner.AllStreaming(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range events {
				if err != nil {
					t.Fatal(err)
				}
			}
			if turns++; turns%8 == 0 {
				runner.CompactBeforeNextTurn(anthropic.BetaCompactionConfigUnionParam{OfSummarize: &anthropic.BetaSummarizeCompactionParam{Instructions: param.NewOpt("Keep the codes.")}})
			}
		}
		ended(t, up, runner.LastMessage(), 40_000)
	})
}

// TestSDKRefusal: the SDK reads the code of a refusal.
func TestSDKRefusal(t *testing.T) {
	client, up := emulated(t)
	_, err := client.Beta.Messages.New(t.Context(), anthropic.BetaMessageNewParams{
		Model: "m", MaxTokens: 99, Betas: []anthropic.AnthropicBeta{anthropic.AnthropicBetaCompact2026_09_04},
		Messages: []anthropic.BetaMessageParam{
			{Role: anthropic.BetaMessageParamRoleAssistant, Content: []anthropic.BetaContentBlockParamUnion{{OfCompaction: &anthropic.BetaCompactionBlockParam{Content: param.NewOpt("so far"), Signature: param.NewOpt("made up")}}}},
			anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Go on.")),
		},
	})
	var refused *anthropic.Error
	if !errors.As(err, &refused) || refused.StatusCode != 400 || gjson.Get(refused.RawJSON(), "error.details.error_code").Str != "compaction_signature_invalid" || len(up.Requests()) != 0 {
		t.Errorf("%v", err)
	}
}
