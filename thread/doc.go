// Package thread holds the conversation as it happened: an append-only log of
// messages with stable ids and turn numbers. Nothing in it ever changes or
// goes away; what a model is shown instead of a message is decided elsewhere,
// as data (package plan), and applied by a pure function (package render).
//
// The package is the ground of the module. It imports nothing of it but
// canonical JSON, and knows no clock, no input or output and no goroutine.
// All its values are safe for concurrent reading; a Thread may be appended to
// from several goroutines, each of which gets its own new Thread.
package thread
