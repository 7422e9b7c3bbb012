// Package yamlfile parses the YAML files that people write for the program: policies
// and settings. The parser is not ours, and a small file can make it take gigabytes:
// what nests too deep is refused before it is parsed.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes is the largest file.
const MaxBytes = 64 << 10

// maxNested is how many brackets may be open at once, and how many lists may begin on
// a line. People nest a few; the parser recurses for each, and takes time and memory
// with the square of their number.
const maxNested = 100

// Error says what is wrong with a file.
type Error struct {
	Line, Column int // from 1; 0 where it is the file as a whole
	Message      string
}

// Error is the message behind its place.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Read reads a file of one document into its tree; nil where it holds nothing, or
// nothing but comments.
func Read(data []byte) (ast.Node, *Error) {
	switch {
	case len(data) > MaxBytes:
		return nil, &Error{Message: fmt.Sprintf("%d bytes, the most is %d", len(data), MaxBytes)}
	case !utf8.Valid(data):
		return nil, &Error{Message: "it is not UTF-8 text"}
	}
	if wrong := checkNesting(data); wrong != nil {
		return nil, wrong
	}
	file, wrong := parse(data)
	if wrong != nil {
		return nil, wrong
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case body != nil:
			return nil, &Error{Message: "it holds several documents, want one document"}
		default:
			body = doc.Body
		}
	}
	return body, nil
}

// Pairs are the keys and values of a mapping; false where the node is none.
func Pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func parse(data []byte) (file *ast.File, wrong *Error) {
	defer func() {
		if e := recover(); e != nil {
			file, wrong = nil, &Error{Message: "it is not YAML"}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err == nil {
		return file, nil
	}
	wrong = &Error{Message: "it is not YAML"}
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	// The text of the error draws the lines around the mistake, which may hold a secret.
	if errors.As(err, &at) {
		wrong.Message += ": " + at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			wrong.Line, wrong.Column = t.Position.Line, t.Position.Column
		}
	}
	return nil, wrong
}

// checkNesting refuses a file that nests too deep. Brackets and dashes in words count too.
func checkNesting(data []byte) *Error {
	open, line := 0, 0
	for text := range bytes.Lines(data) {
		line++
		lists := 0
		for i, c := range text {
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			case '-', '?':
				if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
					lists++
				}
			}
			if open > maxNested {
				return &Error{line, i + 1, fmt.Sprintf("more than %d brackets are open here", maxNested)}
			}
			if lists > maxNested {
				return &Error{line, i + 1, fmt.Sprintf("more than %d lists begin on this line", maxNested)}
			}
		}
	}
	return nil
}
