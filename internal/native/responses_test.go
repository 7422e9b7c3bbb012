package native_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

const askedFor = `{"model":"gpt-5.2","instructions":"Be brief.","input":[
 {"role":"developer","content":"House rules."},
 {"type":"message","id":"msg_a","status":"completed","role":"user","content":[{"type":"input_text","text":"Fix the test."}]},
 {"type":"function_call","id":"fc_1","call_id":"call_1","name":"run","arguments":"{}"},
 {"type":"function_call_output","call_id":"call_1","output":"FAIL"},
 {"role":"user","content":"And <quickly>."},
 {"type":"compaction_trigger"}
],"tools":[
 {"type":"function","name":"run","parameters":{"type":"object"}}
],"store":false,"stream":true,"prompt_cache_key":"k"}`

// TestResponsesAnswers: the answers to the three ways to ask for a compaction alone have
// the documented shape (golden files).
func TestResponsesAnswers(t *testing.T) {
	r, err := native.ParseResponses(askedFor)
	if err != nil {
		t.Fatal(err)
	}
	if r.Trigger != `{"type":"compaction_trigger"}` || len(r.Items) != 5 || r.Stored || !r.Stream || native.CountInstructions(r.Items) != 1 {
		t.Errorf("read as %+v", r)
	}
	a := native.ResponsesAnswer{ID: "resp_1", Created: 1_780_000_000, Items: []string{native.CompactionItem("cmp_1", "sealed")}}
	golden(t, "trigger.json", a.Response(r)+"\n")
	golden(t, "trigger.sse", a.Events(r))
	a.Items = append(native.RetainedMessages(r.Items), a.Items...)
	golden(t, "compacted.json", a.CompactedBody()+"\n")
	for _, text := range []string{a.Response(r), a.CompactedBody()} {
		if !gjson.Valid(text) {
			t.Errorf("no JSON: %s", text)
		}
	}
}

// TestResponsesBody: what goes to a provider that knows nothing of compaction is the
// client's request without it; every other byte is the client's.
func TestResponsesBody(t *testing.T) {
	r, err := native.ParseResponses(`{ "model" : "m", "input":"hi <there>", "context_management":[{"type":"compaction","compact_threshold":1000}], "metadata":{"a": "\u003c"} , "x":1.0}`)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Managed || r.Threshold != 1000 {
		t.Errorf("read as %+v", r)
	}
	want := `{ "model" : "m", "input":[{"type":"message","role":"user","content":"hi <there>"}], "metadata":{"a": "\u003c"} , "x":1.0}`
	if got := r.Body(r.Items, "context_management"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := r.Body(nil); !strings.Contains(got, `"input":[]`) || !strings.Contains(got, "compact_threshold") {
		t.Errorf("got %s", got)
	}
}

// TestResponsesRefusals: requests that the provider refuses are refused here, with the
// member that is wrong.
func TestResponsesRefusals(t *testing.T) {
	for body, want := range map[string]string{
		`{"input":[{"type":"compaction_trigger"},{"role":"user","content":"x"}]}`:                                      `{"error":{"message":"compaction_trigger must be the final input item","type":"invalid_request_error","param":"input[0]","code":null}}`,
		`{"input":"x","context_management":{}}`:                                                                        `{"error":{"message":"want an array","type":"invalid_request_error","param":"context_management","code":null}}`,
		`{"input":"x","context_management":[{"type":"other"}]}`:                                                        `{"error":{"message":"invalid value: 'other'; supported is 'compaction'","type":"invalid_request_error","param":"context_management[0].type","code":null}}`,
		`{"input":"x","context_management":[{"type":"compaction"},{"type":"compaction","compact_threshold":999}]}`:     `{"error":{"message":"expected a whole number of at least 1000","type":"invalid_request_error","param":"context_management[1].compact_threshold","code":"integer_below_min_value"}}`,
		`{"input":"x","context_management":[{"type":"compaction","compact_threshold":1000.5}]}`:                        `{"error":{"message":"expected a whole number of at least 1000","type":"invalid_request_error","param":"context_management[0].compact_threshold","code":"integer_below_min_value"}}`,
		`{"input":"x","context_management":[{"type":"compaction","compact_threshold":"2000"}]}`:                        `{"error":{"message":"expected a whole number of at least 1000","type":"invalid_request_error","param":"context_management[0].compact_threshold","code":"integer_below_min_value"}}`,
		`{"input":[{"type":"compaction_trigger"},{"type":"compaction_trigger"}],"previous_response_id":"resp_of_old"}`: `{"error":{"message":"compaction_trigger must be the final input item","type":"invalid_request_error","param":"input[0]","code":null}}`,
	} {
		_, err := native.ParseResponses(body)
		var refusal *native.Refusal
		if !errors.As(err, &refusal) || refusal.Body() != want {
			t.Errorf("%s\n%v", body, err)
			if refusal != nil {
				t.Errorf("%s", refusal.Body())
			}
		}
	}
	for _, body := range []string{``, `[]`, `{"input":`, `"x"`} {
		if r, err := native.ParseResponses(body); err == nil || r != nil {
			t.Errorf("%q was read as %+v", body, r)
		}
	}
}

// FuzzResponses: whatever is read can be written again as JSON, and reads as the
// same items.
func FuzzResponses(f *testing.F) {
	f.Add(askedFor)
	f.Add(`{"input":"x","input":["y",1,null,{"type":"compaction","encrypted_content":"e"}],"model":7,"":{}}`)
	f.Add(`{"input":[{"role":"user"},{"type":"message","role":"user","id":"m","cont":[]},{"type":"compaction_trigger"}]}`)
	f.Add(`{"context_management":[{"type":"compaction","compact_threshold":1e4}],"previous_response_id":"r","conversation":{"id":"c"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := native.ParseResponses(body)
		if err != nil {
			return
		}
		out := r.Body(r.Items, "context_management", "previous_response_id")
		again, err := native.ParseResponses(out)
		if err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		if diff := cmp.Diff(r.Items, again.Items); diff != "" && !(len(r.Items) == 0 && len(again.Items) == 0) {
			t.Fatalf("%q became %q: %s", body, out, diff)
		}
		if again.Previous != "" || again.Managed || again.Trigger != "" {
			t.Fatalf("%q became %q", body, out)
		}
		a := native.ResponsesAnswer{ID: "resp_1", Items: append(native.RetainedMessages(r.Items), native.CompactionItem("c", "e"))}
		for _, text := range []string{a.Response(r), a.CompactedBody()} {
			if !gjson.Valid(text) {
				t.Fatalf("no JSON: %q", text)
			}
		}
	})
}
