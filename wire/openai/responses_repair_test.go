package openai

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestResponsesRepair: items of a file that OpenAI would refuse are sent as it
// takes them; the same items in a request stay as the caller wrote them.
func TestResponsesRepair(t *testing.T) {
	const items = `{"type":"message","id":"msg-a","role":"user","content":[{"type":"input_text","text":"What is on it?"},{"type":"input_image","image_url":null,"detail":"auto"},{"type":"input_file","filename":"plan.pdf"}]},` +
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e1"},` +
		`{"type":"function_call","id":"item-7","call_id":"c1","name":"look","arguments":"{\"id\":\"7\"}"},` +
		`{"type":"function_call_output","id":"out-1","call_id":"c1","output":[{"type":"input_image","image_url":""},{"type":"input_image","image_url":"https://example.org/a.png"}]},` +
		`{"type":"message","id":"m1","role":"assistant","content":[{"type":"input_text","text":"A cat."},{"type":"input_image","image_url":"https://example.org/b.png"}]},` +
		`{"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c2","output":{"type":"input_text","text":"a.txt","image_url":null}},` +
		`{"type":"custom_tool_call","id":"out-1","call_id":"c3","name":"sh!","input":"ls"},` +
		`{"type":"custom_tool_call_output","call_id":"c3","output":"a.txt"},` +
		`{"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c2","output":"b.txt"},` +
		`{"type":"function_call","call_id":"c4","name":"ls","arguments":null},` +
		`{"type":"function_call_output","call_id":"c4","output":"c.txt"},` +
		`{"type":"image_generation_call","id":"out-1","status":"completed","result":"QUJD"},` +
		`{"role":"user","content":"Thanks."}`
	body := `{"model":"gpt-5.1","input":[` + items + `],"store":false}`
	if len((Responses{}).Validate([]byte(body))) == 0 {
		t.Fatal("nothing is wrong with the items")
	}
	p, err := Responses{}.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	same, err := Responses{}.Encode(p)
	if err != nil || string(same) != body {
		t.Errorf("an untouched request changed: %v\n%s", err, same)
	}
	p.Source = nil // as a transcript gives it
	sent, err := Responses{}.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	responsesNoProblems(t, string(sent))
	want := []string{
		`{"type":"message","id":"msg-a","role":"user","content":[{"type":"input_text","text":"What is on it?"},{"type":"input_text","text":"[image: not available]"},{"type":"input_text","text":"[document: plan.pdf]"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e1"}`,
		`{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"id\":\"7\"}"}`,
		`{"type":"function_call_output","id":"out-1","call_id":"c1","output":[{"type":"input_text","text":"[image: not available]"},{"type":"input_image","image_url":"https://example.org/a.png"}]}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A cat."},{"type":"output_text","text":"[image: https://example.org/b.png]"}]}`,
		`{"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"c2","output":"a.txt"}`,
		`{"type":"custom_tool_call","call_id":"c3","name":"sh__323b66bd","input":"ls"}`,
		`{"type":"custom_tool_call_output","call_id":"c3","output":"a.txt"}`,
		`{"type":"function_call","call_id":"call_adadad5f9e576ff5605f24e2","name":"ls","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"call_adadad5f9e576ff5605f24e2","output":"b.txt"}`,
		`{"type":"function_call","call_id":"c4","name":"ls","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"c4","output":"c.txt"}`,
		`{"type":"image_generation_call","id":"item_2","status":"completed","result":"QUJD"}`,
		`{"role":"user","content":"Thanks."}`,
	}
	if got := responsesInputOf(string(sent)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, good := range []string{responsesCall1, responsesMsg1, responsesR1, `"hello"`, ``, `{`, `[`, `{"type":"message","id":5,"content":7}`} {
		if got := (&responsesWriter{}).repairItems(good); got != good {
			t.Errorf("%s became %s", good, got)
		}
	}
}

// FuzzResponsesRepair: repaired items stay JSON, and a second repair by another
// request changes nothing more.
func FuzzResponsesRepair(f *testing.F) {
	for _, seed := range []string{
		responsesCall1, responsesMsg1 + "," + responsesMsg1, responsesR1, responsesSearch + "," + responsesSearch,
		`{"type":"message","role":"assistant","content":[{"type":"input_image","image_url":null},{"type":"input_text","text":"x"}]}`,
		`{"type":"function_call_output","call_id":"c","output":{"text":"a"}}`, `{"id":{}}`, `{"type":"image_generation_call","id":"a"},{"type":"image_generation_call","id":"a"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, items string) {
		if !gjson.Valid("[" + items + "]") {
			(&responsesWriter{}).repairItems(items) // must not panic
			return
		}
		once := (&responsesWriter{}).repairItems(items)
		if !gjson.Valid("[" + once + "]") {
			t.Fatalf("%q became %q", items, once)
		}
		if twice := (&responsesWriter{}).repairItems(once); twice != once {
			t.Fatalf("%q became %q, and then %q", items, once, twice)
		}
	})
}
