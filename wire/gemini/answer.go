package gemini

import (
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

var _ wire.Answers = Codec{}

// DecodeAnswer reads the first candidate of a generateContent response; see
// wire.Answers.
func (Codec) DecodeAnswer(body []byte) (wire.Answer, error) {
	v, err := codec.ParseAnswer(body)
	if err != nil {
		return wire.Answer{}, err
	}
	s := &stream{}
	s.chunk(v)
	switch content := v.Get("candidates.0.content"); {
	case content.Type != gjson.Null && !content.IsObject():
		return wire.Answer{}, codec.NoAnswer("its content is no object")
	case content.Get("role").Str == "model":
		s.content = content.Raw // later requests send these bytes
	}
	a, err := s.Answer()
	if err == nil {
		a.Stop = cmp.Or(a.Stop, wire.StopOther)
	}
	return a, err
}
