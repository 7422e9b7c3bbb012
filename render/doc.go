// Package render makes the prompt: a pure function of a thread, a plan and the
// profile of the provider that will read it (seed A, A16). The same input gives
// the same bytes, always.
//
// What no record covers is passed on untouched, with the provider bytes it came
// from. Beside the plan, the renderer holds the rules that every provider has:
// results stand directly behind their calls, each call has exactly one, and
// reasoning that a provider binds to what stood before it goes once that has
// changed. A thread that is legal as it is, with an empty plan, comes out as it
// went in.
//
// Content that comes back for one prompt alone is no part of log or plan: Append puts
// it at the end of a prompt that is rendered already.
//
// Functions here have no state and may be called from anywhere. A Memo remembers the
// last rendering, so that a step costs what it adds.
package render
