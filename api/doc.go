// Package api is what the daemon and its clients say to each other: the typed
// requests and answers of /v1/threads…, the table of operations, the OpenAPI
// document made from both, and a client for Go.
//
//	c, err := api.NewClient("http://127.0.0.1:7433", nil)
//	th, err := c.CreateThread(ctx, api.NewThread{ID: "ticket-4711"})
//	p, err := c.Prepare(ctx, th.ID, api.Step{API: wire.Anthropic, Body: request})
//	answer := send(p.Body)
//	_, err = c.Finish(ctx, th.ID, api.Answer{API: wire.Anthropic, Response: answer})
//
// Conversations travel in one of two forms: in a provider's own (API and Body, or
// Response), read and written by its codec, so that every byte that is not
// touched stays as it was; or in the neutral form (package neutral).
//
// Fields that a later version adds are let pass by the client. The daemon refuses
// fields that it does not know: they are more often a slip than a newer client.
package api
