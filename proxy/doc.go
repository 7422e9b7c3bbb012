// Package proxy stands between any agent and its model's provider and keeps the
// agent's conversation inside the context window, while the agent knows nothing
// of it.
//
//	p, err := proxy.New(&proxy.Options{})
//	http.ListenAndServe("127.0.0.1:7433", p)
//
// An agent is pointed at it by its base URL. In one process a Transport does the
// same for every SDK that takes an http.Client.
//
// # What happens to a request
//
// A request that is small passes as it is, byte for byte, and so does everything
// that is no question to a model. Of a larger one the conversation is recognised
// (package identify): by the header X-Palimpsest-Thread, else by the ids that the
// clients send together with model, system, tools and first message, and always by
// the chained ids of its messages. A history that was rewritten (a rewind, an edit,
// the client's own compaction) is a fork of the log, with the plan that still holds.
// What is new goes to the log, and the render goes to the provider: the same
// prefix from step to step until the next compaction.
//
// A provider that refuses the request as too long is asked once more, with a
// smaller one, before the client has seen a byte. Once something was taken out,
// the model is offered read_artifact and recall; its calls to them are answered
// here, in further requests that the client does not see.
//
// The files: exchange.go is the way of a request from top to bottom. Before it is sent:
// read.go, session_*.go (how its conversation is found), prepare.go, and forward.go (when it
// goes on as it came). After: refusal.go (a refused one is sent in another way), streams.go
// (answers that pass), usage.go (what they count), rounds*.go (further requests within one
// answer), dialect*.go (how each API writes that). failopen.go says what happens when our own
// part fails. native*.go is what concerns the provider's own compaction, providerstate*.go the
// histories that the provider holds for a client, websocket.go the WebSocket on which Codex
// asks, memory_bounds.go how much is held, records.go what outlives the process.
//
// # Never harm
//
// Whatever goes wrong here (a store, a panic, a deadline), the client's own bytes
// go to the provider and an event says so. The headers X-Palimpsest-* of the
// answer say what was done.
package proxy
