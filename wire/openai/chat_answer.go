package openai

import (
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// DecodeAnswer reads the first choice of a chat completion; see wire.Answers.
func (Chat) DecodeAnswer(body []byte) (wire.Answer, error) {
	v, err := codec.ParseAnswer(body)
	if err != nil {
		return wire.Answer{}, err
	}
	choice := v.Get("choices.0")
	message := choice.Get("message")
	if !message.IsObject() {
		return wire.Answer{}, codec.NoAnswer("it has no message")
	}
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Reason: choice.Get("finish_reason").Str, Usage: usageOf(v.Get("usage"))}
	raw := message.Raw
	if message.Get("role").Str != string(thread.Assistant) { // some servers leave it out or send another
		raw = jsonedit.Set(raw, "role", `"assistant"`)
	}
	err = chatReadMessage(&a, raw)
	return a, err
}

// chatReadMessage reads the message of an answer, and with it why the model stopped.
func chatReadMessage(a *wire.Answer, message string) (err error) {
	if a.Message, err = oneMessage(DecodeChatMessages("[" + message + "]")); err == nil {
		a.Stop = stopOf(a, gjson.Get(message, "refusal").Str != "")
	}
	return err
}
