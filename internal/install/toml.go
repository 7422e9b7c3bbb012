package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// tomlPart is a table of a TOML document, with its header and up to the next one, or what stands before all tables.
type tomlPart struct {
	name           string // of the header, without quotes and white space
	from, body, to int    // places in the document
}

var (
	// brackets matches a bracket of TOML, or of JSON with comments, or a string or comment with whatever is in it.
	brackets = lazyregexp.New(`(?s)` + noBrackets + `|[\[\]]`)
	// tomlCommand matches the program of a server, tomlArgs the bracket at which its arguments begin, or what may hold brackets of no meaning,
	// inServers and inDocument a server of ours in other forms than a table, or all servers in one line.
	tomlCommand = lazyregexp.New(`(?m)^[ \t]*["']?command["']?[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*')`)
	tomlArgs    = lazyregexp.New(`(?sm)^[ \t]*["']?args["']?[ \t]*=[ \t]*(\[)|` + noBrackets)
	inServers   = lazyregexp.New(`(?m)^[ \t]*["']?palimpsest["']?[ \t]*[=.].*$`)
	inDocument  = lazyregexp.New(`(?m)^[ \t]*["']?mcp_servers["']?[ \t]*(=|\.[ \t]*["']?palimpsest\b).*$`)
)

const noBrackets = `"""(?:[^\\]|\\.)*?"""|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|//[^\n]*|/\*.*?\*/`

const servers, ownServer = "mcp_servers", "mcp_servers.palimpsest"

// partsOf parts a TOML document at its headers: brackets that begin a line, and are in no others.
func partsOf(doc string) []tomlPart {
	all := []tomlPart{{}}
	depth, header := 0, -1
	for _, at := range brackets().FindAllStringIndex(doc, -1) {
		switch doc[at[0]] {
		case '[':
			before := strings.TrimRight(doc[:at[0]], " \t")
			if depth++; depth == 1 && (before == "" || strings.HasSuffix(before, "\n")) {
				header = len(before)
			}
		case ']':
			if depth = max(0, depth-1); depth > 0 || header < 0 {
				continue
			}
			name := strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "", "[", "", "]", "").Replace(doc[header:at[1]])
			all[len(all)-1].to = header
			line, _, _ := strings.Cut(doc[at[1]:], "\n") // the rest of it
			all = append(all, tomlPart{name: name, from: header, body: at[1] + len(line)})
			header = -1
		}
	}
	all[len(all)-1].to = len(doc)
	return all
}

// tomlArray is a server's table from the bracket at which its arguments begin, "" without any.
func tomlArray(body string) string {
	for _, at := range tomlArgs().FindAllStringSubmatchIndex(body, -1) {
		if at[2] >= 0 {
			return body[at[2]:]
		}
	}
	return ""
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
			body = body[:at[2]] + program + body[at[3]:]
			if args := tomlArray(body); strings.Contains(e.Value, contextFlag) {
				with := withContextTools(args)
				if !offersContextTools(with) {
					return nil, errNoArgs
				}
				body = strings.TrimSuffix(body, args) + with
			}
			return []byte(doc[:p.body] + body + doc[p.to:]), nil
		case servers:
			line = inServers().FindString(body)
		case "":
			line = inDocument().FindString(body)
		}
		switch {
		case strings.Contains(line, program) && strings.Contains(e.Value, contextFlag) && !strings.Contains(line, contextFlag):
			return nil, errNoArgs
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
		if strings.TrimSpace(strings.ReplaceAll(doc[p.from:end], "\r\n", "\n")) != strings.TrimSpace(e.Value) && !force {
			return []byte(doc), errChanged("the table " + ownServer)
		}
		if left += doc[at:p.from]; strings.HasSuffix(left, "\n\n") { // the gap before it
			left = left[:len(left)-1]
		}
		at = end
	}
	return []byte(left + doc[at:]), nil
}

// contextFlag is the argument of an MCP server for the context tools.
const contextFlag = `"--context-tools"`

// errNoArgs is about an entry of ours whose arguments are not a list that something can be added to.
var errNoArgs = fmt.Errorf("%w: its args are missing or empty, or in another form than an array: add %s there", ErrOthers, contextFlag)

// arrayOf is a document from the bracket at which the arguments of our server begin, "" without any. The path of our
// entry is empty for TOML.
func arrayOf(doc string, path []string) string {
	if len(path) > 0 {
		args, _, _ := jsonedit.Member(doc, slices.Concat(path, []string{"args"})...)
		if args == "" { // all in one
			args, _, _ = jsonedit.Member(doc, slices.Concat(path, []string{"command"})...)
		}
		return args
	}
	for _, p := range partsOf(doc) {
		if p.name == ownServer {
			return tomlArray(doc[p.body:p.to])
		}
	}
	return ""
}

// words are the places of the strings in an array at the beginning of a text; none if it is no array, holds others, or does not end.
func words(text string) (all [][]int) {
	if !strings.HasPrefix(text, "[") {
		return nil
	}
	for _, at := range brackets().FindAllStringIndex(text, -1)[1:] {
		switch text[at[0]] {
		case '"', '\'':
			all = append(all, at)
		case '[':
			return nil
		case ']':
			return all
		}
	}
	return nil
}

// offersContextTools reports whether the array at the beginning of a text has the flag.
func offersContextTools(text string) bool {
	return slices.ContainsFunc(words(text), func(at []int) bool { return strings.Trim(text[at[0]:at[1]], `"'`) == strings.Trim(contextFlag, `"`) })
}

// withContextTools is a text with the flag behind the last string of the array at its beginning; as it was where that has it, or is none.
func withContextTools(text string) string {
	all := words(text)
	if len(all) == 0 || offersContextTools(text) {
		return text
	}
	end := all[len(all)-1][1]
	return text[:end] + ", " + contextFlag + text[end:]
}
