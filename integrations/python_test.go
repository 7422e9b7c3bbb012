package integrations_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// looped is what testdata/loop.py writes.
type looped struct {
	Requests    []anthropicRequest
	Resumed     anthropicRequest
	Looked      string // the result of the lookup
	Last, Again string
	Refused     []struct {
		Status     int
		Kind, Says string
	}
	Waited []float64
}

// anthropicRequest is what the loop's model is asked.
type anthropicRequest struct {
	Messages []struct{ Content json.RawMessage }
	Tools    []struct{ Name string }
}

func (r anthropicRequest) size() (bytes int) {
	for _, m := range r.Messages {
		bytes += len(m.Content)
	}
	return bytes
}

// TestPythonLoop runs the loop that docs/api.md shows, beside a real daemon: 30 parts
// through a window of 20,000 tokens, one rejection as too long, one answer of the daemon that
// says to wait, and one lookup of what was removed.
func TestPythonLoop(t *testing.T) {
	python := interpreter(t, "python3")
	var prepared atomic.Int64
	url := serve(t, busy, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/prepare") && prepared.Add(1) == 3
	})
	out, err := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "loop.py"), filepath.Join("..", "examples", "python", "loop.py"), url, "30").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got looped
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Last != "The code of part 1 is K7919" || !strings.Contains(got.Looked, "the code is K7919") || !strings.Contains(got.Looked, `"tool_result"`) {
		t.Errorf("it said %q after a lookup that found %s", got.Last, got.Looked)
	}
	if len(got.Requests) != 33 { // the parts, the rejected one again, the lookup, the end
		t.Errorf("%d requests", len(got.Requests))
	}
	whole := 0
	for i, r := range got.Requests {
		if r.size() > 20_000*4 {
			t.Errorf("request %d has %d bytes", i, r.size())
		}
		whole = max(whole, len(r.Messages))
	}
	first, last := got.Requests[0], got.Requests[len(got.Requests)-1]
	if len(first.Tools) != 1 || len(last.Tools) != 3 {
		t.Errorf("the tools are %v, then %v", first.Tools, last.Tools)
	}
	if len(last.Messages) >= 2*len(got.Requests)-4 {
		t.Errorf("nothing was removed from %d messages", len(last.Messages))
	}
	if got.Resumed.size() == 0 || !strings.Contains(got.Again, "The code of part 1 is") {
		t.Errorf("the conversation does not go on: %q", got.Again)
	}
	if fmt.Sprint(got.Waited) != "[7]" {
		t.Errorf("it waited %v", got.Waited)
	}
	if len(got.Refused) != 2 || got.Refused[0].Status != 400 || got.Refused[0].Kind != "bad-request" || got.Refused[1].Status != 404 {
		t.Errorf("refused: %+v", got.Refused)
	}
}

// TestPythonLoopIsShown: docs/api.md shows the end of the file, as it is.
func TestPythonLoopIsShown(t *testing.T) {
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../examples/python/loop.py")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```python\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !strings.HasPrefix(shown, "def run(") || !strings.HasSuffix(string(file), "\n\n\n"+shown) {
		t.Errorf("the page shows another loop:\n%s", shown)
	}
}

// busy is what a daemon answers at its limit.
func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(http.StatusTooManyRequests)
	fmt.Fprint(w, `{"type":"x#too-many-requests","detail":"wait"}`)
}
