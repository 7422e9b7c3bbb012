package exchange

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ReadObject reads an answer that is one JSON object. An object that is an error becomes that
// error. For anything else the error shows how the body begins.
func ReadObject(provider string, r *Response) (string, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	body := strings.TrimSpace(string(raw))
	if !rawjson.Valid(body) || !strings.HasPrefix(body, "{") {
		return "", UnreadableError(r, "the answer is not a JSON object", body)
	}
	if e := failure(provider, r.Status, body); e != nil {
		return "", e
	}
	return body, nil
}

// failure returns the error in a body, or nil. If the provider behind OpenRouter failed, the
// error is in the choice.
func failure(provider string, status int, doc string) error {
	for _, object := range []string{doc, gjson.Get(doc, "choices.0").Raw} {
		if e := llm.Failure(provider, status, []byte(object)); e != nil && strings.HasPrefix(object, "{") {
			return e
		}
	}
	return nil
}

// maxShownBytes is how much of an unreadable answer an error shows, in bytes.
const maxShownBytes = 120

// UnreadableError returns the error for an answer that cannot be read.
func UnreadableError(r *Response, what, body string) error {
	if body == "" {
		what += " (nothing)"
	} else {
		what += fmt.Sprintf(": %q", strings.ToValidUTF8(body[:min(len(body), maxShownBytes)], ""))
	}
	return &llm.APIError{Kind: llm.ErrResponse, Status: r.Status, RequestID: r.RequestID, Message: what}
}

// setReplyJSON sets the reply's JSON from its text if there is a schema. A model that stopped
// early may have none. If it said that it was done, an answer without an object, or without
// a required member, is unreadable: it may be incomplete.
func setReplyJSON(r *Response, reply *llm.Reply, s *llm.Schema) error {
	if s == nil || reply.Stop != wire.StopEnd {
		return nil
	}
	object, ok := rawjson.FindObject(reply.Text)
	if !ok {
		return UnreadableError(r, "the model answered without the JSON object it was asked for", reply.Text)
	}
	members := rawjson.FieldsOf(gjson.Parse(object), nil)
	for name := range rawjson.Items(gjson.Get(s.JSON, "required")) {
		if name.Str != "" && !members.Get(name.Str).Exists() {
			return UnreadableError(r, fmt.Sprintf("the model's JSON object lacks %q, which the schema requires", name.Str), object)
		}
	}
	reply.JSON = object
	return nil
}
