package gemini_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

func TestAnswers(t *testing.T) {
	wiretest.TestAnswers(t, gemini.Codec{}, wiretest.Corpus(t, wire.Gemini))
}

func source(raw string) thread.Source { return thread.Source{API: wire.Gemini, Raw: raw} }

// The pieces of a text are one part; what is signed, and what was thought, stay
// parts of their own.
func TestStream(t *testing.T) {
	s := gemini.Codec{}.NewStream()
	for _, e := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"Let me","thought":true}]}}],"usageMetadata":{"promptTokenCount":10,"thoughtsTokenCount":3}}`,
		`{"candidates":[{"content":{"parts":[{"text":" see.","thought":true},{"text":"I "}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"look."}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"at":1}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"thoughtsTokenCount":3,"candidatesTokenCount":4,"cachedContentTokenCount":6}}`,
	} {
		if _, err := s.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	a, err := s.Answer()
	if err != nil || a.Stop != wire.StopTool || a.Reason != "STOP" || a.Usage != (wire.Usage{Input: 10, CacheRead: 6, Output: 7, Reasoning: 3, Known: true}) {
		t.Fatalf("%+v, %v", a, err)
	}
	if diff := cmp.Diff([]thread.Part{
		thread.Reasoning{Text: "Let me see.", Source: source(`{"text":"Let me see.","thought":true}`)},
		thread.Text{Text: "I look.", Source: source(`{"text":"I look."}`)},
		thread.ToolCall{ID: thread.LocalID(0), Name: "look", Arguments: `{"at":1}`, Signature: "c2ln", Source: source(`{"functionCall":{"name":"look","args":{"at":1}},"thoughtSignature":"c2ln"}`)},
	}, a.Message.Parts); diff != "" {
		t.Error(diff)
	}
}

func TestStops(t *testing.T) {
	for body, want := range map[string]wire.Stop{
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}]}`:      wire.StopEnd,
		`{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}]}`:                       wire.StopLength,
		`{"candidates":[{"finishReason":"SAFETY"}]}`:                                                      wire.StopFilter,
		`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":10}}`: wire.StopFilter,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`:                                           wire.StopOther,
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`:                                     wire.StopOther,
	} {
		if a, err := (gemini.Codec{}).DecodeAnswer([]byte(body)); err != nil || a.Stop != want || a.Message.Role != thread.Assistant {
			t.Errorf("%s: %+v, %v", body, a, err)
		}
	}
	if _, err := (gemini.Codec{}).DecodeAnswer([]byte(`{"candidates":[{"content":7}]}`)); !errors.Is(err, wire.ErrAnswer) {
		t.Error(err)
	}
	a, err := gemini.Codec{}.DecodeAnswer([]byte(`{"candidates":[{}],"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":5}}`))
	if want := (wire.Usage{Input: 10, Known: true, Mixed: true}); err != nil || a.Usage != want {
		t.Errorf("%+v, %v", a.Usage, err)
	}
}

func FuzzStream(f *testing.F) {
	wiretest.FuzzStream(f, gemini.Codec{},
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`+"\n"+`{"candidates":[{"content":{"parts":[{"text":"b"},{"functionCall":{"name":"x"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"a","thought":true}]}}]}`)
}
