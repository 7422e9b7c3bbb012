package care_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/care"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func open(tb testing.TB, sealer store.Sealer) *sqlite.DB {
	tb.Helper()
	db, err := sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "p.db"), &sqlite.Options{Sealer: sealer, CacheBytes: -1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

// filled puts something of every kind into a store, for two tenants.
func filled(tb testing.TB, db store.DB) store.DB {
	tb.Helper()
	ctx := tb.Context()
	for _, tenant := range []string{"", "acme"} {
		storetest.Fill(tb, db, tenant, "said by "+tenant)
		s := db.Tenant(tenant)
		content := strings.Repeat("much output of a tool\n", 9000)
		result := thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "x", Content: []thread.Part{thread.Text{Text: content}}}}}
		var long []thread.Message
		for n := range 1200 {
			long = append(long, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("message ", n)}}})
		}
		th, err := s.Log.Append(ctx, "long", 0, append(long, result))
		if err != nil {
			tb.Fatal(err)
		}
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "long", ThreadVersion: th.Len()}
		for v, action := range []func(){
			func() { p.Drops = []plan.Removal{{Span: th.Range(0, 3)}} },
			func() {
				p.Externalizations = []plan.Externalization{{Span: th.Range(1200, 1201), ArtifactID: artifact.IDOf("long", content), Summary: summary.Summary{CurrentTask: "t"}}}
			},
			func() { p.Drops = nil },
		} {
			action()
			next := *p
			if _, err := s.Plans.Commit(ctx, "long", v, store.Commit{Plan: &next, Events: []event.Event{{Type: event.Completed, TokensFreed: v}}}); err != nil {
				tb.Fatal(err)
			}
		}
		if _, err := s.Documents.Put(ctx, store.Document{Kind: "state", ID: "other", Body: []byte(`{ "a" : 1 }`)}); err != nil {
			tb.Fatal(err)
		}
		for _, c := range []string{content, "small"} {
			if _, err := artifact.NewStore(db.Artifacts(), nil).Put(ctx, artifact.Metadata{TenantID: tenant, ThreadID: "long"}, c); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return db
}

func check(tb testing.TB, db store.DB) (care.Counts, []care.Problem) {
	tb.Helper()
	var problems []care.Problem
	counts, err := care.Check(tb.Context(), db, func(p care.Problem) { problems = append(problems, p) })
	if err != nil {
		tb.Fatal(err)
	}
	return counts, problems
}

// TestSound: a store that was only used has no problem, and is counted right.
func TestSound(t *testing.T) {
	for name, db := range map[string]store.DB{"mem": mem.New(), "sqlite": open(t, nil), "sealed": open(t, storetest.Sealer{})} {
		counts, problems := check(t, filled(t, db))
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		if counts.Tenants != 2 || counts.Threads != 4 || counts.Plans != 8 || counts.Events != 8 || counts.Documents != 4 || counts.Artifacts != 4 || counts.Brought != 2 || counts.Messages < 2402 {
			t.Errorf("%s: %+v", name, counts)
		}
		counted, err := care.Count(t.Context(), db)
		counts.Brought = 0
		if err != nil || counted != counts {
			t.Errorf("%s: %+v, %v, want %+v", name, counted, err, counts)
		}
	}
}

// TestDamage: each kind of damage is told, with its place.
func TestDamage(t *testing.T) {
	for _, c := range []struct{ change, says string }{
		{`UPDATE messages SET content = x'00' WHERE position = 3`, `acme: thread long: the log: .*messages/4:long/1:3.*damaged`},
		{`DELETE FROM messages WHERE position = 1200`, `thread long: the log: .*1200 messages of 1201`},
		{`UPDATE messages SET id = 'x' WHERE position = 0`, `thread t: the log: .*damaged`},
		{`UPDATE plans SET content = (SELECT content FROM plans p WHERE p.thread = plans.thread AND p.version = 1)`, `plan 2: its pointer|marked as compacted`},
		{`DELETE FROM plans WHERE version = 1`, `thread t: plan 1: .*not found`},
		{`UPDATE plans SET content = x'01'`, `plan 1: .*damaged`},
		{`DELETE FROM marks`, `message .* is marked as compacted since plan 0`},
		{`INSERT INTO marks SELECT number, 7, 1 FROM threads WHERE name = 'long'`, `2 messages are marked as compacted, plan 3 covers 1`},
		{`DELETE FROM events WHERE position = 1`, `thread long: event 1: .*missing`},
		{`UPDATE events SET content = x'01'`, `event 1: .*damaged`},
		{`UPDATE documents SET content = x'01'`, `documents of kind memory: .*damaged`},
		{`UPDATE artifacts SET checksum = 1`, `artifact art_[0-9a-f]+: .*checksum`},
		{`UPDATE artifacts SET metadata = x'00'`, `artifact art_[0-9a-f]+: .*damaged`},
		{`UPDATE artifacts SET body = 'aa/bb' WHERE body <> ''`, `artifact art_[0-9a-f]+: .*damaged`},
	} {
		db := open(t, nil)
		filled(t, db)
		if _, err := db.SQL().Exec(c.change); err != nil {
			t.Fatalf("%s: %v", c.change, err)
		}
		_, problems := check(t, db)
		var all []string
		for _, p := range problems {
			all = append(all, p.String())
		}
		if text := strings.Join(all, "\n"); !regexp.MustCompile(c.says).MatchString(text) {
			t.Errorf("%s:\n%s", c.change, text)
		}
	}
}

// TestForgedText: a text that was changed with its checksum does not have the id
// of its message.
func TestForgedText(t *testing.T) {
	from := &bytes.Buffer{}
	if _, err := care.Export(t.Context(), filled(t, mem.New()), from); err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(from.String(), "message 17\"", "message 18\"", 1)
	db := open(t, nil)
	if _, err := care.Import(t.Context(), db, strings.NewReader(forged)); err != nil {
		t.Fatal(err)
	}
	_, problems := check(t, db)
	if len(problems) != 1 || !strings.Contains(problems[0].Where, "message 17,") || problems[0].Thread != "long" {
		t.Errorf("%v", problems)
	}
}

// TestPointers: one that leads nowhere is told; one whose content is still in
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
	for v, content := range []string{"content", "elsewhere"} {
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: 1, Externalizations: []plan.Externalization{{Span: th.Range(0, 1), ArtifactID: artifact.IDOf("t", content)}}}
		if _, err := s.Plans.Commit(ctx, "t", v, store.Commit{Plan: p}); err != nil {
			t.Fatal(err)
		}
	}
	_, problems := check(t, db)
	if len(problems) != 1 || problems[0].Where != "plan 2" || !strings.Contains(problems[0].Reason, "leads nowhere") {
		t.Errorf("%v", problems)
	}
}

// TestMove: from any store to any other and back, everything is the same byte
// for byte.
func TestMove(t *testing.T) {
	ctx := t.Context()
	var first bytes.Buffer
	want, err := care.Export(ctx, filled(t, mem.New()), &first)
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]store.DB{"mem": mem.New(), "sqlite": open(t, nil), "sealed": open(t, storetest.Sealer{})} {
		for range 2 { // the second time there is nothing left to do
			got, err := care.Import(ctx, db, bytes.NewReader(first.Bytes()))
			if err != nil || got != want {
				t.Fatalf("%s: %+v, %v, want %+v", name, got, err, want)
			}
		}
		if _, problems := check(t, db); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		var again bytes.Buffer
		if _, err := care.Export(ctx, db, &again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Bytes(), first.Bytes()) {
			a, b := firstDifference(first.String(), again.String())
			t.Errorf("%s: the export of the import is another:\n%.300s\n%.300s", name, a, b)
		}
		th, err := db.Tenant("acme").Log.Load(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		before := mem.New()
		storetest.Fill(t, before, "acme", "said by acme")
		wanted, err := before.Tenant("acme").Log.Load(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		storetest.Same(t, th, wanted)
	}
}

func firstDifference(a, b string) (string, string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for n := range x {
		if n >= len(y) || x[n] != y[n] {
			return x[n], strings.Join(y[n:min(n+1, len(y))], "")
		}
	}
	return "", ""
}

// TestCutOff: an export that was cut off anywhere is an error with its line, and
// the import can be run again with the whole.
func TestCutOff(t *testing.T) {
	ctx := t.Context()
	var whole bytes.Buffer
	if _, err := care.Export(ctx, filled(t, mem.New()), &whole); err != nil {
		t.Fatal(err)
	}
	data := whole.Bytes()
	db := open(t, nil)
	for _, n := range []int{0, 10, len(data) / 3, len(data) / 2, len(data) - 200, len(data) - 5} {
		if _, err := care.Import(ctx, db, bytes.NewReader(data[:n])); !errors.Is(err, care.ErrFormat) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := care.Import(ctx, db, bytes.NewReader(data)); err != nil {
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
	db := filled(t, mem.New())
	if _, err := care.Export(ctx, db, &whole); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"message 7"`, `"message seven"`}, {`"tokens_freed":2`, `"tokens_freed":3`}, {`{ \"a\" : 1 }`, `{ \"a\" : 2 }`}, {`"thread_version":1201`, `"thread_version":1200`},
	} {
		other := strings.Replace(whole.String(), change[0], change[1], 1)
		if other == whole.String() {
			t.Fatalf("%s is not in the export", change[0])
		}
		// A message without its id gets the one that its content gives.
		other = regexp.MustCompile(`"id":"[0-9a-f]{32}",`).ReplaceAllString(other, "")
		if _, err := care.Import(ctx, db, strings.NewReader(other)); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", change[0], err)
		}
	}
	for _, text := range []string{"", "x", "{}", `{"palimpsest_export":9}`, `[]`, "{\"palimpsest_export\":1}\n{\"thread\":\"t\"}", "{\"palimpsest_export\":1}\n{\"thread\":\"t\",\"message\":{\"v\":1,\"frame_back\":3}}"} {
		if _, err := care.Import(ctx, mem.New(), strings.NewReader(text)); !errors.Is(err, care.ErrFormat) {
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
	if _, err := care.Export(f.Context(), db, &whole); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte("{\"palimpsest_export\":1}\n{\"thread\":\"t\",\"message\":{\"v\":1,\"role\":\"user\"}}\n{\"end\":{\"tenants\":1,\"threads\":1,\"messages\":1}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		db := mem.New()
		_, err := care.Import(t.Context(), db, bytes.NewReader(data))
		if err != nil && !strings.Contains(err.Error(), "line ") {
			t.Fatal(err)
		}
		if _, err := care.Check(t.Context(), db, func(care.Problem) {}); err != nil {
			t.Fatal(err)
		}
	})
}
