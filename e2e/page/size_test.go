package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// hostile is what a tool could write to become more than text.
const hostile = `</script><script>window.broken = 1</script><img src=x onerror="window.broken = 2"><svg onload="window.broken = 3"></svg><style>*{display:none}</style>`

// large writes a request of so many messages: turns of ten, with calls and results,
// and in the third of each turn what a tool should not say.
func large(t *testing.T, n int) string {
	t.Helper()
	var messages []map[string]any
	for i := 0; len(messages) < n; i++ {
		messages = append(messages, map[string]any{"role": "user", "content": fmt.Sprintf("Request %d: look at part %d of the report, and say what is odd.", i, i)})
		for j := 0; j < 4 && len(messages)+1 < n; j++ {
			id := fmt.Sprintf("call_%d_%d", i, j)
			content := strings.Repeat(fmt.Sprintf("row %d.%d of the report, nothing odd here. ", i, j), 4+(i*7+j*3)%40)
			if j == 1 {
				content = hostile + content
			}
			messages = append(messages,
				map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "read_file", "arguments": fmt.Sprintf(`{"path":"report/%d-%d.txt"}`, i, j)}}}},
				map[string]any{"role": "tool", "tool_call_id": id, "content": content})
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": fmt.Sprintf("Nothing is odd in part %d.", i)})
	}
	data, err := json.Marshal(map[string]any{"model": "gpt-5.1", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// The bounds that the page is built for, three times as wide for times: the goals are 1 s and
// 100 ms, and a slow machine must not fail what a page ten times as slow should.
const (
	mostPicture = 3 * time.Second
	mostTask    = 300 * time.Millisecond
	mostMemory  = 150 << 20
)

// traced runs something and returns the longest task of the page meanwhile, and all of
// them, in processor time: others who share the machine do not count.
func (p *tab) traced(do func()) (longest, all time.Duration) {
	p.t.Helper()
	type event struct {
		Name     string
		PID, TID int
		Thread   int64 `json:"tdur"` // microseconds
		Args     struct{ Name string }
	}
	var events []event
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *tracing.EventDataCollected:
			for _, value := range e.Value {
				var one event
				if json.Unmarshal(value, &one) == nil {
					events = append(events, one)
				}
			}
		case *tracing.EventTracingComplete:
			close(done)
		}
	})
	p.do(tracing.Start().WithTransferMode(tracing.TransferModeReportEvents).WithTraceConfig(&tracing.TraceConfig{IncludedCategories: []string{"toplevel", "__metadata"}, ExcludedCategories: []string{"*"}}))
	do()
	p.do(tracing.End())
	select {
	case <-done:
	case <-time.After(patience):
		p.t.Fatal("the trace does not end")
	}
	mains := map[[2]int]bool{}
	for _, e := range events {
		if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
			mains[[2]int{e.PID, e.TID}] = true
		}
	}
	for _, e := range events {
		if mains[[2]int{e.PID, e.TID}] && strings.HasSuffix(e.Name, "RunTask") {
			took := time.Duration(e.Thread) * time.Microsecond
			longest = max(longest, took)
			all += took
		}
	}
	if all == 0 {
		p.t.Fatalf("the trace has no task among %d events", len(events))
	}
	return longest, all
}

// TestLarge: a conversation of 10,000 messages is seen at once, scrolls, and stays
// small.
func TestLarge(t *testing.T) {
	url := explain(t, large(t, 10_000), "--budget", "120000", "--counter", "chars/4")
	p := open(t, "about:blank", 1280, 800, false)
	began := time.Now()
	_, picture := p.traced(func() {
		p.do(chromedp.Navigate(url))
		p.until(`performance.getEntriesByName('first-picture').length > 0`)
	})
	wall := time.Duration(eval[float64](p, `performance.getEntriesByName('first-picture')[0].startTime`) * float64(time.Millisecond))
	rows := 0
	scrolled, _ := p.traced(func() {
		rows = eval[int](p, `new Promise((resolve) => {
			const log = document.querySelector('#log');
			let steps = 0, most = 0;
			const next = () => {
				log.scrollTop = (steps % 2 ? 1 : 0.37) * log.scrollHeight * steps / 120;
				log.dispatchEvent(new MouseEvent('mousemove', { bubbles: true }));
				most = Math.max(most, document.querySelectorAll('.row').length);
				if (++steps <= 120) requestAnimationFrame(next); else resolve(most);
			};
			next();
		})`)
	})
	acted, _ := p.traced(func() {
		p.do(chromedp.Focus("#log"))
		p.keys("n", "N", "n")
		p.until(`!document.querySelector('#panel').hidden`)
		p.do(fill("#search", "part 500 "))
		p.until(`document.querySelector('#found').innerText.endsWith(' of 10000')`)
		p.do(fill("#search", ""))
		p.click("#tab-time")
		p.until(`!document.querySelector('#time').hidden`)
	})
	memory := eval[float64](p, `performance.memory.usedJSHeapSize`)
	t.Logf("10,000 messages: first picture after %d ms (%d ms of the processor), longest task %d ms while scrolling and %d ms when acting, %d rows at most, %.1f MB of heap; %d ms in all",
		wall.Milliseconds(), picture.Milliseconds(), scrolled.Milliseconds(), acted.Milliseconds(), rows, memory/(1<<20), time.Since(began).Milliseconds())
	if picture > mostPicture {
		t.Errorf("the first picture took %s of the processor, more than %s", picture, mostPicture)
	}
	if scrolled > mostTask {
		t.Errorf("a task of %s while scrolling, more than %s", scrolled, mostTask)
	}
	if acted > 2*mostTask {
		t.Errorf("a task of %s, more than %s", acted, 2*mostTask)
	}
	if memory > mostMemory {
		t.Errorf("%.0f bytes of memory, more than %d", memory, mostMemory)
	}
	if rows > 200 {
		t.Errorf("%d rows are drawn", rows)
	}
	p.shoot("large")
}

// TestMarkupStaysText: what tools have written is seen as they wrote it, and nothing of
// it runs or draws, wherever the page shows it.
func TestMarkupStaysText(t *testing.T) {
	p := open(t, explain(t, large(t, 60), "--budget", "3000"), 1280, 800, false)
	p.until(`document.querySelectorAll('#log .row').length > 0`)
	p.do(chromedp.Focus("#log"))
	p.do(fill("#search", "window.broken"))
	p.until(`/^[1-9]\d* of /.test(document.querySelector('#found').innerText)`)
	p.click("#log .row")
	p.until(`document.querySelector('#panel pre').textContent.includes('<script>window.broken = 1')`)
	p.do(chromedp.Evaluate(`document.querySelector('#picture').dispatchEvent(new MouseEvent('mousemove', { clientX: 520, clientY: 400, bubbles: true }))`, nil))
	if eval[bool](p, `window.broken !== undefined || document.querySelectorAll('img, svg').length > 0 || document.querySelectorAll('script').length !== 2 || document.querySelectorAll('style').length !== 1`) {
		t.Error("text of a tool became markup")
	}
}
