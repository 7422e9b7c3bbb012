// Package yamlfile parses the YAML files that users write: policies and settings. It refuses
// deep nesting before parsing, as a small file could make the parser take gigabytes.
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

// MaxBytes limits a file.
const MaxBytes = 64 << 10

// maxNested limits open brackets, and lists that begin on one line. The time and memory of the
// parser grow with the square of their number.
const maxNested = 100

// Error says what is wrong with a file, and where.
type Error struct {
	Line, Column int // from 1; 0 for the file as a whole
	Message      string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Read parses a file of one document. The tree is nil if the file is empty or has only
// comments.
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

// Pairs returns the keys and values of a mapping; false if the node is not one.
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
	// Not err.Error(): it quotes the lines around the mistake, which may hold a secret.
	if errors.As(err, &at) {
		wrong.Message += ": " + at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			wrong.Line, wrong.Column = t.Position.Line, t.Position.Column
		}
	}
	return nil, wrong
}

// checkNesting refuses a file that nests too deep. Brackets and dashes inside text count too.
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
