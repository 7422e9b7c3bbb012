package web_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/internal/glyph"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/internal/web"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// shown is a sample session under the plan of a budget.
func shown(t *testing.T, file string, budget int) web.Input {
	t.Helper()
	read, err := transcript.Open("../../testdata/sessions/"+file, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := read.Transcripts[0]
	return made(t, tr.Thread, &prompt.Prompt{Model: "claude-sonnet-4-5", System: tr.System, Tools: tr.Tools}, budget)
}

func made(t *testing.T, log *thread.Thread, base *prompt.Prompt, budget int) web.Input {
	t.Helper()
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter, Now: func() time.Time { return time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Base: base, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	model, err := token.Models().Find("claude-sonnet-4-5")
	if err != nil {
		t.Fatal(err)
	}
	return web.Input{
		Thread: log, Result: res, Counter: counter, Model: model, Budget: budget, Window: model.Window, MaxTextBytes: 1 << 20,
		Plans: []web.PlanResult{{Result: res}},
	}
}

// TestOwnCompactions: what stood before a compaction of the agent's own was sent no more behind it.
func TestOwnCompactions(t *testing.T) {
	s := shown(t, "fix-retry.claude-code.jsonl", 1_000_000)
	s.Plans = nil
	before := web.View(s)
	const at = 100
	s.Marks = []view.Mark{{At: at}}
	for n, step := range web.View(s).Steps {
		want := before.Steps[n].Sent
		for i := 0; i < at && step.At >= at; i++ {
			want -= s.Result.Sizes[i]
		}
		if step.Sent != want || step.Whole != before.Steps[n].Whole {
			t.Fatalf("request %d at message %d: %d tokens sent of %d, want %d", n, step.At, step.Sent, step.Whole, want)
		}
	}
}

// TestGolden: the view of a sample session, as the page gets it.
func TestGolden(t *testing.T) {
	s := shown(t, "small.openai-chat.json", 2_600)
	v := web.View(s)
	got, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/small.json", append(got, '\n'))
}

// TestViewAddsUp: what the view says of a session fits together, and with the plan.
func TestViewAddsUp(t *testing.T) {
	for file, budget := range map[string]int{"fix-retry.claude-code.jsonl": 16_000, "import-csv.openai-chat.json": 12_000, "small.openai-chat.json": 100_000} {
		t.Run(file, func(t *testing.T) {
			s := shown(t, file, budget)
			v := web.View(s)
			if len(v.Messages) != s.Thread.Len() || v.Version != s.Thread.Len() {
				t.Fatalf("%d messages of %d", len(v.Messages), s.Thread.Len())
			}
			actions := s.Result.Plan.Actions()
			covered := make([]int, len(v.Records))
			for i, m := range v.Messages {
				action := plan.Include
				if m.Record >= 0 {
					action = v.Records[m.Record].Action
					covered[m.Record]++
				}
				if want := actions[m.ID].Action; action != want {
					t.Errorf("message %d: %s, the plan says %s", i, action, want)
				}
				if m.Tokens != s.Result.Sizes[i] {
					t.Errorf("message %d: %d tokens, want %d", i, m.Tokens, s.Result.Sizes[i])
				}
			}
			for n, r := range v.Records {
				if covered[n] != r.Messages || v.Messages[r.First].Record != n || v.Messages[r.Last].Record != n || r.Reason == "" {
					t.Errorf("%s covers %d messages, %d to %d: %+v", r.Path, covered[n], r.First, r.Last, r)
				}
			}
			kept := 0
			for _, p := range v.Prompt {
				if p.From < -1 || p.From >= len(v.Messages) || p.Record >= len(v.Records) {
					t.Errorf("a part of the prompt points outside: %+v", p)
				}
				if p.Record < 0 && p.From >= 0 && p.Text == "" && p.Label == "" {
					kept++
					if v.Messages[p.From].Record >= 0 {
						t.Errorf("message %d is in the prompt as it was, under %s", p.From, v.Records[v.Messages[p.From].Record].Path)
					}
				}
			}
			if kept == 0 {
				t.Error("no message was kept")
			}
			last := v.Steps[len(v.Steps)-1]
			if last.At != len(v.Messages) || last.Whole != v.Before || last.Sent != v.After {
				t.Errorf("the next request is %+v, want %d and %d tokens", last, v.Before, v.After)
			}
			for i, step := range v.Steps[1:] {
				if step.Whole < v.Steps[i].Whole || step.Sent > step.Whole || step.At <= v.Steps[i].At {
					t.Errorf("step %d: %+v after %+v", i+1, step, v.Steps[i])
				}
			}
		})
	}
}

// TestSeveralPlans: each request is shown under the plan of its time, and a plan that
// grows out of another keeps its prefix.
func TestSeveralPlans(t *testing.T) {
	s := shown(t, "fix-retry.claude-code.jsonl", 16_000)
	c, err := palimpsest.New(palimpsest.Config{Counter: s.Counter})
	if err != nil {
		t.Fatal(err)
	}
	one, n := palimpsest.Request{Thread: s.Thread.Prefix(120), Budget: 16_000}, s.Thread.Len()
	first, err := c.Compact(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	one.Thread = s.Thread
	old := first.Plan.Clone()
	old.CreatedAt = s.Thread.At(119).Time
	early, err := c.Render(old, one)
	if err != nil {
		t.Fatal(err)
	}
	s.Plans = []web.PlanResult{{Version: 1, Result: early}, {Version: 2, Result: s.Result}}
	v := web.View(s)
	if v.Plans[0].At != 120 || v.Plans[1].At != n {
		t.Errorf("plans at %d and %d", v.Plans[0].At, v.Plans[1].At)
	}
	if v.Plans[0].Prefix <= 0 || v.Plans[0].Prefix > first.After {
		t.Errorf("the first plan keeps %d tokens", v.Plans[0].Prefix)
	}
	for _, step := range v.Steps {
		if step.At < 120 && step.Sent != step.Whole {
			t.Errorf("before any plan: %+v", step)
		}
		if step.At >= 120 && step.Sent >= step.Whole {
			t.Errorf("under a plan: %+v", step)
		}
	}
	whole, sent := 0.0, 0.0
	for _, step := range v.Steps {
		whole += step.WholeUSD
		sent += step.SentUSD
	}
	if !v.Cached || whole <= 0 || sent <= 0 || sent >= whole {
		t.Errorf("$%f with plans, $%f without", sent, whole)
	}
}

// TestPlanOfAnotherCounter: the sizes of a plan are of one counter, which is named where it is
// not that of the page.
func TestPlanOfAnotherCounter(t *testing.T) {
	s := shown(t, "fix-retry.claude-code.jsonl", 16_000)
	old := s.Result.Plan.Clone()
	old.Counter, old.OriginalTokens, old.CompactedTokens = "chars/4", 90_000, 9_000
	under := *s.Result
	under.Plan = old
	s.Plans = []web.PlanResult{{Version: 1, Result: &under}, {Version: 2, Result: s.Result}}
	plans := web.View(s).Plans
	if p := plans[0]; p.Counter != "chars/4" || p.Before != 90_000 || p.After != 9_000 {
		t.Errorf("the plan of another counter: %+v", p)
	}
	if p := plans[1]; p.Counter != "" || p.Before != s.Result.Before || p.After != s.Result.After {
		t.Errorf("the plan of the page's counter: %+v", p)
	}
}

// TestTextsAreBounded: a page of a long session stays one that a browser can open.
func TestTextsAreBounded(t *testing.T) {
	s := shown(t, "fix-retry.claude-code.jsonl", 16_000)
	for _, bound := range []int{0, 50_000, 1 << 20} {
		s.MaxTextBytes = bound
		v, total, cut := web.View(s), 0, false
		for _, m := range v.Messages {
			total += len(m.Text)
			cut = cut || m.Cut
		}
		for _, p := range v.Prompt {
			total += len(p.Text)
		}
		if total > bound+bound/4+40*len(v.Messages) && bound > 0 || bound == 0 && total > 0 || cut == (bound == 0) && bound > 0 {
			t.Errorf("%d bytes of texts, bound %d, cut %t", total, bound, cut)
		}
	}
}

// hostile is what a tool could write to get out of where it stands.
const hostile = `</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> --> ]]>` + "\u2028\u202e"

// TestNothingEndsTheData: text of tools cannot end the element that it stands in.
func TestNothingEndsTheData(t *testing.T) {
	log, err := thread.New("x").Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: hostile}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "1", Name: hostile, Arguments: `{"path":"` + "</script>" + `"}`}}},
		thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "1", Tool: hostile, Content: []thread.Part{thread.Text{Text: hostile}}}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "2", Name: "context_note", Arguments: `{"action":"write","text":"</script>\u202eevil"}`}}},
		thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "2", Tool: "context_note", Content: []thread.Part{thread.Text{Text: "Noted as n1."}}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	s := made(t, log, nil, 100_000)
	s.Title = hostile
	var page bytes.Buffer
	if err := web.Write(&page, web.View(s)); err != nil {
		t.Fatal(err)
	}
	html := page.String()
	_, rest, _ := strings.Cut(html, `<script type="application/json" id="data">`)
	data, rest, _ := strings.Cut(rest, "</script>")
	if strings.ContainsAny(data, "<>&") {
		t.Error("the data holds characters of markup")
	}
	var v view.View
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatal(err)
	}
	if v.Messages[0].Text != hostile || v.Title != glyph.Visible(hostile) {
		t.Errorf("the text came back as %q", v.Messages[0].Text)
	}
	if want := glyph.Visible("n1: </script>\u202eevil"); len(v.Notes) != 1 || v.Notes[0] != want || strings.Contains(v.Notes[0], "\u202e") {
		t.Errorf("the notes came back as %q, want %q", v.Notes, want)
	}
	if n := strings.Count(rest, "<script"); n != 1 {
		t.Errorf("%d scripts follow the data, want 1", n)
	}
}

// TestOneFile: the page asks for nothing, and its policy names the script and the
// style that are in it.
func TestOneFile(t *testing.T) {
	var page bytes.Buffer
	if err := web.Write(&page, web.View(shown(t, "small.openai-chat.json", 2_600))); err != nil {
		t.Fatal(err)
	}
	html := page.String()
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(html)
	if policy == nil || strings.Contains(policy[1], "unsafe") || !strings.Contains(policy[1], "default-src 'none'") {
		t.Fatalf("the policy is %q", policy)
	}
	for _, element := range []string{"script", "style"} {
		all := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(html, -1)
		if len(all) != 1 {
			t.Fatalf("%d elements %s", len(all), element)
		}
		sum := sha256.Sum256([]byte(all[0][1]))
		if !strings.Contains(policy[1], element+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("the policy does not name the %s of the page", element)
		}
	}
	if found := regexp.MustCompile(`(src|href)="(https?:)?//|@import|url\(`).FindString(html); found != "" {
		t.Errorf("the page loads something: %s", found)
	}
}

// TestServed: the served page has a strict policy, and no script or style within.
func TestServed(t *testing.T) {
	for path, kind := range map[string]string{"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8"} {
		w := httptest.NewRecorder()
		web.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		h := w.Result().Header
		if w.Code != 200 || h.Get("Content-Type") != kind || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		policy := h.Get("Content-Security-Policy")
		if strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if path == "/" && regexp.MustCompile(`<script>|<style|style=|\son\w+=`).MatchString(w.Body.String()) {
			t.Error("the served page has a script or a style of its own")
		}
		if path == "/" && !strings.Contains(w.Body.String(), "<noscript><p>This page") {
			t.Error("without scripts the page says nothing")
		}
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/page.html", nil))
	if w.Code != 404 {
		t.Errorf("/page.html: %d", w.Code)
	}
}

// TestScriptKnowsNoMarkup: the script makes elements and texts, and never reads
// markup from a text.
func TestScriptKnowsNoMarkup(t *testing.T) {
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/page.js", nil))
	if found := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc`).FindString(w.Body.String()); found != "" {
		t.Errorf("the script uses %s", found)
	}
}

// TestPartText: what is asked for by its position is what the view says of it.
func TestPartText(t *testing.T) {
	s := shown(t, "import-csv.openai-chat.json", 12_000)
	v := web.View(s)
	for n, p := range v.Prompt {
		text, ok := web.PartText(s, n)
		want := p.Text
		if p.Text == "" && p.From >= 0 {
			want = web.Text(s.Thread.At(p.From))
		}
		if !ok || !p.Cut && text != want {
			t.Errorf("part %d: %q, want %q", n, text, want)
		}
	}
	if _, ok := web.PartText(s, len(v.Prompt)); ok {
		t.Error("there is a part behind the last")
	}
}
