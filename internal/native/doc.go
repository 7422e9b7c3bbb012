// Package native knows how requests ask for their provider's own compaction, and how the provider
// answers: it reads and checks what is asked, applies it to a request, and gives answers the
// documented shape. It does no I/O and makes no summary; package proxy does both (docs/proxy.md,
// "Native compaction").
//
// The opaque value that an answer gives the client is a Token. It is signed, so that it is known
// when it comes back.
package native
