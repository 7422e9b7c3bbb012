package gemini

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

var (
	filledMedia = func(say string) *shape.Shape { return filled.Explain("media", say) }

	// The fields of which a part has exactly one, and their shapes; checker.text checks
	// texts.
	dataShapes = map[string]*shape.Shape{
		"text": {},
		"inlineData": {Is: shape.Object, Image: "data", Members: []shape.Member{
			shape.Required("mimeType", filledMedia("the MIME type is missing")),
			shape.Required("data", filledMedia("the data is missing; send it in base64")),
		}},
		"fileData":            {Is: shape.Object, Image: "fileUri", Members: []shape.Member{shape.Required("fileUri", filledMedia("the address of the file is missing"))}},
		"functionCall":        shape.Members(shape.Optional("args", shape.Members().Explain("call", "the arguments are not an object"))),
		"functionResponse":    shape.Members(shape.Required("response", shape.Members().Explain("response", `want an object, such as {"output": …}`))),
		"executableCode":      shape.Members(),
		"codeExecutionResult": shape.Members(),
		"toolCall":            shape.Members(),
		"toolResponse":        shape.Members(),
	}
	// The fields that a part may also have.
	besideData = scan.WordSet("thought thoughtSignature videoMetadata mediaResolution mediaProcessing partMetadata speechMetadata audioTranscription")
)

// checkedContent is what the rules across contents need to know of one.
type checkedContent struct {
	at        int
	path      string
	model     bool
	bad       bool // not readable: its neighbours are not checked against it
	calls     []checkedCall
	responses []checkedCall
	words     bool // parts other than responses
	signed    bool // a signature on the first call or on a part before it
}

// checkedCall is a call, or a response to one.
type checkedCall struct {
	id, name  string
	signature string
	path      string
}

// contents checks each content by itself, then their order. cached means that the
// conversation began in cached content.
func (c *checker) contents(v gjson.Result, cached bool) {
	c.Check(v.Index, "contents", v, contentsShape)
	var turns []checkedContent
	shape.Each(v, "contents", func(path string, content gjson.Result) { turns = append(turns, c.turn(content, path)) })
	unsigned := missingSignatures(turns)
	for i := range turns {
		t := &turns[i]
		var before *checkedContent
		if i > 0 {
			before = &turns[i-1]
		} else if t.model && !cached {
			c.Refuse(t.at, t.path, "start", "the model speaks first; begin with a user content")
		}
		if !t.bad && !(before == nil && cached) {
			c.order(before, t)
		}
		if unsigned[i] {
			c.Refuse(t.at, t.calls[0].path, "signature", "the first call of a step of the current turn has lost its thoughtSignature, and other calls have theirs; send it back where it was, or the documented skip value")
		}
		if i == len(turns)-1 {
			if len(t.calls) > 0 {
				c.Refuse(t.at, t.path, "pairing", "%d calls at the end have no response; append their responses", len(t.calls))
			} else if t.model {
				c.Advise(t.at, t.path, "end", "the request ends with the model's own words; append your next message")
			}
		}
	}
}

// order checks a content against the one before it, which is nil for the first.
func (c *checker) order(before, t *checkedContent) {
	if before != nil && before.bad {
		return
	}
	if before != nil && before.model == t.model {
		switch {
		case t.model && len(t.calls) > 0:
			c.Refuse(t.at, t.path, "call-turn", "function calls directly after another model content; they may only follow a user content or function responses")
		case t.model:
			c.Advise(t.at, t.path, "alternate", "two model contents in a row; Vertex AI may refuse that, so merge them")
		case len(before.responses) > 0 && !before.words && len(t.responses) == 0:
			// A user's words after a batch of responses stand in a content of
			// their own, because some models refuse them beside the responses.
		default:
			c.Advise(t.at, t.path, "alternate", "two user contents in a row; Vertex AI may refuse that, so merge them")
		}
	}
	called := before != nil && before.model && len(before.calls) > 0
	switch {
	case called && len(t.responses) == 0:
		c.Refuse(before.at, before.path, "pairing", "%d calls have no response in the next content; answer every call directly after it", len(before.calls))
	case !called && len(t.responses) > 0:
		c.Refuse(t.at, t.path, "pairing", "function responses not directly after a content with function calls; move them there")
	case called:
		c.pair(before, t)
	}
	if len(t.responses) > 0 && t.words {
		c.Advise(t.at, t.path, "mixed-response", "function responses and other parts in one content; some models refuse that, so put the others into a content after it")
	}
}

// pair checks that responses answer exactly the calls: by their ids in any order, else in the order of the calls
// (https://ai.google.dev/api/caching#FunctionCall: the response has the matching id).
func (c *checker) pair(calls, responses *checkedContent) {
	if len(calls.calls) != len(responses.responses) {
		c.Refuse(responses.at, responses.path, "pairing", "%d function responses for %d calls; send exactly one for each", len(responses.responses), len(calls.calls))
		return
	}
	waits := map[string]checkedCall{} // by id
	for _, call := range calls.calls {
		if call.id != "" {
			waits[call.id] = call
		}
	}
	byID := len(waits) == len(calls.calls)
	for i, r := range responses.responses {
		call := calls.calls[i]
		if found, ok := waits[r.id]; byID && ok && found.path != call.path {
			call = found
			c.Advise(responses.at, r.path, "order", "the response stands in another place than its call; Gemini finds the call by its id, some servers with this API do not")
		} else if byID && !ok && r.id != "" {
			c.Refuse(responses.at, r.path, "pairing", "no call before it with the id %q waits for a response; answer each call once, by its id", r.id)
			continue
		}
		delete(waits, r.id)
		switch {
		case r.name != call.name:
			c.Refuse(responses.at, r.path, "pairing", "the response is named %q, its call %q; answer by the ids of the calls, or in their order", r.name, call.name)
		case r.id != "" && call.id != "" && r.id != call.id:
			c.Refuse(responses.at, r.path, "pairing", "the response has id %q, the call in its place %q; answer in the order of the calls", r.id, call.id)
		}
	}
}

// missingSignatures returns the contents that lack a thought signature. Gemini 3 checks
// only the current turn, which begins at the last user text, and wants a signature on the
// first call of every step in it. Only the signatures of other calls show that a request is
// for a model that signs; values that mean "no signature" do not count. Models before
// Gemini 3 sign the first part of a step, whatever it is, and check nothing.
func missingSignatures(turns []checkedContent) map[int]bool {
	signing := slices.ContainsFunc(turns, func(t checkedContent) bool {
		return slices.ContainsFunc(t.calls, func(call checkedCall) bool { return isSeal(call.signature) })
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

// isSeal reports whether a model made a signature. It is false for the two values that the
// guide gives for unsigned calls, and for the first of them in base64, as some clients
// send it.
func isSeal(signature string) bool {
	switch signature {
	case "", "skip_thought_signature_validator", "context_engineering_is_the_way_to_go",
		"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=":
		return false
	}
	return true
}

// turn checks one content by itself.
func (c *checker) turn(v gjson.Result, path string) checkedContent {
	t := checkedContent{at: v.Index, path: path, bad: true}
	role := "user"
	if v.IsObject() {
		for name, value := range rawjson.Members(v) {
			switch name {
			case "parts":
			case "role":
				if role = value.String(); value.Type == gjson.Null || role == "" {
					role = "user"
				}
			default:
				c.Advise(t.at, path+"."+name, "field", "unknown field; Vertex AI refuses it")
			}
		}
		if t.bad = role != "user" && role != "function" && role != "model"; t.bad {
			c.Refuse(t.at, path+".role", "role", "role %q; want user or model", role)
		}
	}
	t.model = role == "model"
	if !c.Check(t.at, path, v, contentShape) {
		return t
	}
	shape.Each(v.Get("parts"), path+".parts", func(path string, part gjson.Result) { c.part(&t, part, path) })
	if role == "function" && t.words {
		c.Refuse(t.at, path, "role", "role function is for function responses only; send other parts as user")
	}
	return t
}

// checkedPart is a part with its members found.
type checkedPart struct {
	kind      string // the name of the data field; "" without one
	data      gjson.Result
	signature string
	several   bool   // there is more than one data field
	unknown   string // the first field that may not stand there
}

// readPart reads the members of a part. A null member counts as absent, as in every parser
// of protocol messages.
func readPart(v gjson.Result) (p checkedPart) {
	for key, value := range rawjson.Members(v) {
		name := camel(key)
		switch {
		case value.Type == gjson.Null:
		case dataShapes[name] != nil:
			p.several = p.kind != ""
			p.kind, p.data = name, value
		case !besideData[name] && p.unknown == "":
			p.unknown = key
		case name == "thoughtSignature":
			p.signature = value.Str
		}
	}
	return p
}

// part checks one part and records in t what the rules across contents need.
func (c *checker) part(t *checkedContent, v gjson.Result, path string) {
	if !c.Check(t.at, path, v, shape.Members().Explain("part", "want an object")) {
		return
	}
	p := readPart(v)
	if p.unknown != "" {
		c.Advise(t.at, path+"."+p.unknown, "field", "unknown field; Vertex AI refuses it")
	}
	t.words = t.words || p.kind != "functionResponse"
	t.signed = t.signed || p.signature != "" && len(t.calls) == 0
	data := path + "." + p.kind
	switch {
	case p.several:
		c.Refuse(t.at, path, "part", "more than one data field; make a part of each")
	case p.kind == "" && p.unknown == "":
		c.Refuse(t.at, path, "part", "no data field; send text, data, a call or a response")
	case p.kind == "":
	case p.kind == "text":
		c.text(t, p, data)
	case !p.data.IsObject():
		c.Refuse(t.at, data, "part", "want an object")
	case p.kind == "functionCall" && !t.model:
		c.Refuse(t.at, path, "call", "a function call in a user content; only the model calls")
	case p.kind == "functionResponse" && t.model:
		c.Refuse(t.at, path, "response", "a function response in a model content; send it as user")
	default:
		c.Check(t.at, data, p.data, dataShapes[p.kind])
		c.noteCall(t, p, path)
	}
}

func (c *checker) text(t *checkedContent, p checkedPart, path string) {
	switch {
	case p.data.Type != gjson.String:
		c.Refuse(t.at, path, "part", "want a string")
	case p.data.Str != "" || p.signature != "":
	case t.model:
		// A recorded exchange shows the public API answering a history with
		// an empty model text; Vertex AI names "an empty text parameter".
		c.Advise(t.at, path, "empty-text", "empty text; Vertex AI refuses it, so leave the part out")
	default:
		c.Refuse(t.at, path, "empty-text", "empty text; leave the part out")
	}
}

// noteCall checks and records a call or a response.
func (c *checker) noteCall(t *checkedContent, p checkedPart, path string) {
	n := checkedCall{id: field(p.data, "id").Str, name: field(p.data, "name").Str, signature: p.signature, path: path}
	switch p.kind {
	case "functionCall":
		c.name(t.at, n.name, path+".functionCall.name", "call")
		if len(t.calls) > 0 && p.signature != "" {
			c.Advise(t.at, path+".thoughtSignature", "signature", "a signature on a later call of a parallel batch; the model signs only the first")
		}
		t.calls = append(t.calls, n)
	case "functionResponse":
		c.name(t.at, n.name, path+".functionResponse.name", "response")
		shape.Each(field(p.data, "parts"), path+".functionResponse.parts", func(path string, part gjson.Result) {
			inner := readPart(part)
			if inner.kind != "inlineData" && inner.kind != "fileData" {
				c.Refuse(t.at, path, "media", "only inlineData and fileData may stand inside a response")
				return
			}
			c.Check(t.at, path+"."+inner.kind, inner.data, dataShapes[inner.kind])
		})
		t.responses = append(t.responses, n)
	}
}
