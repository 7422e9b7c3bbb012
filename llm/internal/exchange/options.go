package exchange

import (
	"errors"
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// CheckOptions checks the temperature and the schema before anything is sent. The error about a
// schema is an *llm.APIError of kind ErrInvalid.
func CheckOptions(provider string, o *llm.Options) error {
	if t := o.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		return errors.New("the temperature is not a number")
	}
	s := o.Schema
	if s == nil {
		return nil
	}
	invalid := func(message string) error {
		return &llm.APIError{Provider: provider, Kind: llm.ErrInvalid, Message: message}
	}
	if len(s.Name) < 1 || len(s.Name) > 64 || strings.ContainsFunc(s.Name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		return invalid("the name of the schema needs 1 to 64 of the characters a-z, A-Z, 0-9, _ and -")
	}
	if !rawjson.Valid(s.JSON) || gjson.Get(s.JSON, "type").Str != "object" {
		return invalid("the schema must be a JSON schema of type object")
	}
	return nil
}
