// Package strategy turns pressure into plan records (seed A, A17). A strategy
// is one rung of a ladder: it looks at a View and proposes what it would do
// (Analyze, pure, good for a dry run), and makes the record of one proposal
// (Execute, which may ask a summarizer). The Ladder climbs from the gentlest
// rung to the harshest and stops as soon as the messages fit.
//
// A plan grows: View.Keep takes over the records of the plan in force, and the climb
// adds to them. What a record has made of a message stays as it is, byte for byte.
//
// A View is used by one goroutine at a time. Strategies and ladders are values that
// may be shared. All sizes are tokens, as Given.Count counts them.
package strategy
