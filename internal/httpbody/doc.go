// Package httpbody reads, decompresses and rewrites the bodies of requests and answers, within
// bounds, and passes on what it cannot read.
package httpbody
