package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
)

//go:embed page
var files embed.FS

// scripts are the parts of the one script, in order.
var scripts = []string{"format.js", "model.js", "picture.js", "lists.js", "panel.js", "plans.js", "live.js", "app.js"}

func pageFile(name string) string {
	data, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // unreachable: it is embedded
	}
	return string(data)
}

// pageScript is the whole script, within a function of its own.
func pageScript() string {
	var b strings.Builder
	b.WriteString("(() => {\n'use strict';\n")
	for _, name := range scripts {
		b.WriteString(pageFile(name))
	}
	b.WriteString("})();\n")
	return b.String()
}

// contentPolicy lets the page load its own files and ask its own daemon, nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page and its files.
func Handler() http.Handler {
	// The policies for previews, and what the policy auto can favor.
	choices, _ := json.Marshal(map[string][]string{"policies": policyfile.Bases(), "favors": policy.Favors()}) // names can be written
	type answer struct{ kind, body string }
	answers := map[string]answer{
		"/":          {"text/html; charset=utf-8", pageWith(`<link rel="stylesheet" href="/page.css">`, `<script src="/page.js"></script>`)},
		"/page.css":  {"text/css; charset=utf-8", pageFile("page.css")},
		"/page.js":   {"text/javascript; charset=utf-8", pageScript()},
		"/page.json": {"application/json", string(choices)},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		_, _ = io.WriteString(w, a.body) // the reader may be gone
	})
}

// Paths are the patterns that Handler answers.
func Paths() []string { return []string{"/{$}", "/page.css", "/page.js", "/page.json"} }

// The places in page.html that differ between the served page and the file.
const (
	headPlace = "<!-- head -->"
	dataPlace = "<!-- data -->"
)

// pageWith is page.html with both places filled in.
func pageWith(head, data string) string {
	return strings.NewReplacer(headPlace, head, dataPlace, data).Replace(pageFile("page.html"))
}

// Write writes the page of one view as a file that needs nothing else.
func Write(w io.Writer, v *view.View) error {
	data, err := json.Marshal(v) // with <, > and & escaped: nothing in it ends the element
	if err != nil {
		return fmt.Errorf("web.Write: %w", err)
	}
	style, code := pageFile("page.css"), pageScript()
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'", contentHash(code), contentHash(style))
	page := pageWith(
		`<meta http-equiv="Content-Security-Policy" content="`+policy+`"><style>`+style+`</style>`,
		`<script type="application/json" id="data">`+string(data)+"</script>\n<script>"+code+`</script>`,
	)
	_, err = io.WriteString(w, page)
	return err
}

// contentHash names an element by its content in a Content-Security-Policy.
func contentHash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
