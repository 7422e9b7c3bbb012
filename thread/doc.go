// Package thread holds a conversation as it happened: an append-only log of messages with
// stable ids and turn numbers. Messages never change and are never removed. What a model is
// shown instead of them is decided elsewhere, as data (package plan), and applied by a pure
// function (package render).
//
// The package has no clock, no input or output and no goroutines. All values are safe for
// concurrent reading; several goroutines may append to one Thread, and each gets its own new
// Thread.
package thread
