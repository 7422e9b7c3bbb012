// Package jsonedit changes single members of JSON that was read before. It stands apart
// from rawjson so that the root package does not carry sjson.
package jsonedit

import "github.com/tidwall/sjson"

// Set is a document with a value, JSON itself, at a path as sjson reads it. The
// document is JSON that was read before and the path the caller's own: should one be
// wrong all the same, the document stays as it is.
func Set(doc, path, value string) string {
	if out, err := sjson.SetRaw(doc, path, value); err == nil {
		return out
	}
	return doc
}

// Delete is a document without what stands at a path; see Set.
func Delete(doc, path string) string {
	if out, err := sjson.Delete(doc, path); err == nil {
		return out
	}
	return doc
}
