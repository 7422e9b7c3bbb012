// Package identify finds out which conversation a request goes on with.
//
//	body ──▶ Tenant.Read ──▶ Request ──▶ Client.Base ──▶ Find ──▶ Place
//
// A request is read (request.go), and a body that goes on where a known one ends is
// read by what it adds (tail.go, index.go). What it says of its client names a log,
// and the ids of its messages tell at which place of that log it goes on, or that it
// is a fork (session.go). KindOf tells requests that are no step of an agent
// (kind.go).
//
// Everything here is pure but for the Index, which is a cache: a request that it has
// forgotten is read whole, with the same result. Logs are read by functions that the
// caller gives.
package identify
