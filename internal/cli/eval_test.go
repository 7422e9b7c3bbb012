package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/eval"
)

func TestEval(t *testing.T) {
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		status := Run(t.Context(), append([]string{"eval"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		return status, out.String(), errs.String()
	}
	const session = "../../testdata/sessions/import-csv.openai-chat.json"
	status, out, errs := run(session, "--budgets", "3k", "--json", "--misses")
	var r eval.Report
	if err := json.Unmarshal([]byte(out), &r); status != done || err != nil || errs != "" {
		t.Fatalf("status %d, %v, %s", status, err, errs)
	}
	if len(r.Columns) != 1 || r.Columns[0].Name != "3k" || r.Columns[0].Eligible == 0 {
		t.Errorf("the report holds %+v", r.Columns)
	}
	status, out, _ = run(session, "--budgets", "3k", "--contender", "auto", "--misses")
	for _, want := range []string{"auto", "oracle", "best simple", "misses of auto by type"} {
		if status != done || !strings.Contains(out, want) {
			t.Errorf("status %d, no %q in\n%s", status, want, out)
		}
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if status, _, errs := run(session, "--budgets", "3k", "--html", page); status != done || errs != "" {
		t.Errorf("status %d, %s", status, errs)
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("palimpsest eval "+session+" --budgets 3k --html")) || !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("%v: the page is %.2000s", err, text)
	}
	for _, bad := range [][]string{{}, {session, "--html", page, "--contender", "auto"}, {session, "--split", "half"}, {session, "--budgets", "much"}, {session, "--contender", "x"}, {session, "--counter", "x"}} {
		if status, _, errs := run(bad...); status != usage {
			t.Errorf("%q: status %d, %s", bad, status, errs)
		}
	}
	if status, _, _ := run("no-such-file.jsonl"); status != failed {
		t.Errorf("a missing file is status %d", status)
	}
}
