package page_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// between puts an expression between the page and its daemon: it may await what the daemon
// answers, and gives what the page gets.
func (p *tab) between(expression string) {
	p.t.Helper()
	p.do(chromedp.Evaluate(`(() => { const ask = window.fetch; window.asked = []; window.fetch = async (url, o) => { asked.push(url); `+expression+` }; return true; })()`, nil))
}

// TestLateAnswer: a thread whose answer comes when the user has gone home shows nothing, and
// is not watched.
func TestLateAnswer(t *testing.T) {
	d, id := kept(t)
	p := open(t, d.url+"/", 1280, 800, false)
	p.until(`document.querySelector('#threads button')`)
	p.between(`
		const answer = await ask(url, o);
		if (!url.includes('/view')) return answer;
		const text = await answer.text();
		await new Promise((resolve) => { window.release = resolve; });
		return new Response(text, answer);`)
	p.do(chromedp.Evaluate(`location.hash = '#/thread/`+id+`'`, nil))
	p.until(`window.release`)
	p.do(chromedp.Evaluate(`location.hash = '#/'`, nil))
	p.until(`asked.some((url) => url === '/v1/sessions')`)
	if got := eval[string](p, `(async () => { release(); await (await fetch('/v1/threads')).text(); await (await fetch('/v1/threads')).text(); return [document.querySelector('#session').hidden, location.hash, asked.filter((url) => url.includes('/events')).length].join(); })()`); got != "true,#/,0" {
		t.Errorf("at home: %s", got)
	}
}

// TestTextAsksAgain: a text that could not be had is asked for again with the next look.
func TestTextAsksAgain(t *testing.T) {
	d, id := kept(t)
	p := open(t, d.url+"/#/thread/"+id, 1280, 800, false)
	p.until(loaded)
	p.between(`if (url.includes('/text?') && !window.mended) throw new TypeError('the network is gone'); return ask(url, o);`)
	const said = `document.querySelector('#panel pre').innerText`
	p.click("#log .row")
	p.until(`document.querySelector('#panel pre') && ` + said + `.includes('the network is gone')`)
	p.do(chromedp.Evaluate(`window.mended = true; document.querySelector('[data-act=Close]').click()`, nil))
	p.click("#log .row")
	p.until(`document.querySelector('#panel pre') && !` + said + `.includes('the network is gone') && ` + said + `.length > 10`)
}

// TestManyThreads: threads come in the order of their ids. The newest are shown, wherever they
// stand, and a search finds all.
func TestManyThreads(t *testing.T) {
	d := serve(t)
	p := open(t, d.url+"/", 1280, 800, false)
	p.until(`document.querySelector('#threads .none')`)
	p.between(`
		if (!url.startsWith('/v1/threads?')) return ask(url, o);
		const from = Number(new URL(url, location).searchParams.get('cursor') || 0);
		const items = Array.from({ length: 50 }, (_, n) => ({ id: 't' + (from + n), version: 1, changed_at: new Date(1e12 + 1000 * (from + n)).toISOString(), about: { title: 'title-' + (from + n) + '.' } }));
		return Response.json({ items, next: from < 650 ? String(from + 50) : undefined });`)
	p.do(chromedp.Evaluate(`location.hash = '#/home'`, nil))
	p.until(`document.querySelector('#threads .none') && document.querySelector('#threads .none').innerText.includes('newest 500 of 700')`)
	if got := eval[string](p, `[document.querySelectorAll('#threads button').length, document.querySelector('#threads button').innerText].join()`); got != "500,title-699." {
		t.Errorf("shown are %s", got)
	}
	for query, want := range map[string]string{"title-3.": "title-3.", "nothing-like-it": "No thread matches."} {
		p.do(fill("#search", query))
		p.until(fmt.Sprintf(`document.querySelector('#threads').innerText.includes(%q)`, want))
	}
}
