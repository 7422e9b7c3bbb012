package estimators

import (
	"bytes"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// TestMeasure: every estimator has a row for each class, the quantiles are in
// order, and a ratio is far too low for East Asian text (benchmarks 6d).
func TestMeasure(t *testing.T) {
	set, err := references.Load(t.Context(), []string{"../../testdata/sessions"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Measure(t.Context(), set, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]Row{}
	for _, row := range r.Rows {
		at[row.Estimator+" "+row.Class] = row
		if row.P1 > row.P50 || row.P50 > row.P99 || row.Texts == 0 || row.Tokens < row.Texts*fewestTokens {
			t.Errorf("%+v", row)
		}
	}
	for _, e := range estimators {
		for _, class := range []string{base64Class, cjkClass} {
			if row, ok := at[e+" "+class]; !ok || !row.Made {
				t.Errorf("%s, %s: %+v", e, class, row)
			}
		}
	}
	if x := at["chars/4 "+cjkClass]; x.P99 > -0.4 {
		t.Errorf("a quarter of the characters of East Asian text is %+v", x)
	}
	if x := at["claude "+cjkClass]; x.P1 < 0 {
		t.Errorf("the estimate for Claude is below o200k for East Asian text: %+v", x)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "chars/4, CJK *") {
		t.Errorf("%v\n%s", err, &table)
	}
	for _, line := range strings.Split(table.String(), "\n") {
		if n := len([]rune(line)); n > 84 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	rough, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	if set, err = references.Load(t.Context(), []string{"../../testdata/sessions"}, rough, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(t.Context(), set, nil); err == nil {
		t.Error("an estimate is held against an estimate")
	}
}

// TestClasses: a text is of the class that its characters or its source say.
func TestClasses(t *testing.T) {
	result := func(id, text string) *thread.Message {
		return &thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	reads := map[string]bool{"go": true}
	for _, c := range []struct {
		m    *thread.Message
		want string
	}{
		{&thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Please fix the retry loop."}}}, proseClass},
		{&thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "See ```x := 1```"}}}, ""},
		{&thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{Arguments: `{"file_path":"a.go"}`}}}, jsonClass},
		{result("go", "package a\n"), codeClass},
		{result("sh", "PASS ok 0.1s"), ""},
		{result("sh", `[{"id":1}]`), jsonClass},
		{result("sh", "data: "+madeTexts(base64Class)[3]), base64Class},
		{result("go", eastern[1][0]), cjkClass},
	} {
		var got []string
		classified(c.m, reads, func(class, _ string) { got = append(got, class) })
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v is %q, want %q", c.m.Parts, s, c.want)
		}
	}
}
