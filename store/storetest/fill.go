package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Fill writes something of every kind for a tenant, in the thread "t", with a
// text that must not be readable where things are encrypted.
func Fill(tb testing.TB, db store.DB, tenant, text string) {
	tb.Helper()
	ctx, s := tb.Context(), db.Tenant(tenant)
	th, err := s.Log.Append(ctx, "t", 0, append(everything(), say(thread.User, text)))
	if err != nil {
		tb.Fatal(err)
	}
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: th.Len(), Summarizations: []plan.Summarization{{
		Span: th.Range(1, 3), Summary: summary.Summary{CurrentTask: text}, SummaryTokens: 3, Origin: plan.Origin{Strategy: "test", Reason: text},
	}}}
	c := store.Commit{
		Plan: p, Events: []event.Event{{Type: event.Completed, TokensBefore: 7, Policy: "auto", Details: map[string]any{"round": 1}}},
		Documents: []store.Document{{Kind: "memory", ID: "t", Body: fmt.Appendf(nil, "%q", text)}},
	}
	if _, err := s.Plans.Commit(ctx, "t", 0, c); err != nil {
		tb.Fatal(err)
	}
	s.Answers.Put(ctx, "key", []byte(text))
}

// FillAll puts much of every kind into an empty store, for two tenants, and
// returns it.
func FillAll(tb testing.TB, db store.DB) store.DB {
	tb.Helper()
	ctx := tb.Context()
	for _, tenant := range []string{"", "acme"} {
		Fill(tb, db, tenant, "said by "+tenant)
		s := db.Tenant(tenant)
		content := strings.Repeat("much output of a tool\n", 9000)
		result := thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "x", Content: []thread.Part{thread.Text{Text: content}}}}}
		var long []thread.Message
		for n := range 700 {
			long = append(long, say(thread.User, fmt.Sprint("message ", n)))
		}
		th, err := s.Log.Append(ctx, "long", 0, append(long, result))
		if err != nil {
			tb.Fatal(err)
		}
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "long", ThreadVersion: th.Len()}
		for v, action := range []func(){
			func() { p.Drops = []plan.Removal{{Span: th.Range(0, 3)}} },
			func() {
				p.Externalizations = []plan.Externalization{{Span: th.Range(700, 701), ArtifactID: artifact.IDOf("long", content), Summary: summary.Summary{CurrentTask: "t"}}}
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
