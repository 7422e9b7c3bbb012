package gemini

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// turn is what the rules of order need to know of a content.
type turn struct {
	path      string
	model     bool
	bad       bool // not readable: nothing is said about its neighbours
	calls     []namedCall
	responses []namedCall
	words     bool // parts other than responses
	signed    bool // a signature on the first call or on a part before it
	problems  []wire.Problem
}

// namedCall is a call, or a response to one.
type namedCall struct {
	id, name  string
	signature string
	path      string
}

// contents checks the contents: each by itself, then their order. cached says
// that the conversation began in cached content.
func (c *checker) contents(v gjson.Result, cached bool) {
	if !v.IsArray() {
		c.refuse("contents", ruleContents, "want an array of contents")
		return
	}
	var turns []turn
	v.ForEach(func(_, content gjson.Result) bool {
		turns = append(turns, readTurn(content, fmt.Sprintf("contents[%d]", len(turns))))
		return true
	})
	if len(turns) == 0 {
		c.refuse("contents", ruleContents, "contents are empty; send at least one user content")
		return
	}
	unsigned := missingSignatures(turns)
	for i := range turns {
		t := &turns[i]
		var before *turn
		if i > 0 {
			before = &turns[i-1]
		} else if t.model && !cached {
			c.refuse(t.path, ruleStart, "the model speaks first; begin with a user content")
		}
		if !t.bad && !(before == nil && cached) {
			c.order(before, t)
		}
		if unsigned[i] {
			c.refuse(t.calls[0].path, ruleSignature, "the first call of a step of the current turn has lost its thoughtSignature, and other calls have theirs; send it back where it was, or the documented skip value")
		}
		c.problems = append(c.problems, t.problems...)
		if i == len(turns)-1 {
			if len(t.calls) > 0 {
				c.refuse(t.path, rulePairing, "%d calls at the end have no response; append their responses", len(t.calls))
			} else if t.model {
				c.advise(t.path, ruleEnd, "the request ends with the model's own words; append your next message")
			}
		}
	}
}

// order checks a content against the one before it, which is nil for the first.
func (c *checker) order(before, t *turn) {
	if before != nil && before.bad {
		return
	}
	if before != nil && before.model == t.model {
		switch {
		case t.model && len(t.calls) > 0:
			c.refuse(t.path, ruleCallTurn, "function calls directly after another model content; they may only follow a user content or function responses")
		case t.model:
			c.advise(t.path, ruleAlternate, "two model contents in a row; Vertex AI may refuse that, so merge them")
		case len(before.responses) > 0 && !before.words && len(t.responses) == 0:
			// A user's words after a batch of responses stand in a content of
			// their own, because some models refuse them beside the responses.
		default:
			c.advise(t.path, ruleAlternate, "two user contents in a row; Vertex AI may refuse that, so merge them")
		}
	}
	called := before != nil && before.model && len(before.calls) > 0
	switch {
	case called && len(t.responses) == 0:
		c.refuse(before.path, rulePairing, "%d calls have no response in the next content; answer every call directly after it", len(before.calls))
	case !called && len(t.responses) > 0:
		c.refuse(t.path, rulePairing, "function responses not directly after a content with function calls; move them there")
	case called:
		c.pair(before, t)
	}
	if len(t.responses) > 0 && t.words {
		c.advise(t.path, ruleMixed, "function responses and other parts in one content; some models refuse that, so put the others into a content after it")
	}
}

// pair checks that responses answer exactly the calls, in their order.
func (c *checker) pair(calls, responses *turn) {
	if len(calls.calls) != len(responses.responses) {
		c.refuse(responses.path, rulePairing, "%d function responses for %d calls; send exactly one for each", len(responses.responses), len(calls.calls))
		return
	}
	for i, r := range responses.responses {
		call := calls.calls[i]
		switch {
		case r.name != call.name:
			c.refuse(r.path, rulePairing, "the response is named %q, the call in its place %q; answer in the order of the calls", r.name, call.name)
		case r.id != "" && call.id != "" && r.id != call.id:
			c.refuse(r.path, rulePairing, "the response has id %q, the call in its place %q; answer in the order of the calls", r.id, call.id)
		}
	}
}

// missingSignatures tells which contents lack a thought signature. Gemini 3
// checks the current turn only, which begins at the user's last words, and
// wants one on the first call of every step in it. A request can be known to
// be for a signing model only by the signatures that its other calls have;
// values that stand for "no signature" do not count. Models before Gemini 3 sign
// the first part of a step, whatever it is, and check nothing.
func missingSignatures(turns []turn) map[int]bool {
	signing := slices.ContainsFunc(turns, func(t turn) bool {
		return slices.ContainsFunc(t.calls, func(call namedCall) bool { return isSeal(call.signature) })
	})
	if !signing {
		return nil
	}
	missing := map[int]bool{}
	for i, t := range slices.Backward(turns) {
		if !t.model && t.words {
			break
		}
		if len(t.calls) > 0 && !t.signed {
			missing[i] = true
		}
	}
	return missing
}

// isSeal reports whether a signature was made by a model: it is none of the two
// values that the guide gives for calls that no model signed, and not the first
// of them in base64, in which form some clients send it.
func isSeal(signature string) bool {
	switch signature {
	case "", "skip_thought_signature_validator", "context_engineering_is_the_way_to_go",
		"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=":
		return false
	}
	return true
}

// readTurn checks one content by itself.
func readTurn(v gjson.Result, path string) turn {
	t := turn{path: path, bad: true}
	var c checker
	if !v.IsObject() {
		c.refuse(path, ruleContents, "want an object with role and parts")
		t.problems = c.problems
		return t
	}
	var parts gjson.Result
	role := "user"
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "parts":
			parts = value
		case "role":
			if role = value.String(); value.Type == gjson.Null || role == "" {
				role = "user"
			}
		default:
			c.advise(path+"."+key.Str, ruleField, "unknown field; Vertex AI refuses it")
		}
		return true
	})
	switch role {
	case "user", "function", "model":
		t.bad = false
	default:
		c.refuse(path+".role", ruleRole, "role %q; want user or model", role)
	}
	t.model = role == "model"
	if !parts.IsArray() || !hasElements(parts) {
		c.refuse(path+".parts", ruleParts, "want at least one part")
		t.problems = c.problems
		return t
	}
	n := 0
	parts.ForEach(func(_, part gjson.Result) bool {
		c.part(&t, part, fmt.Sprintf("%s.parts[%d]", path, n))
		n++
		return true
	})
	if role == "function" && t.words {
		c.refuse(path, ruleRole, "role function is for function responses only; send other parts as user")
	}
	t.problems = c.problems
	return t
}

// part checks one part and notes in t what the rules of order need.
func (c *checker) part(t *turn, v gjson.Result, path string) {
	if !v.IsObject() {
		c.refuse(path, rulePart, "want an object")
		return
	}
	f := cutPart(v)
	if f.unknown != "" {
		c.advise(path+"."+f.unknown, ruleField, "unknown field; Vertex AI refuses it")
	}
	if f.kind != "functionResponse" {
		t.words = true
	}
	if f.signature != "" && len(t.calls) == 0 {
		t.signed = true
	}
	switch {
	case f.several:
		c.refuse(path, rulePart, "more than one data field; make a part of each")
	case f.kind == "" && f.unknown == "":
		c.refuse(path, rulePart, "no data field; send text, data, a call or a response")
	case f.kind == "":
	case f.kind == "text":
		c.text(t, f, path)
	case !f.data.IsObject():
		c.refuse(path+"."+f.kind, rulePart, "want an object")
	case f.kind == "inlineData" || f.kind == "fileData":
		c.media(f.kind, f.data, path)
	case f.kind == "functionCall":
		c.call(t, f, path)
	case f.kind == "functionResponse":
		c.response(t, f, path)
	}
}

func (c *checker) text(t *turn, f fields, path string) {
	switch {
	case f.data.Type != gjson.String:
		c.refuse(path+".text", rulePart, "want a string")
	case f.data.Str != "" || f.signature != "":
	case t.model:
		// A recorded exchange shows the public API answering a history with
		// an empty model text; Vertex AI names "an empty text parameter".
		c.advise(path+".text", ruleEmptyText, "empty text; Vertex AI refuses it, so leave the part out")
	default:
		c.refuse(path+".text", ruleEmptyText, "empty text; leave the part out")
	}
}

func (c *checker) media(kind string, v gjson.Result, path string) {
	if kind == "fileData" {
		if str(field(v, "fileUri")) == "" {
			c.refuse(path+".fileData.fileUri", ruleMedia, "the address of the file is missing")
		}
		return
	}
	if str(field(v, "mimeType")) == "" {
		c.refuse(path+".inlineData.mimeType", ruleMedia, "the MIME type is missing")
	}
	if str(field(v, "data")) == "" {
		c.refuse(path+".inlineData.data", ruleMedia, "the data is missing; send it in base64")
	}
}

func (c *checker) call(t *turn, f fields, path string) {
	call := namedCall{
		id: str(field(f.data, "id")), name: str(field(f.data, "name")),
		signature: f.signature, path: path,
	}
	if !t.model {
		c.refuse(path, ruleCall, "a function call in a user content; only the model calls")
		return
	}
	c.name(call.name, path+".functionCall.name", ruleCall)
	if args := field(f.data, "args"); args.Exists() && args.Type != gjson.Null && !args.IsObject() {
		c.refuse(path+".functionCall.args", ruleCall, "the arguments are not an object")
	}
	if len(t.calls) > 0 && f.signature != "" {
		c.advise(path+".thoughtSignature", ruleSignature, "a signature on a later call of a parallel batch; the model signs only the first")
	}
	t.calls = append(t.calls, call)
}

func (c *checker) response(t *turn, f fields, path string) {
	if t.model {
		c.refuse(path, ruleResponse, "a function response in a model content; send it as user")
		return
	}
	r := namedCall{id: str(field(f.data, "id")), name: str(field(f.data, "name")), path: path}
	c.name(r.name, path+".functionResponse.name", ruleResponse)
	if !field(f.data, "response").IsObject() {
		c.refuse(path+".functionResponse.response", ruleResponse, "want an object, such as {\"output\": …}")
	}
	if parts := field(f.data, "parts"); parts.IsArray() {
		n := 0
		parts.ForEach(func(_, part gjson.Result) bool {
			at := fmt.Sprintf("%s.functionResponse.parts[%d]", path, n)
			n++
			switch inner := cutPart(part); inner.kind {
			case "inlineData", "fileData":
				c.media(inner.kind, inner.data, at)
			default:
				c.refuse(at, ruleMedia, "only inlineData and fileData may stand inside a response")
			}
			return true
		})
	}
	t.responses = append(t.responses, r)
}
