// Package identify finds out which conversation a request continues.
//
//	body ──▶ Tenant.Read ──▶ Request ──▶ Client.Base ──▶ Find ──▶ Place
//
// A request is read (request.go); a body that continues a known one is read by what it adds (tail.go,
// index.go). What it says of its client names a log, and the ids of its messages tell at which
// place of that log it continues, or that it is a fork (find.go). KindOf tells apart
// requests that are not a step of an agent (kind.go).
//
// Everything here is pure except the Index, a cache: a request that it has forgotten is read whole,
// with the same result. Logs are read by functions of the caller.
package identify
