package gemini_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// Pieces of requests.
const (
	hello  = `{"role":"user","parts":[{"text":"hello"}]}`
	reply  = `{"role":"model","parts":[{"text":"hi"}]}`
	callF  = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`
	doneF  = `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"done"}}}]}`
	signF  = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2VhbA=="}]}`
	sameFF = `{"role":"model","parts":[{"functionCall":{"id":"1","name":"f"}},{"functionCall":{"id":"2","name":"f"}}]}`
	callFG = `{"role":"model","parts":[{"functionCall":{"id":"1","name":"f"}},{"functionCall":{"id":"2","name":"g"}}]}`
)

func request(contents ...string) string {
	return `{"contents":[` + strings.Join(contents, ",") + `]}`
}

func user(part string) string  { return `{"role":"user","parts":[` + part + `]}` }
func model(part string) string { return `{"role":"model","parts":[` + part + `]}` }

func declare(declarations string) string {
	return `{"contents":[` + hello + `],"tools":[{"functionDeclarations":[` + declarations + `]}]}`
}

// Every rule refuses a minimal body that breaks it, at the right place, and
// accepts its twin.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		rule, path string
		bad, good  string
	}{
		{"json", "body", `{"contents":[`, request(hello)},
		{"json", "body", "{\"contents\":[{\"parts\":[{\"text\":\"\xff\"}]}]}", request(user(`{"text":"\ufffd"}`))},
		{"contents", "contents", `{}`, request(hello)},
		{"contents", "contents", `{"contents":[]}`, request(hello)},
		{"contents", "contents", `{"contents":"hello"}`, request(hello)},
		{"contents", "contents[1]", request(hello, `7`), request(hello)},
		{"field", "contents", `{"contents":[` + hello + `],"contents":[]}`, request(hello)},
		{"role", "contents[0].role", request(`{"role":"assistant","parts":[{"text":"a"}]}`), request(`{"parts":[{"text":"a"}]}`)},
		{"role", "contents[2]", request(hello, callF, `{"role":"function","parts":[{"text":"a"}]}`), request(hello, callF, strings.Replace(doneF, "user", "function", 1))},
		{"start", "contents[0]", request(reply, hello), request(hello, reply, hello)},
		{"start", "contents[0]", request(reply, hello), `{"cachedContent":"cachedContents/a",` + request(reply, hello)[1:]},
		{"parts", "contents[0].parts", request(`{"role":"user","parts":[]}`), request(hello)},
		{"parts", "contents[0].parts", request(`{"role":"user"}`), request(hello)},
		{"part", "contents[0].parts[0]", request(user(`{}`)), request(hello)},
		{"part", "contents[0].parts[0]", request(user(`"text"`)), request(hello)},
		{"part", "contents[0].parts[1]", request(user(`{"text":"a"},{"text":"b","inlineData":{"mimeType":"image/png","data":"AAAA"}}`)), request(user(`{"text":"a"},{"text":"b"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`))},
		{"part", "contents[0].parts[0].text", request(user(`{"text":1}`)), request(hello)},
		{"part", "contents[0].parts[0].fileData", request(user(`{"fileData":"a"}`)), request(user(`{"fileData":{"fileUri":"gs://a"}}`))},
		{"empty-text", "contents[0].parts[0].text", request(user(`{"text":""}`)), request(user(`{"text":" "}`))},
		{"media", "contents[0].parts[0].inlineData.mimeType", request(user(`{"inlineData":{"data":"AAAA"}}`)), request(user(`{"inline_data":{"mime_type":"image/png","data":"AAAA"}}`))},
		{"media", "contents[0].parts[0].inlineData.data", request(user(`{"inlineData":{"mimeType":"image/png"}}`)), request(user(`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`))},
		{"media", "contents[0].parts[0].fileData.fileUri", request(user(`{"fileData":{"mimeType":"image/png"}}`)), request(user(`{"fileData":{"fileUri":"gs://a"}}`))},
		{"call", "contents[0].parts[0]", request(user(`{"functionCall":{"name":"f"}}`)), request(hello, callF, doneF)},
		{"call", "contents[1].parts[0].functionCall.name", request(hello, strings.ReplaceAll(callF, `"f"`, `"9f"`), strings.ReplaceAll(doneF, `"f"`, `"9f"`)), request(hello, strings.ReplaceAll(callF, `"f"`, `"f9"`), strings.ReplaceAll(doneF, `"f"`, `"f9"`))},
		{"call", "contents[1].parts[0].functionCall.name", request(hello, strings.ReplaceAll(callF, `"name":"f",`, ``), doneF), request(hello, callF, doneF)},
		{"call", "contents[1].parts[0].functionCall.args", request(hello, strings.ReplaceAll(callF, `{}`, `"text"`), doneF), request(hello, callF, doneF)},
		{"response", "contents[1].parts[0]", request(hello, strings.Replace(doneF, "user", "model", 1), hello), request(hello, reply, hello)},
		{"response", "contents[2].parts[0].functionResponse.response", request(hello, callF, strings.Replace(doneF, `{"output":"done"}`, `"done"`, 1)), request(hello, callF, doneF)},
		{"response", "contents[2].parts[0].functionResponse.response", request(hello, callF, strings.Replace(doneF, `,"response":{"output":"done"}`, ``, 1)), request(hello, callF, doneF)},
		{"media", "contents[2].parts[0].functionResponse.parts[0]", request(hello, callF, strings.Replace(doneF, `"response"`, `"parts":[{"text":"a"}],"response"`, 1)), request(hello, callF, strings.Replace(doneF, `"response"`, `"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}],"response"`, 1))},
		{"call-turn", "contents[2]", request(hello, reply, callF, doneF), request(hello, callF, doneF)},
		{"pairing", "contents[1]", request(hello, callF, hello), request(hello, callF, doneF)},
		{"pairing", "contents[1]", request(hello, callF), request(hello, callF, doneF)},
		{"pairing", "contents[0]", request(doneF), request(hello)},
		{"pairing", "contents[3]", request(hello, callF, doneF, doneF), request(hello, callF, doneF, callF, doneF)},
		{"pairing", "contents[2]", request(hello, reply, doneF), request(hello, callF, doneF)},
		{"pairing", "contents[2]", request(hello, callFG, user(`{"functionResponse":{"id":"1","name":"f","response":{}}}`)), request(hello, callFG, user(`{"functionResponse":{"id":"1","name":"f","response":{}}},{"functionResponse":{"id":"2","name":"g","response":{}}}`))},
		{"pairing", "contents[2].parts[0]", request(hello, callFG, user(`{"functionResponse":{"name":"g","response":{}}},{"functionResponse":{"name":"f","response":{}}}`)), request(hello, callFG, user(`{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"g","response":{}}}`))},
		{"pairing", "contents[2].parts[1]", request(hello, sameFF, user(`{"functionResponse":{"id":"2","name":"f","response":{}}},{"functionResponse":{"id":"2","name":"f","response":{}}}`)), request(hello, sameFF, user(`{"functionResponse":{"id":"1","name":"f","response":{}}},{"functionResponse":{"id":"2","name":"f","response":{}}}`))},
		{"pairing", "contents[2].parts[0]", request(hello, callFG, user(`{"functionResponse":{"id":"2","name":"f","response":{}}},{"functionResponse":{"id":"1","name":"g","response":{}}}`)), request(hello, callFG, user(`{"functionResponse":{"id":"2","name":"g","response":{}}},{"functionResponse":{"id":"1","name":"f","response":{}}}`))},
		{"signature", "contents[3].parts[0]", request(hello, signF, doneF, callF, doneF), request(hello, signF, doneF, signF, doneF)},
		{"signature", "contents[5].parts[0]", request(hello, signF, doneF, reply, hello, callF, doneF), request(hello, callF, doneF, reply, hello, signF, doneF)},
		{"system", "systemInstruction", `{"systemInstruction":"a",` + request(hello)[1:], `{"systemInstruction":{"parts":[{"text":"a"}]},` + request(hello)[1:]},
		{"system", "systemInstruction.parts", `{"system_instruction":{"parts":[]},` + request(hello)[1:], request(hello)},
		{"system", "systemInstruction.parts[0]", `{"systemInstruction":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},` + request(hello)[1:], `{"system_instruction":{"parts":[{"text":"a"}]},` + request(hello)[1:]},
		{"declaration", "tools", `{"tools":{},` + request(hello)[1:], `{"tools":[],` + request(hello)[1:]},
		{"declaration", "tools[0]", `{"tools":[1],` + request(hello)[1:], `{"tools":[{"googleSearch":{}}],` + request(hello)[1:]},
		{"declaration", "tools[0].functionDeclarations", `{"tools":[{"functionDeclarations":{}}],` + request(hello)[1:], declare(``)},
		{"declaration", "tools[0].functionDeclarations[0]", declare(`"f"`), declare(`{"name":"f"}`)},
		{"declaration", "tools[0].functionDeclarations[0].name", declare(`{"description":"a"}`), declare(`{"name":"f","description":"a"}`)},
		{"declaration", "tools[0].functionDeclarations[0].name", declare(`{"name":"a b"}`), declare(`{"name":"a.b-c_d"}`)},
		{"declaration", "tools[0].functionDeclarations[1].name", declare(`{"name":"f"},{"name":"f"}`), declare(`{"name":"f"},{"name":"g"}`)},
		{"declaration", "tools[0].functionDeclarations[0]", declare(`{"name":"f","parameters":{},"parametersJsonSchema":{}}`), declare(`{"name":"f","parameters_json_schema":{}}`)},
		{"declaration", "tools[0].functionDeclarations[0]", declare(`{"name":"f","parameters":[]}`), declare(`{"name":"f","parameters":{}}`)},
	} {
		got := problems(test.bad, false)
		found := false
		for _, p := range got {
			found = found || p.Rule == test.rule && p.Path == test.path
		}
		if !found {
			t.Errorf("%s: want %s at %q, got %v", test.bad, test.rule, test.path, got)
		}
		if got := problems(test.good, false); len(got) > 0 {
			t.Errorf("%s is valid, got %v", test.good, got)
		}
	}
}

// What only some models or only Vertex AI refuse is advice, and no more.
func TestAdvice(t *testing.T) {
	long := strings.Repeat("a", 65)
	for _, test := range []struct {
		rule, path string
		body, good string
	}{
		{"field", "later", `{"later":1,` + request(hello)[1:], `{"tool_config":{},"labels":{},` + request(hello)[1:]},
		{"field", "max_tokens", `{"max_tokens":1,` + request(hello)[1:], `{"generation_config":{"maxOutputTokens":1},` + request(hello)[1:]},
		{"field", "maxTokens", `{"maxTokens":1,` + request(hello)[1:], request(hello)},
		{"field", "contents[0].name", request(`{"name":"a",` + hello[1:]), request(hello)},
		{"field", "contents[0].parts[0].hologram", request(user(`{"hologram":{}}`)), request(user(`{"text":"a","partMetadata":{}}`))},
		{"alternate", "contents[1]", request(hello, hello), request(hello, reply, hello)},
		{"alternate", "contents[2]", request(hello, reply, reply, hello), request(hello, reply, hello)},
		{"end", "contents[1]", request(hello, reply), request(hello, reply, hello)},
		{"empty-text", "contents[1].parts[0].text", request(hello, model(`{"text":""}`), hello), request(hello, model(`{"text":"","thoughtSignature":"c2VhbA=="}`), hello)},
		{"mixed-response", "contents[2]", request(hello, callF, strings.Replace(doneF, `]}`, `,{"text":"and"}]}`, 1)), request(hello, callF, doneF, user(`{"text":"and"}`))},
		{"order", "contents[2].parts[0]", request(hello, sameFF, user(`{"functionResponse":{"id":"2","name":"f","response":{}}},{"functionResponse":{"id":"1","name":"f","response":{}}}`)), request(hello, sameFF, user(`{"functionResponse":{"id":"1","name":"f","response":{}}},{"functionResponse":{"id":"2","name":"f","response":{}}}`))},
		{"signature", "contents[1].parts[1].thoughtSignature", request(hello, strings.Replace(callFG, `"g"}`, `"g"},"thoughtSignature":"c2VhbA=="`, 1), user(`{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"g","response":{}}}`)), request(hello, signF, doneF)},
		{"declaration", "tools[0].functionDeclarations[0].name", declare(`{"name":"` + long + `"}`), declare(`{"name":"` + long[1:] + `"}`)},
		{"declaration", "tools[0].functionDeclarations[0].name", declare(`{"name":"a:b"}`), declare(`{"name":"a.b"}`)},
	} {
		found := false
		for _, p := range problems(test.body, true) {
			found = found || p.Rule == test.rule && p.Path == test.path
		}
		if !found {
			t.Errorf("%s: want advice %s at %q, got %v", test.body, test.rule, test.path, problems(test.body, true))
		}
		if got := problems(test.good, true); len(got) > 0 {
			t.Errorf("%s: want no advice, got %v", test.good, got)
		}
		if got := problems(test.good, false); len(got) > 0 {
			t.Errorf("%s is valid, got %v", test.good, got)
		}
	}
}

// TestForeignFields: a field of another API is named as the body spells it, with what
// Gemini has for it.
func TestForeignFields(t *testing.T) {
	body := `{"model":"m","messages":[],"max_tokens":9,"later":1,` + request(hello)[1:]
	want := []wire.Problem{
		{Path: "messages", Rule: "field", Message: "unknown field; Vertex AI refuses it; Gemini has contents", Advice: true},
		{Path: "max_tokens", Rule: "field", Message: "unknown field; Vertex AI refuses it; Gemini has generationConfig.maxOutputTokens", Advice: true},
		{Path: "later", Rule: "field", Message: "unknown field; Vertex AI refuses it", Advice: true},
	}
	if got := problems(body, true); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// Thought signatures are asked for only where Gemini 3 would: in the current
// turn, and only of requests whose other calls are signed.
func TestSignaturesOnlyWhereChecked(t *testing.T) {
	skip := strings.Replace(signF, "c2VhbA==", "skip_thought_signature_validator", 1)
	skip64 := strings.Replace(signF, "c2VhbA==", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=", 1)
	for name, body := range map[string]string{
		"no signatures at all":         request(hello, callF, doneF, callF, doneF),
		"earlier turn":                 request(hello, callF, doneF, reply, hello, signF, doneF),
		"skip values prove nothing":    request(hello, skip, doneF, callF, doneF, skip64, doneF),
		"skip value beside signatures": request(hello, signF, doneF, skip, doneF),
		"on the text before the call":  request(hello, signF, doneF, model(`{"text":"a","thoughtSignature":"c2VhbA=="},{"functionCall":{"name":"f"}}`), doneF),
		"snake case":                   request(hello, strings.Replace(signF, "thoughtSignature", "thought_signature", 1), doneF),
	} {
		if got := problems(body, false); len(got) > 0 {
			t.Errorf("%s: %v\n%s", name, got, body)
		}
	}
}

// Problems come in the order of the document.
func TestProblemsInOrder(t *testing.T) {
	body := `{"contents":[` + user(`{}`) + `,` + reply + `,` + user(`{"text":""},{}`) + `],"tools":[{"functionDeclarations":[{}]}]}`
	var got []string
	for _, p := range problems(body, false) {
		got = append(got, p.Path)
	}
	want := "contents[0].parts[0] contents[2].parts[0].text contents[2].parts[1] tools[0].functionDeclarations[0].name"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Every recorded request was answered by the API, so none breaks a rule.
func TestCorpusIsValid(t *testing.T) {
	for name, body := range wiretest.Corpus(t, wire.Gemini) {
		if got := problems(string(body), false); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// problems returns what the validator refuses, or what it advises.
func problems(body string, advice bool) (list []wire.Problem) {
	for _, p := range (gemini.Codec{}).Validate([]byte(body)) {
		if p.Advice == advice {
			list = append(list, p)
		}
	}
	return list
}
