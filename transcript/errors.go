package transcript

import (
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

var (
	// ErrEmpty is wrapped by errors about a file without any conversation.
	ErrEmpty = errors.New("no messages")
	// ErrBinary is wrapped by errors about a file that is not text.
	ErrBinary = errors.New("not a text file")
	// ErrTooLong is wrapped by errors about a line over Options.MaxLine.
	ErrTooLong = errors.New("line too long")
	// ErrTooDeep is wrapped by errors about JSON nested over 1,000 levels.
	ErrTooDeep error = rawjson.ErrDepth
	// ErrUnknownFormat is wrapped by errors about a file in none of the known formats. The
	// message lists them.
	ErrUnknownFormat = errors.New("unknown transcript format")
)

// SyntaxError is a place in a file that cannot be read.
type SyntaxError struct {
	// Line counts from 1.
	Line int
	// Path is a path in the line's JSON, such as history[3]; empty for the whole line.
	Path string
	Err  error
}

// Error names the line, and the path where there is one.
func (e *SyntaxError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("line %d: %s: %v", e.Line, e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }
