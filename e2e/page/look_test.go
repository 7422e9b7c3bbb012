package page_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestLooks: the page at three widths in both themes, without a scroll bar across. The
// pictures are for people: PALIMPSEST_SHOTS=DIR keeps them.
func TestLooks(t *testing.T) {
	file := explain(t, session, "--budget", "16000")
	for _, size := range [][2]int64{{400, 800}, {1280, 800}, {2000, 1100}} {
		for _, dark := range []bool{false, true} {
			name := fmt.Sprintf("%d-%t", size[0], dark)
			p := open(t, file, size[0], size[1], dark)
			p.until(`document.querySelectorAll('#log .row').length > 0 || getComputedStyle(document.querySelector('.column.log')).display === 'none'`)
			if got := eval[string](p, `document.documentElement.dataset.theme`); (got == "dark") != dark {
				t.Errorf("%s: the theme is %s", name, got)
			}
			p.shoot(name)
			if eval[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%s: the page is wider than the window", name)
			}
			p.keys("n", "n")
			p.until(`!document.querySelector('#panel').hidden`)
			p.shoot(name + "-chosen")
			p.keys("2")
			p.until(`!document.querySelector('#time').hidden`)
			p.shoot(name + "-time")
			if eval[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%s: over time the page is wider than the window", name)
			}
		}
	}
}

// TestLooksServed: what a daemon serves on a telephone: the lists, a preview, and the plans
// with what can be done with them.
func TestLooksServed(t *testing.T) {
	d, id := kept(t)
	p := open(t, d.url+"/", 400, 800, true)
	whole := func(name string) {
		t.Helper()
		p.shoot("served-400-" + name)
		if eval[bool](p, `document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll('#home > section, .plans')].some((e) => e.scrollWidth > e.clientWidth + 1)`) {
			t.Errorf("%s: something is wider than the window", name)
		}
	}
	p.until(`document.querySelectorAll('#threads button').length === 1 && document.querySelectorAll('#sessions button').length === 1`)
	whole("home")
	p.do(chromedp.Navigate(d.url + "/#/thread/" + id))
	p.until(`!document.querySelector('#session').hidden && document.querySelector('.sum')`)
	p.click("#try-open")
	p.until(`document.querySelector('#try-policy').options.length > 3`)
	whole("preview")
	p.click("#tab-time")
	p.until(`document.querySelectorAll('#plans [data-compare]').length === 1`)
	p.do(chromedp.ScrollIntoView("#plans [data-compare]", chromedp.ByQuery))
	whole("time")
}

// TestPicture makes the picture of the README, where PALIMPSEST_PICTURE names a file.
func TestPicture(t *testing.T) {
	p := open(t, explain(t, session, "--budget", "40000"), 1024, 570, false)
	p.until(`document.querySelectorAll('#log .row').length > 0`)
	picture := p.shoot("readme")
	const most = 150 << 10
	if len(picture) > most {
		t.Errorf("the picture takes %d bytes, at most %d are to go into the repository", len(picture), most)
	}
	if path := os.Getenv("PALIMPSEST_PICTURE"); path != "" {
		if err := os.WriteFile(path, picture, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
