package summarize

import (
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// mention is an identifier that a text holds.
type mention struct {
	norm string
	kind ident.Type
}

// mentions appends the identifiers of a text.
func mentions(to []mention, text string) []mention {
	ident.Extract(text, func(x ident.Ident) { to = append(to, mention{x.Norm, x.Type}) })
	return to
}

// source is the kind of place where an identifier stands.
type source uint8

const (
	inUser source = iota
	inWords
	inEdit
	inWrite
	inCommand
	inArguments
	inRead
	inSearch
	inList
	inOutput
	inChange
	inPage
	inResult
	sources
)

// sourceOfCall is where an argument of a tool stands.
func sourceOfCall(class toolpolicy.Class) source {
	switch class {
	case toolpolicy.Edit:
		return inEdit
	case toolpolicy.Write:
		return inWrite
	case toolpolicy.Shell:
		return inCommand
	}
	return inArguments
}

// sourceOfResult is where the output of a tool stands.
func sourceOfResult(tool string) source {
	switch toolpolicy.ClassOf(tool) {
	case toolpolicy.Read:
		return inRead
	case toolpolicy.Search:
		return inSearch
	case toolpolicy.List:
		return inList
	case toolpolicy.Shell:
		return inOutput
	case toolpolicy.Edit, toolpolicy.Write:
		return inChange
	case toolpolicy.Web, toolpolicy.Fetch, toolpolicy.Agent:
		return inPage
	}
	return inResult
}

// call reports whether it is an argument that the agent wrote.
func (s source) call() bool { return s >= inEdit && s <= inArguments }
