// Package native knows what requests ask of their provider's own compaction, and
// how the provider answers: it reads and checks what is asked, applies it to a
// request, and gives answers the documented shape. It does no I/O and makes no
// summary; package proxy does both (docs/proxy.md, "Native compaction").
//
// What an answer gives the client for later is a Token: readable by nobody but us,
// and signed, so that it is known when it comes back.
package native
