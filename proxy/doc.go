// Package proxy stands between an agent and its model's provider, and keeps the agent's
// conversation inside the context window without the agent's help.
//
//	p, err := proxy.New(&proxy.Options{})
//	http.ListenAndServe("127.0.0.1:7433", p)
//
// An agent reaches it by its base URL. Within one process a Transport does the same for every
// SDK that takes an http.Client.
//
// # What happens to a request
//
// A small request passes byte for byte, and so does everything that has to do neither with a
// conversation (its steps, counts of its tokens, its native compaction) nor with a response that the
// provider keeps. For a larger one the proxy finds its conversation (package identify): by the
// header X-Palimpsest-Thread, or by the ids that clients send together with model, system, tools
// and first message; then by the chained ids of its messages. A rewritten history (a rewind, an
// edit, the client's own compaction) is a fork of the log, under the plan that still holds. New
// messages are appended to the log, and the rendering goes to the provider, with the same
// prefix from step to step until the next compaction.
//
// If the provider refuses a request as too long, the proxy asks again with a smaller one, before
// the client has seen a byte. Once something was removed, the model is offered read_artifact and
// recall. The proxy answers its calls to them in further requests, which the client does not see.
//
// The files: roundtrip.go is the way of a request from top to bottom, and each stage has one that its
// value goes through (request.go). limits.go bounds what it takes; emulation.go has package emulate do the provider's own
// compaction in its place; history.go finds a history that the request does not hold;
// parse.go and conversation.go, with package identify, which conversation it continues; step.go decides
// what is sent, and compactors.go within which limits. ask.go gets the answer, which may take further
// tries, and send.go sends each. rounds*.go are further requests within one answer (package dialect
// knows how each API writes that), history_record.go is what is kept of an answer, and report.go what is
// told of it. failopen.go says what happens if our own part fails, websocket.go is the WebSocket on
// which Codex asks, and documents.go is what outlives the process.
//
// # Never harm
//
// Whatever goes wrong here (a store, a panic, a deadline), the client's own bytes go to the
// provider, and an event says so. The headers X-Palimpsest-* of the answer say what was done.
package proxy
