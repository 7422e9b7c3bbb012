package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/lab/eval"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

func TestEval(t *testing.T) {
	measure := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		status := run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		return status, out.String(), errs.String()
	}
	const session = "../../../testdata/sessions/import-csv.openai-chat.json"
	status, out, errs := measure(session, "--budgets", "3k", "--contender", "auto", "--json", "--misses")
	var r eval.Report
	if err := json.Unmarshal([]byte(out), &r); status != 0 || err != nil || errs != "" {
		t.Fatalf("status %d, %v, %s", status, err, errs)
	}
	if len(r.Columns) != 1 || r.Columns[0].Name != "3k" || r.Columns[0].Eligible == 0 {
		t.Errorf("the report holds %+v", r.Columns)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if status, _, errs := measure(session, "--budgets", "3k", "--html", page); status != 0 || errs != "" {
		t.Errorf("status %d, %s", status, errs)
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("palimpsest-eval "+session+" --budgets 3k --html")) || !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("%v: the page is %.2000s", err, text)
	}
	status, out, errs = measure(session, "--budgets", "2k,3K,6k", "--contender", "auto", "--details", "--misses")
	for _, want := range []string{"auto", "oracle", "best simple", "misses of auto by type", "auto minus it", "Area over 2k, 3K, 6k"} {
		if status != 0 || !strings.Contains(out, want) || errs != "" {
			t.Errorf("status %d, %s, no %q in\n%s", status, errs, want, out)
		}
	}
	empty := t.TempDir()
	for want, args := range map[string][]string{
		"no transcript in " + empty + ": no file ends in .json": {empty},
		"no-such-file: no such file or directory":               {"no-such-file"},
		"no conversation of 1 has 50,000 tokens":                {session, "--cost"},
		"--tight has no effect here: it is for --validity":      {session, "--tight"},
		"--budgets has no effect here":                          {session, "--cost", "--budgets", "8k"},
		"--curve has its own budgets":                           {session, "--curve", "--budgets", "8k"},
		"there is no folder " + filepath.Join(empty, "no"):      {session, "--html", filepath.Join(empty, "no", "page.html")},
		`gaps "often": want recorded, fixed or lognormal`:       {session, "--cost", "--gaps", "often"},
		`no contender is called "x"; known are no compaction;`:  {session, "--cost", "--contender", "x"},
	} {
		status, _, errs := measure(args...)
		if status == 0 || !strings.Contains(errs, want) || strings.Contains(errs, "eval.") || strings.Contains(errs, "%!") {
			t.Errorf("%q: status %d, %s", args, status, errs)
		}
	}
	for _, bad := range [][]string{{}, {session, "--html", page, "--contender", "auto"}, {session, "--split", "half"}, {session, "--budgets", "much"}, {session, "--contender", "x"}, {session, "--counter", "x"}} {
		if status, _, errs := measure(bad...); status != 2 {
			t.Errorf("%q: status %d, %s", bad, status, errs)
		}
	}
	if status, _, _ := measure("no-such-file.jsonl"); status != 1 {
		t.Errorf("a missing file is status %d", status)
	}
}

// TestEvalSkips: what cannot be read is told of, a few by name and the others by
// their number, and a page says what it has not.
func TestEvalSkips(t *testing.T) {
	dir := t.TempDir()
	for n := range maxSkippedLines + 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("note%d.json", n)), []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	session, err := os.ReadFile("../../../testdata/sessions/small.openai-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "session.json"), session, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	page := filepath.Join(dir, "page.html")
	status := run(t.Context(), []string{dir, "--budgets", "3k", "--html", page}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if status != 0 || strings.Count(errs.String(), "skipped: ") != maxSkippedLines+1 || !strings.Contains(errs.String(), "3 files more") {
		t.Errorf("status %d, %s", status, &errs)
	}
	const want = "Cost was not measured: no conversation of 1 has 50,000 tokens"
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte(want)) || !strings.Contains(out.String(), want) {
		t.Errorf("%v: neither the page nor the output says %q", err, want)
	}
}

// TestEvalBrokenOff: what was measured before Ctrl-C is shown, and that it is not
// all.
func TestEvalBrokenOff(t *testing.T) {
	set, err := references.Load(t.Context(), []string{"../../../testdata/sessions/import-csv.openai-chat.json"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := evalOptions{budgets: []string{"3k"}, html: filepath.Join(t.TempDir(), "page.html")}
	var out, errs bytes.Buffer
	m, err := w.measure(ctx, set, &errs)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("broken off: %v", err)
	}
	if err := m.write(cli.Streams{Out: &out, Err: &errs}, &cobra.Command{}, &w); err != nil {
		t.Fatal(err)
	}
	const want = "Interrupted: 1 conversation not measured"
	if page, err := os.ReadFile(w.html); err != nil || !bytes.Contains(page, []byte(want)) || !strings.Contains(out.String(), want) {
		t.Errorf("%v, %q", err, out.String())
	}
}
