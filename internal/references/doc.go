// Package references reads recorded conversations and finds what their agents
// refer to later: the identifiers that a later step writes and that only the old
// part of the history tells. It says what of them a prompt shows or a lookup
// brings, for the ways to compact that package eval and the module lab compare.
//
// A Session is a conversation, a Moment a place where it is compacted, a Need a
// reference after it, a Contender a way to compact, Shown what it leaves and Found
// what of a need is in that.
package references
