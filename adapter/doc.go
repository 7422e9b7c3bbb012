// Package adapter is what the adapters to agent frameworks share: a framework holds
// the conversation itself and hands the whole of it over before each model call. The
// adapters (adapter/eino, adapter/adk, adapter/genkit, adapter/langchaingo) are modules
// of their own; each has a Codec for the framework's messages and fits Sessions into
// the framework's hook.
//
//	call := sessions.Prepare(ctx, "ticket-4711", base, history) // call.Messages go to the model
//	answer, err := model(ctx, call.Messages)
//	sessions.Finish(ctx, call, usage)
//
// The framework's history stays as it is, and is the truth: what is new in it goes into
// the log, and where it differs from the log the conversation goes on in a fork.
// Whatever goes wrong here, the framework's own messages go to the model.
package adapter
