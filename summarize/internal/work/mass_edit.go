package work

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
)

// editors are programs that change the files that they are given, named or not.
var editors = scan.WordSet("xargs patch comby ast-grep sg codemod jscodeshift rename")

// readMassEdit reads whether a command line may change files that it does not name, and by what.
func (c *Call) readMassEdit(line []shell.Command) {
	changes := map[*shell.Command]bool{}
	for i := range c.Files {
		if op := &c.Files[i]; op.Op != "read" {
			changes[op.By] = true
		}
	}
	for i := range line {
		command := &line[i]
		name := command.Name()
		sub, _, _ := gitWords(command)
		has := func(options ...string) bool {
			return slices.ContainsFunc(command.Words, func(w shell.Word) bool {
				return slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(w.Text, o) })
			})
		}
		named := changes[command]
		switch {
		case (name == "sed" && has("-i", "--in-place", "-Ei", "-ri") || name == "perl" && has("-i", "-pi", "-p")) && !named,
			name == "find" && has("-exec", "-ok"), editors[name], sub == "apply":
			if c.massEdit = name; sub != "" {
				c.massEdit = "git " + sub
			}
			return
		}
	}
}
