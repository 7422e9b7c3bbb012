// Package api is the daemon's HTTP API: the typed requests and answers of
// /v1/threads…, the table of operations, the OpenAPI document made from both, and a
// client for Go.
//
//	c, err := api.NewClient("http://127.0.0.1:7433", nil)
//	th, err := c.CreateThread(ctx, api.NewThread{ID: "ticket-4711"})
//	p, err := c.Prepare(ctx, th.ID, api.Step{API: wire.Anthropic, Body: request})
//	answer := send(p.Body)
//	_, err = c.Finish(ctx, th.ID, api.Answer{API: wire.Anthropic, Response: answer})
//
// Conversations travel in one of two forms: in a provider's own (API and Body, or
// Response), which keeps every byte that is not changed, or in the neutral form (package
// neutral).
//
// The client ignores fields that a later version adds. The daemon refuses fields that it
// does not know: they are more often a typing error than a newer client.
package api
