package care_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func check(tb testing.TB, db store.DB) (care.Counts, []care.Problem) {
	tb.Helper()
	var problems []care.Problem
	counts, err := care.Check(tb.Context(), db, func(p care.Problem) { problems = append(problems, p) }, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return counts, problems
}

// TestSound: a store that was only used has no problem, and is counted right.
func TestSound(t *testing.T) {
	db := mem.New()
	counts, problems := check(t, storetest.FillAll(t, db))
	if len(problems) > 0 {
		t.Error(problems)
	}
	if counts.Tenants != 2 || counts.Threads != 4 || counts.Plans != 8 || counts.Events != 8 || counts.Documents != 4 || counts.Artifacts != 4 || counts.Brought != 2 || counts.Messages < 1402 {
		t.Errorf("%+v", counts)
	}
	counted, _, err := care.Count(t.Context(), db)
	counts.Brought = 0
	if err != nil || counted != counts {
		t.Errorf("%+v, %v, want %+v", counted, err, counts)
	}
}

// TestCountOfRemoved: what any plan removed is counted once, of all tenants.
func TestCountOfRemoved(t *testing.T) {
	_, removed, err := care.Count(t.Context(), storetest.FillAll(t, mem.New()))
	if want := (care.Removed{Messages: 2 * (2 + 3 + 1), Pointers: 2}); err != nil || removed != want {
		t.Errorf("%+v, %v, want %+v", removed, err, want)
	}
}

// TestForgedText: a text that was changed with its checksum does not have the id
// of its message.
func TestForgedText(t *testing.T) {
	from := &bytes.Buffer{}
	if _, err := care.Export(t.Context(), storetest.FillAll(t, mem.New()), from, nil); err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(from.String(), "message 17\"", "message 18\"", 1)
	db := mem.New()
	if _, err := care.Import(t.Context(), mem.New(), strings.NewReader(forged), nil, nil); !errors.Is(err, care.ErrFormat) || !strings.Contains(err.Error(), "one of them was changed") {
		t.Errorf("it is taken: %v", err)
	}
	if _, err := care.Import(t.Context(), db, strings.NewReader(forged), nil, &care.ImportOptions{AnyIDs: true}); err != nil {
		t.Fatal(err)
	}
	_, problems := check(t, db)
	if len(problems) != 1 || !strings.Contains(problems[0].Where, "message 17,") || problems[0].Thread != "long" {
		t.Errorf("%v", problems)
	}
}

// TestImportOfOthers: records that hold the name of another tenant or thread are refused, and so is another
// tenant than the one that was asked for, with the line; what was asked for is taken.
func TestImportOfOthers(t *testing.T) {
	from := &bytes.Buffer{}
	if _, err := care.Export(t.Context(), storetest.FillAll(t, mem.New()), from, nil); err != nil {
		t.Fatal(err)
	}
	const head, end = `{"palimpsest_export":1}` + "\n", `{"end":{"tenants":1,"threads":1,"events":1}}` + "\n"
	const message = `{"tenant":"mine","thread":"t","message":{"v":2,"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}}` + "\n"
	mine, empty := "mine", ""
	for name, test := range map[string]struct {
		export string
		tenant *string
		want   string // of the error; empty is none
	}{
		"an event of another tenant":      {head + `{"tenant":"mine","thread":"t","event":{"type":"x","thread_id":"t","tenant_id":"other"}}` + "\n" + end, nil, `line 2: a record of tenant "mine", thread "t" holds one of tenant "other"`},
		"an event of another thread":      {head + `{"tenant":"mine","thread":"t","event":{"type":"x","thread_id":"u"}}` + "\n" + end, nil, `thread "u"`},
		"an artifact of another tenant":   {head + `{"tenant":"mine","artifact":{"artifact_id":"art_0123456789abcdef","thread_id":"t","tenant_id":"other"},"content":"eA=="}` + "\n" + end, nil, `tenant "other"`},
		"its own event":                   {head + `{"tenant":"mine","thread":"t","event":{"type":"x","thread_id":"t","tenant_id":"mine"}}` + "\n" + end, &mine, ""},
		"a tenant that was not asked for": {head + `{"tenant":"other","thread":"t","event":{"type":"x"}}` + "\n" + end, &mine, `line 2: a record of tenant "other", and only those of "mine"`},
		"a plan of another thread":        {head + message + `{"tenant":"mine","thread":"t","plan":{"schema_version":1,"thread_id":"u","thread_version":1}}` + "\n" + end, nil, `it was made for thread "u"`},
		"a plan of other messages":        {head + message + `{"tenant":"mine","thread":"t","plan":{"schema_version":1,"thread_id":"t","thread_version":1,"drops":[{"span":{"message_ids":["m9"]},"reason":"x"}]}}` + "\n" + end, nil, "m9"},
		"one of several":                  {from.String(), &empty, "and only those of"},
		"all of several":                  {from.String(), nil, ""},
	} {
		_, err := care.Import(t.Context(), mem.New(), strings.NewReader(test.export), nil, &care.ImportOptions{Tenant: test.tenant})
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, care.ErrFormat) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPointers: a broken one is reported; one whose content is still in
// the log is none.
func TestPointers(t *testing.T) {
	ctx := t.Context()
	db := mem.New()
	s := db.Tenant("")
	m := thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{Content: []thread.Part{thread.Text{Text: "content"}}}}}
	th, err := s.Log.Append(ctx, "t", 0, []thread.Message{m})
	if err != nil {
		t.Fatal(err)
	}
	version, want := 0, []string{}
	for _, content := range []string{"content", "elsewhere"} {
		for n := range 3 {
			text := content
			if content == "elsewhere" {
				text = fmt.Sprint(content, n)
			}
			p, id := &plan.Plan{}, artifact.IDOf("t", text)
			kept := []plan.Kept{{ArtifactID: id, MessageID: th.At(0).ID}}
			switch n {
			case 0:
				p.Externalizations = []plan.Externalization{{Span: th.Range(0, 1), ArtifactID: id}}
			case 1:
				p.Summarizations = []plan.Summarization{{Span: th.Range(0, 1), Kept: kept}}
			case 2:
				p.Drops = []plan.Removal{{Span: th.Range(0, 1), Kept: kept}}
			}
			p.Schema, p.ThreadID, p.ThreadVersion = plan.SchemaVersion, "t", 1
			if version, err = s.Plans.Commit(ctx, "t", version, store.Commit{Plan: p}); err != nil {
				t.Fatal(err)
			}
			if content == "elsewhere" {
				want = append(want, fmt.Sprint("plan ", version))
			}
		}
	}
	_, problems := check(t, db)
	broken := []string{}
	for _, p := range problems {
		if broken = append(broken, p.Where); !strings.Contains(p.Reason, "is broken") {
			t.Error(p)
		}
	}
	if !slices.Equal(broken, want) {
		t.Errorf("broken in %v, want %v", broken, want)
	}
	if _, removed, err := care.Count(ctx, db); err != nil || removed.Pointers != 4 {
		t.Errorf("%+v, %v", removed, err)
	}
}

// TestCutOff: an export that was cut off anywhere is an error with its line, and
// the import can be run again with the whole.
func TestCutOff(t *testing.T) {
	ctx := t.Context()
	var whole bytes.Buffer
	if _, err := care.Export(ctx, storetest.FillAll(t, mem.New()), &whole, nil); err != nil {
		t.Fatal(err)
	}
	data := whole.Bytes()
	db := mem.New()
	for _, n := range []int{0, 10, len(data) / 3, len(data) / 2, len(data) - 200, len(data) - 5} {
		if _, err := care.Import(ctx, db, bytes.NewReader(data[:n]), nil, nil); !errors.Is(err, care.ErrFormat) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := care.Import(ctx, db, bytes.NewReader(data), nil, nil); err != nil {
		t.Error(err)
	}
	if _, problems := check(t, db); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestOther: what differs from the store is a conflict, and other texts are no
// export.
func TestOther(t *testing.T) {
	ctx := t.Context()
	var whole bytes.Buffer
	db := storetest.FillAll(t, mem.New())
	if _, err := care.Export(ctx, db, &whole, nil); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"message 7"`, `"message seven"`}, {`"tokens_freed":2`, `"tokens_freed":3`}, {`{ \"a\" : 1 }`, `{ \"a\" : 2 }`}, {`"thread_version":701`, `"thread_version":700`},
	} {
		other := strings.Replace(whole.String(), change[0], change[1], 1)
		if other == whole.String() {
			t.Fatalf("%s is not in the export", change[0])
		}
		// A message without its id gets the one that its content gives.
		other = regexp.MustCompile(`"id":"[0-9a-f]{32}",`).ReplaceAllString(other, "")
		if _, err := care.Import(ctx, db, strings.NewReader(other), nil, nil); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", change[0], err)
		}
	}
	for text, head := range map[string]bool{"": false, "x": false, "{}": false, `{"palimpsest_export":9}`: false, `[]`: false, whole.String()[:100]: true} {
		read, err := care.ReadHead(strings.NewReader(text))
		if (err == nil) != head || err != nil && !errors.Is(err, care.ErrFormat) {
			t.Errorf("the head of %q: %v", text, err)
		}
		if err != nil {
			continue
		}
		if again, err := io.ReadAll(read); err != nil || string(again) != text {
			t.Errorf("%q was left of %q, %v", again, text, err)
		}
	}
	for _, text := range []string{"", "x", "{}", `{"palimpsest_export":9}`, `[]`, "{\"palimpsest_export\":1}\n{\"thread\":\"t\"}", "{\"palimpsest_export\":1}\n{\"thread\":\"t\",\"message\":{\"v\":1,\"frame_back\":3}}"} {
		if _, err := care.Import(ctx, mem.New(), strings.NewReader(text), nil, nil); !errors.Is(err, care.ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzImport: any text is an error or an import, and what is imported is sound
// enough to be exported.
func FuzzImport(f *testing.F) {
	var whole bytes.Buffer
	db := mem.New()
	storetest.Fill(f, db, "acme", "x")
	if _, err := care.Export(f.Context(), db, &whole, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte("{\"palimpsest_export\":1}\n{\"thread\":\"t\",\"message\":{\"v\":1,\"role\":\"user\"}}\n{\"end\":{\"tenants\":1,\"threads\":1,\"messages\":1}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		db := mem.New()
		_, err := care.Import(t.Context(), db, bytes.NewReader(data), nil, nil)
		if _, headErr := care.ReadHead(bytes.NewReader(data)); headErr != nil && err == nil {
			t.Fatalf("imported, though its head is wrong: %v", headErr)
		}
		if err != nil && !strings.Contains(err.Error(), "line ") {
			t.Fatal(err)
		}
		if _, err := care.Check(t.Context(), db, func(care.Problem) {}, nil); err != nil {
			t.Fatal(err)
		}
	})
}
