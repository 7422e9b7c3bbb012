package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
)

// machine finds paths that exist on somebody's machine only. A path counts where
// it begins, not in the middle of a longer one.
var machine = regexp.MustCompile(`(?:^|[^\w.~$}/-])/(?:home/\w|root\b|work/|Users/\w)`)

// scratch finds the temporary folder spelled out; os.MkdirTemp knows where it is.
var scratch = regexp.MustCompile(`(?:^|[^\w.~$}/-])/tmp(?:/|$)`)

// registry finds hosts that packages come from. Which one is used is for the
// machine's own settings to say.
var registry = regexp.MustCompile(`\b(?:(?:proxy|sum)\.golang\.org|goproxy\.\w+|registry\.npmjs\.org|registry\.yarnpkg\.com|pypi\.org|files\.pythonhosted\.org|crates\.io|rubygems\.org|ghcr\.io|docker\.io|quay\.io|deb\.debian\.org)\b`)

// literals looks for places in the string literals of production code.
func (c *checker) literals(p *pkg) {
	for _, f := range p.production() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if n.Kind != token.STRING {
					return false
				}
				value, err := strconv.Unquote(n.Value)
				if err != nil {
					return false
				}
				if machine.MatchString(value) || scratch.MatchString(value) {
					c.add("machine-path", f.at, c.module.line(n), "the text names a folder of one machine: %q", value)
				}
				if host := registry.FindString(value); host != "" {
					c.add("registry", f.at, c.module.line(n), "the text names the package registry %s", host)
				}
			}
			return true
		})
	}
}

// texts looks for places in documents and scripts.
func (c *checker) texts() {
	for _, t := range c.module.texts {
		for i, line := range bytes.Split(t.data, []byte("\n")) {
			if machine.Match(line) {
				c.add("machine-path", t.at, i+1, "the line names a folder of one machine")
			}
			if host := registry.Find(line); host != nil {
				c.add("registry", t.at, i+1, "the line names the package registry %s", host)
			}
		}
	}
}
