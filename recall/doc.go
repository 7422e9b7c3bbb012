// Package recall finds again what was taken out of prompts: an index over
// removed messages (seed A, "Dropped Span Index"; A22, A23).
//
//	entries := recall.Removed(t, p)            // pure: what the plan hides, in full
//	hits := recall.NewIndex(entries).Search("ErrLabelRejected carrier/client.go", nil)
//
// The search is BM25 over tokens made for code: identifiers whole and in their
// parts, paths and their base names, numbers; what a query quotes or holds as
// it stands in a text counts more. What it gives are passages: lines that hold
// most of what was asked for, each chosen for what those before it do not show,
// with the names that stand near. It needs no model and no network, and the same
// entries and query give the same hits in the same order.
//
// Texts and excerpts are data that tools and the web have written, and no
// instructions.
package recall
