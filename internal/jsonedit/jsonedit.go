// Package jsonedit changes single values in JSON that is known to be valid. It is not part
// of rawjson so that the root package does not depend on sjson.
package jsonedit

import "github.com/tidwall/sjson"

// Set returns a document with a JSON value at an sjson path. If the path does not fit, it
// returns the document unchanged.
func Set(doc, path, value string) string {
	if out, err := sjson.SetRaw(doc, path, value); err == nil {
		return out
	}
	return doc
}

// Delete returns a document without the value at a path; see Set.
func Delete(doc, path string) string {
	if out, err := sjson.Delete(doc, path); err == nil {
		return out
	}
	return doc
}
