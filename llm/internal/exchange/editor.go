package exchange

import (
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Editor changes members of a request's body and keeps the first error.
type Editor struct {
	Body []byte
	Err  error
}

// Set puts a value at a path, as JSON.
func (e *Editor) Set(path, value string) {
	if e.Err == nil {
		e.Body, e.Err = sjson.SetRawBytes(e.Body, path, []byte(value))
	}
}

// Remove takes a member out, if it is there.
func (e *Editor) Remove(path string) {
	if e.Err == nil && gjson.GetBytes(e.Body, path).Exists() {
		e.Body, e.Err = sjson.DeleteBytes(e.Body, path)
	}
}
