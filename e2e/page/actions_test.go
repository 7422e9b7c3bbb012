package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// kept is a daemon with the sample session as a thread that was compacted, and as a
// session of an agent. It returns the id of the thread.
func kept(t *testing.T) (*daemon, string) {
	t.Helper()
	d := &daemon{t: t, home: t.TempDir()}
	dir := filepath.Join(d.home, ".claude", "projects", "shipq")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(session)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "91bfefb2-9533-4bcc-8bfc-f00dd138f269.jsonl"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := d.command("compact", session, "--budget", "16000", "--store", filepath.Join(d.home, "p.db"), "-o", os.DevNull).CombinedOutput(); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	d.start()
	page := d.ask("GET", "/v1/threads", nil)
	return d, page["items"].([]any)[0].(map[string]any)["id"].(string)
}

// planVersion is the version of the plan in force.
func (d *daemon) planVersion(id string) int {
	return int(d.ask("GET", "/v1/threads/"+id, nil)["plan_version"].(float64))
}

func (p *tab) text(selector string) string {
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q).innerText`, selector))
}

// fill writes a value into a field, as typing it does.
func fill(selector, value string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event('input')); })()`, selector, value), nil)
}

// inForce waits until the plan in force has a version.
func (p *tab) inForce(d *daemon, id string, version int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`fetch('/v1/threads/%s').then((r) => r.json()).then((t) => t.plan_version === %d)`, id, version))
	if got := d.planVersion(id); got != version {
		p.t.Fatalf("plan %d is in force, want %d", got, version)
	}
}

const loaded = `!document.querySelector('#session').hidden && document.querySelectorAll('#log .row').length > 0 && document.querySelector('.sum')`

// TestActions: everything that the page lets a person do, by mouse.
func TestActions(t *testing.T) {
	d, id := kept(t)
	p := open(t, d.url+"/", 1280, 800, false)
	p.until(`document.querySelectorAll('#threads button').length === 1 && document.querySelectorAll('#sessions button').length === 1`)
	p.shoot("home")
	if text := p.text("#home"); !strings.Contains(text, "claude-code") || !strings.Contains(text, "117k → 40k") && !strings.Contains(text, "→") {
		t.Errorf("the lists say %q", text)
	}
	// Search in the lists.
	p.do(chromedp.SendKeys("#search", "nothing like it"))
	p.until(`document.querySelectorAll('#home td button').length === 0`)
	p.do(fill("#search", "bad night"))
	p.until(`document.querySelectorAll('#home td button').length === 2`)
	p.click("#threads button")
	p.until(loaded)

	// Select what the plan offloaded: reason, figures, both texts.
	p.click(`[data-kind="externalize"]`)
	p.until(`[...document.querySelectorAll('#log .row:not([hidden])')].every((r) => r.className.includes('externalize'))`)
	p.click("#log .row")
	p.until(`!document.querySelector('#panel').hidden && document.querySelectorAll('#panel pre').length === 2 && [...document.querySelectorAll('#panel pre')].every((x) => x.innerText.length > 20)`)
	if text := p.text("#panel"); !strings.Contains(text, "Offloaded") || !strings.Contains(text, "frees") || !strings.Contains(text, "[Externalized Content") {
		t.Errorf("the panel says %q", text)
	}
	p.shoot("served-chosen")
	p.click(`[data-act="Open artifact"]`)
	p.until(`document.querySelectorAll('#panel pre').length === 3 && document.querySelector('#panel pre').innerText.length > 20`)

	// Show again what it hides.
	p.click(`[data-act="Show again"]`)
	p.inForce(d, id, 2)
	p.until(`document.querySelector('#panel h2') && document.querySelector('#panel h2').innerText.startsWith('Kept')`)

	// Pin, and give free.
	p.click(`[data-act="Pin"]`)
	p.inForce(d, id, 3)
	p.until(`document.querySelector('[data-act="Unpin"]')`)
	p.click(`[data-act="Unpin"]`)
	p.inForce(d, id, 4)
	p.click(`[data-act="Close"]`)

	// Preview, with every control, and use it.
	p.until(`document.querySelector('#told').innerText === 'Unpinned' || true`)
	p.click("#try-open")
	p.until(`document.querySelector('#try-policy').options.length > 3 && document.querySelector('#try-favor').options.length === 4`)
	p.do(fill("#try-budget", "12000"), chromedp.Click(`#try [type="submit"]`))
	p.until(`document.querySelector('.banner') && document.querySelector('#try-note').innerText.includes('tokens')`)
	p.do(chromedp.Evaluate(`(() => { const s = document.querySelector('#try-favor'); s.value = 'cost'; s.dispatchEvent(new Event('change')); })()`, nil))
	p.until(`document.querySelector('#try-note').innerText.includes('tokens')`)
	p.do(chromedp.Evaluate(`(() => { const r = document.querySelector('#try-range'); r.value = 20; r.dispatchEvent(new Event('input')); })()`, nil))
	p.until(`document.querySelector('#try-note').innerText.includes('tokens') && Number(document.querySelector('#try-budget').value) !== 12000`)
	p.shoot("preview")
	// One of a policy with sizes of its own says by how much it is over the budget.
	choose := func(policy string) chromedp.Action {
		return chromedp.Evaluate(`(() => { document.querySelector('#try-favor').value = ''; const s = document.querySelector('#try-policy'); s.value = '`+policy+`'; s.dispatchEvent(new Event('change')); })()`, nil)
	}
	p.do(fill("#try-budget", "2500"), choose("session"))
	p.until(`document.querySelector('#try-note').innerText.includes('tokens: over the budget by ')`)
	p.do(choose(""))
	p.until(`document.querySelector('#try-note').innerText.endsWith('tokens')`)
	if d.planVersion(id) != 4 {
		t.Error("a preview was put in force")
	}
	p.do(fill("#try-budget", "12000"), chromedp.Click(`#try [type="submit"]`))
	p.until(`document.querySelector('#try-note').innerText.includes('tokens')`)
	p.click("#try-use")
	p.click(`#sure [value="yes"]`)
	p.inForce(d, id, 5)
	p.until(`document.querySelector('#try').hidden && !document.querySelector('.banner')`)

	// Over time: look at a plan, compare two, undo.
	p.click("#tab-time")
	p.until(`document.querySelectorAll('#plans tr').length === 6`)
	p.shoot("served-time")
	p.click(`[data-compare="5"]`)
	p.click(`[data-compare="1"]`)
	p.until(`document.querySelector('#diff h2') && document.querySelector('#diff h2').innerText.includes('treated differently')`)
	p.do(chromedp.Evaluate(`[...document.querySelectorAll('#plans button')].filter((b) => b.innerText === 'Put in force').pop().click()`, nil))
	p.click(`#sure [value="yes"]`)
	p.inForce(d, id, 6)
	p.do(chromedp.Evaluate(`[...document.querySelectorAll('#plans button')].filter((b) => b.innerText === 'Look')[3].click()`, nil))
	p.until(`document.querySelector('.banner') && document.querySelector('.banner').innerText.includes('not in force')`)

	// Search what was removed, with the daemon's recall.
	p.do(chromedp.Navigate(d.url + "/#/thread/" + id))
	p.do(chromedp.Reload())
	p.until(loaded)
	p.do(chromedp.SendKeys("#search", "idempotency key"))
	p.until(`/^[1-9]\d* of 239$/.test(document.querySelector('#found').innerText)`)
	p.do(fill("#search", " "))
	p.until(`document.querySelector('#found').innerText === ''`)

	// Copy the prompt.
	p.do(chromedp.Evaluate(`(() => { window.copied = ''; navigator.clipboard.writeText = async (text) => { window.copied = text; }; })()`, nil))
	p.click("#copy-prompt")
	p.until(`window.copied.length > 1000`)
	var prompt map[string]any
	if err := json.Unmarshal([]byte(eval[string](p, `window.copied`)), &prompt); err != nil || prompt["messages"] == nil {
		t.Errorf("what was copied is no prompt: %v", err)
	}

	// A session of this machine: the same view, with a preview and the command.
	p.do(chromedp.Navigate(d.url + "/#/session/91bfefb2-9533-4bcc-8bfc-f00dd138f269"))
	p.until(loaded + ` && !document.querySelector('#copy-command').hidden`)
	p.click("#try-open")
	p.until(`document.querySelector('#try-policy').options.length > 3`)
	p.do(fill("#try-budget", "10000"), chromedp.Click(`#try [type="submit"]`))
	p.until(`document.querySelector('.banner') && document.querySelector('#try-note').innerText.includes('tokens') && document.querySelector('#try-use').hidden`)
}

// TestKeyboard: everything without a mouse, and the focus is always seen.
func TestKeyboard(t *testing.T) {
	d, id := kept(t)
	p := open(t, d.url+"/#/thread/"+id, 1280, 800, true)
	p.until(loaded + ` && document.activeElement.id === 'log'`)
	p.keys(kb.ArrowDown, kb.ArrowDown)
	p.until(`document.querySelector('#log .chosen') && document.querySelector('#log').getAttribute('aria-activedescendant') === 'log-1'`)
	p.keys(kb.ArrowRight)
	p.until(`document.activeElement.id === 'prompt' && document.querySelector('#prompt .chosen')`)
	p.keys(kb.ArrowLeft)
	p.until(`document.activeElement.id === 'log'`)
	p.keys(kb.End)
	p.until(`document.querySelector('#log').scrollTop > 1000`)
	p.keys(kb.Home, "n", "n")
	p.until(`document.querySelector('#panel h2').innerText.startsWith('Offloaded')`)
	p.keys(kb.Enter)
	p.until(`document.activeElement.id === 'panel'`)
	if outline := eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`); outline != "solid" {
		t.Errorf("the focus on the panel is drawn as %s", outline)
	}
	p.keys("o")
	p.until(`document.querySelectorAll('#panel pre').length === 3`)
	p.keys("e")
	p.inForce(d, id, 2)
	p.until(`document.querySelector('#panel h2').innerText.startsWith('Kept')`)
	p.keys("p")
	p.inForce(d, id, 3)
	p.until(`document.querySelector('#panel h2').innerText.includes('pinned')`)
	p.keys("u")
	p.until(`document.querySelector('#sure').open`)
	p.keys(kb.Enter)
	p.inForce(d, id, 4)
	p.until(`document.querySelector('#panel h2') && !document.querySelector('#panel h2').innerText.includes('pinned')`)
	p.keys(kb.Escape)
	p.until(`document.querySelector('#panel').hidden && document.activeElement.id === 'log'`)
	p.keys("/")
	p.until(`document.activeElement.id === 'search'`)
	p.do(fill("#search", "")) // the driver types the key although the page has taken it
	p.keys("l", "e", "a", "s", "e", kb.Enter)
	p.until(`document.activeElement.id === 'log' && document.querySelector('#log .chosen')`)
	p.keys("?")
	p.until(`document.querySelector('#keys').open`)
	p.keys(kb.Escape)
	p.until(`!document.querySelector('#keys').open`)
	p.keys("t")
	p.until(`document.documentElement.dataset.theme === 'light'`)
	p.keys("v")
	p.until(`document.activeElement.id === 'try-budget' && document.querySelector('#try-policy').options.length > 3`)
	p.keys("1", "2", "0", "0", "0", kb.Enter)
	p.until(`document.querySelector('.banner')`)
	p.keys(kb.Escape)
	p.until(`document.querySelector('#try').hidden && !document.querySelector('.banner')`)
	p.keys("2")
	p.until(`!document.querySelector('#time').hidden`)
	p.do(chromedp.Focus("#tokens"))
	p.keys(kb.ArrowLeft)
	p.until(`document.querySelector('#step').innerText.startsWith('Request')`)
	p.keys("1")
	p.until(`!document.querySelector('#session').hidden`)
	// Every control can be reached by the tab key, and shows that it is.
	seen := map[string]bool{}
	p.do(chromedp.Evaluate(`document.activeElement.blur()`, nil))
	for range 40 {
		p.keys(kb.Tab)
		focused := eval[string](p, `document.activeElement.id + ' ' + getComputedStyle(document.activeElement).outlineStyle`)
		if name, outline, _ := strings.Cut(focused, " "); name != "" {
			seen[name] = true
			if outline == "none" {
				t.Errorf("the focus on %s is not seen", name)
			}
		}
	}
	for _, name := range []string{"brand", "search", "tab-session", "tab-time", "try-open", "copy-prompt", "theme", "help", "log", "prompt"} {
		if !seen[name] {
			t.Errorf("the tab key does not lead to %s", name)
		}
	}
}

// TestRoom: where the room goes adds up to the request; what was
// looked up again is found, and hits of a search are marked, the exact ones first.
func TestRoom(t *testing.T) {
	d, id := kept(t)
	d.ask("POST", "/v1/threads/"+id+"/messages", map[string]any{"messages": []map[string]any{
		{"role": "user", "parts": []any{map[string]any{"type": "text", "text": "What did the night cost?"}}},
		{"role": "assistant", "parts": []any{map[string]any{"type": "tool_call", "call_id": "again", "tool": "recall", "arguments": `{"query":"night"}`}}},
		{"role": "tool", "parts": []any{map[string]any{"type": "tool_result", "call_id": "again", "tool": "recall", "content": []any{map[string]any{"type": "text", "text": "two labels, bought twice"}}}}},
	}})
	p := open(t, d.url+"/#/thread/"+id, 1280, 800, false)
	p.until(loaded)
	if text := p.text("#room"); !strings.Contains(text, "summary") || !strings.Contains(text, "recent") {
		t.Errorf("the room goes to %q", text)
	}
	if all := eval[float64](p, `[...document.querySelector('#room').innerText.matchAll(/(\d+) %/g)].reduce((n, m) => n + Number(m[1]), 0)`); all < 98 || all > 102 {
		t.Errorf("the parts of the request are %.0f %% of it", all)
	}
	p.click(`[data-kind="again"]`)
	p.until(`[...document.querySelectorAll('#log .row')].filter((r) => !r.hidden).length === 1`)
	p.click(`[data-kind="again"]`)
	p.click(`[data-kind="summarize"]`)
	p.click("#log .row")
	p.keys("e")
	p.inForce(d, id, 2)
	p.do(fill("#search", "lease"))
	p.until(`(() => { const first = document.querySelector('#log .row[aria-posinset="1"]'); return first && !first.hidden && first.querySelector('mark') && first.querySelector('mark').innerText.toLowerCase() === 'lease'; })()`)
}

// TestLive: what an agent adds is there without a reload, and so is a plan that
// somebody else puts in force.
func TestLive(t *testing.T) {
	d, id := kept(t)
	p := open(t, d.url+"/#/thread/"+id, 1280, 800, false)
	p.until(loaded + ` && !document.querySelector('#live').hidden`)
	d.ask("POST", "/v1/threads/"+id+"/messages", map[string]any{"messages": []map[string]any{{"role": "user", "parts": []map[string]any{{"type": "text", "text": "One thing more."}}}}})
	p.until(`document.querySelector('#meta').innerText.includes('240 messages')`)
	d.ask("POST", "/v1/threads/"+id+"/undo", map[string]any{"version": 0})
	p.until(`document.querySelector('.sum').innerText.includes('nothing removed')`)
}

// TestKey: a daemon with keys is asked with one, which stays in the tab; the rights
// are those of the key.
func TestKey(t *testing.T) {
	d, id := kept(t)
	store := filepath.Join(d.home, "p.db")
	make := func(rights string) string {
		out, err := d.command("keys", "add", "--name", "reader", "--rights", rights, "--store", store).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
		}
		return strings.TrimSpace(string(out))
	}
	reader := make("read")
	d.start()
	p := open(t, d.url+"/#/thread/"+id, 1280, 800, false)
	p.until(`document.querySelector('#ask').open`)
	p.do(chromedp.SendKeys("#ask-key", "wrong"))
	p.keys(kb.Enter)
	p.until(`document.querySelector('#ask').open && document.querySelector('#ask-why').innerText !== ''`)
	p.do(chromedp.SendKeys("#ask-key", reader))
	p.keys(kb.Enter)
	p.until(loaded)
	if eval[bool](p, `location.href.includes('plk') || document.cookie !== '' || Object.values(localStorage).some((v) => v.includes('plk'))`) {
		t.Error("the key is kept where it must not be")
	}
	p.keys("n", "e")
	p.keys(kb.Enter)
	p.until(`document.querySelector('#told').innerText.includes('right')`)
	if eval[int](p, `document.querySelectorAll('#sessions button').length`) != 0 {
		t.Error("sessions of this machine are shown to a key")
	}
	p.do(chromedp.Reload())
	p.until(loaded)
}
