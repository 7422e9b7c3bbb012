package anthropic

import "github.com/palimpsest-ai/palimpsest/wire"

func (Codec) Validate(body []byte) []wire.Problem {
	if err := checkJSON(string(body)); err != nil {
		return []wire.Problem{{Rule: "json", Message: err.Error()}}
	}
	if !validObject(string(body)) {
		return []wire.Problem{{Rule: "json", Message: "not an object"}}
	}
	return nil
}
