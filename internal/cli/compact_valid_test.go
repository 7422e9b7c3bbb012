package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestFaultyInputIsCompacted: a request that its API would refuse as it is is compacted, with a warning;
// check finds it invalid. G8
func TestFaultyInputIsCompacted(t *testing.T) {
	var long strings.Builder
	for n := range 40 {
		id := strconv.Itoa(n)
		long.WriteString(`,{"role":"assistant","content":"Answer ` + id + `."},{"role":"user","content":"Question ` + id + strings.Repeat(", of the bolts", 40) + `"}`)
	}
	file := filepath.Join(t.TempDir(), "body.json")
	body := `{"model":"claude-opus-5","max_tokens":9,"temperature":7,"messages":[{"role":"user","content":"Begin."}` + long.String() + `]}`
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := run(t, "compact", file, "--budget", "3000", "--store", t.TempDir())
	if status != 0 || len(out) > len(body)*3/4 || !strings.Contains(stderr, "would refuse this, as it is in the input: temperature") {
		t.Errorf("status %d, %d bytes of %d: %s", status, len(out), len(body), stderr)
	}
	if status, _, _ := run(t, "check", file, "--to", "anthropic"); status != exitInvalid {
		t.Errorf("check: status %d", status)
	}
}

// TestCutMovesToValid: where a policy would cut between code at the provider and a call that it makes later,
// compact cuts at a place before the code, also where that is many messages away. G8
func TestCutMovesToValid(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"model":"claude-opus-5","max_tokens":9,"tools":[{"name":"read","input_schema":{"type":"object"}},{"type":"code_execution_20260120","name":"code_execution"}],"messages":[{"role":"user","content":"Begin."}`)
	for n := range 40 {
		id := strconv.Itoa(n)
		body.WriteString(`,{"role":"assistant","content":"Answer ` + id + `."},{"role":"user","content":"Question ` + id + strings.Repeat(", of the bolts", 40) + `"}`)
	}
	body.WriteString(`,{"role":"assistant","content":[{"type":"text","text":"I count."},{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"read()"}}]}`)
	loop := `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"row"}]}`
	called := `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"row"}]}]}`
	dir := t.TempDir()
	for _, steps := range []int{1, 9} {
		in, out := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.json")
		whole := body.String()
		for n := range steps {
			whole += strings.ReplaceAll(loop, "toolu_1", "toolu_1"+strconv.Itoa(n))
		}
		if err := os.WriteFile(in, []byte(whole+called), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, said, _ := run(t, "check", in, "--to", "anthropic"); status != 0 {
			t.Fatalf("the input is refused: %s", said)
		}
		status, _, stderr := run(t, "compact", in, "--policy", "last-messages:2", "--budget", "2000", "--store", "memory:", "-o", out)
		if status != exitDone {
			t.Errorf("%d steps between: status %d: %s", steps, status, stderr)
		}
		data, err := os.ReadFile(out)
		if checked, said, _ := run(t, "check", out, "--to", "anthropic"); err != nil || checked != 0 || !strings.Contains(string(data), "I count.") || strings.Contains(string(data), "Question 1,") {
			t.Errorf("%v, %s%.1500s", err, said, data)
		}
	}
}

// TestLargeSessionIsCompacted: a session of 34 MB in few tokens comes out in a size that the API reads. G5
func TestLargeSessionIsCompacted(t *testing.T) {
	const n = 40
	picture := "iVBORw0KGgoAAAANSUhEUgAAADwAAAA8" + strings.Repeat("AAAA", 34<<20/n/4)
	var body strings.Builder
	body.WriteString(`{"model":"claude-opus-5","max_tokens":9,"tools":[{"name":"shot","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Look."}`)
	for i := range n {
		id := strconv.Itoa(i)
		body.WriteString(`,{"role":"assistant","content":[{"type":"tool_use","id":"call_` + id + `","name":"shot","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_` + id +
			`","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}}]}]}`)
	}
	body.WriteString("]}")
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.json")
	if err := os.WriteFile(in, []byte(body.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := run(t, "check", in, "--to", "anthropic"); status != exitInvalid {
		t.Errorf("it is valid as it is: status %d", status)
	}
	if status, _, stderr := run(t, "compact", in, "--budget", "150000", "--store", filepath.Join(dir, "store"), "-o", out); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if status, said, _ := run(t, "check", out, "--to", "anthropic"); status != 0 {
		t.Errorf("it is refused: %s", said)
	}
	if data, err := os.ReadFile(out); err != nil || strings.Count(string(data), "tool_result") != n || strings.Count(string(data), "left out; call shot again") < n/5 {
		t.Errorf("%v, %d results", err, strings.Count(string(data), "tool_result"))
	}
}

// TestCheckDetects: without --to a body is checked by the API that it looks like one of, and one that looks like none is told.
func TestCheckDetects(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","max_tokens":9,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}]}`: "valid for the anthropic API",
		`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"Hi."}]}`:                      "valid for the openai API",
		`{"model":"m","input":[{"role":"user","content":"Hi."}]}`:                                                         "valid for the responses API",
		`{"contents":[{"role":"user","parts":[{"text":"Hi."}]}]}`:                                                         "valid for the gemini API",
		`{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{}}}]}]}`:               "the gemini API would refuse it",
		`{}`: "--to is missing: say which API",
	} {
		file := filepath.Join(t.TempDir(), "body.json")
		putFile(t, file, body, 0o600)
		if _, said, told := run(t, "check", file); !strings.Contains(said+told, want) {
			t.Errorf("%s: %s%s", body, said, told)
		}
	}
}
