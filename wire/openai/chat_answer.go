package openai

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// DecodeAnswer reads a chat completion in one piece, its first choice; see
// wire.Answers.
func (Chat) DecodeAnswer(body []byte) (wire.Answer, error) {
	v, err := answerBody(body)
	if err != nil {
		return wire.Answer{}, err
	}
	choice := v.Get("choices.0")
	message := choice.Get("message")
	if !message.IsObject() {
		return wire.Answer{}, fmt.Errorf("%w: it has no message", wire.ErrAnswer)
	}
	a := wire.Answer{ID: v.Get("id").Str, Model: v.Get("model").Str, Reason: choice.Get("finish_reason").Str, Usage: usageOf(v.Get("usage"))}
	raw := message.Raw
	if message.Get("role").Str != string(thread.Assistant) {
		raw = chatWithRole(message) // some servers leave it out or send another
	}
	err = chatAnswered(&a, raw)
	return a, err
}

// chatAnswered reads the message of an answer, and with it why the model stopped.
func chatAnswered(a *wire.Answer, message string) (err error) {
	if a.Message, err = oneMessage(DecodeChatMessages("[" + message + "]")); err != nil {
		return err
	}
	a.Stop = stopped(a, gjson.Get(message, "refusal").Str != "")
	return nil
}

func chatWithRole(message gjson.Result) string {
	d, _ := rawjson.Open(message.Raw, nil)
	d.Set("role", `"assistant"`)
	return string(d.Bytes())
}
