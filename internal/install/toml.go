package install

import (
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// tomlPart is a table of a TOML document, with its header and up to the next one, or what stands before all tables.
type tomlPart struct {
	name           string // of the header, without quotes and white space
	from, body, to int    // places in the document
}

var (
	tomlHeader = lazyregexp.New(`(?m)^[ \t]*\[\[?([^\[\]\n=]+)\]\]?[ \t]*(?:#.*)?$`)
	// tomlCommand matches the program of a server, inServers and inDocument a server of ours in other forms than a table, or
	// all servers in one line.
	tomlCommand = lazyregexp.New(`(?m)^[ \t]*["']?command["']?[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*')`)
	inServers   = lazyregexp.New(`(?m)^[ \t]*["']?palimpsest["']?[ \t]*[=.].*$`)
	inDocument  = lazyregexp.New(`(?m)^[ \t]*["']?mcp_servers["']?[ \t]*(=|\.[ \t]*["']?palimpsest\b).*$`)
)

const servers, ownServer = "mcp_servers", "mcp_servers.palimpsest"

// partsOf parts a TOML document at its headers.
func partsOf(doc string) []tomlPart {
	all := []tomlPart{{}}
	for _, at := range tomlHeader().FindAllStringSubmatchIndex(doc, -1) {
		all[len(all)-1].to = at[0]
		all = append(all, tomlPart{name: strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(doc[at[2]:at[3]]), from: at[0], body: at[1]})
	}
	all[len(all)-1].to = len(doc)
	return all
}

// table puts the table of our server into a document: into the one that is there goes how this program is started. In
// other forms it is left to the user.
func (e *Edit) table(doc string) ([]byte, error) {
	program := tomlCommand().FindStringSubmatch(e.Value)[1]
	for _, p := range partsOf(doc) {
		body, line := doc[p.body:p.to], ""
		switch p.name {
		case ownServer:
			at := tomlCommand().FindStringSubmatchIndex(body)
			if at == nil || !strings.Contains(body[at[2]:at[3]], "palimpsest") {
				return nil, fmt.Errorf("%w: it has another %s", ErrOthers, ownServer)
			}
			return []byte(doc[:p.body+at[2]] + program + doc[p.body+at[3]:]), nil
		case servers:
			line = inServers().FindString(body)
		case "":
			line = inDocument().FindString(body)
		}
		switch {
		case strings.Contains(line, program): // made by hand
			return []byte(doc), nil
		case line != "":
			return nil, fmt.Errorf("%w: it lists MCP servers in another form than tables: have palimpsest there, with the command %s", ErrOthers, program)
		}
	}
	return e.appendTo(doc, "\n"), nil
}

// removeTable takes the table of our server out, and those in it. What follows the last line of a table, such as
// comments, stays.
func (e *Edit) removeTable(doc string, force bool) ([]byte, error) {
	left, at := "", 0
	for _, p := range partsOf(doc) {
		if p.name != ownServer && !strings.HasPrefix(p.name, ownServer+".") {
			continue
		}
		end := p.to
		for end > p.body {
			from := strings.LastIndexByte(doc[:end-1], '\n') + 1
			if line := strings.TrimSpace(doc[from:end]); line != "" && line[0] != '#' {
				break
			}
			end = from
		}
		if strings.TrimSpace(doc[p.from:end]) != strings.TrimSpace(e.Value) && !force {
			return []byte(doc), errChanged("the table " + ownServer)
		}
		if left += doc[at:p.from]; strings.HasSuffix(left, "\n\n") { // the gap before it
			left = left[:len(left)-1]
		}
		at = end
	}
	return []byte(left + doc[at:]), nil
}
