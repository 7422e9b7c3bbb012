// Package openai has the codecs and strict validators of OpenAI's two request APIs, Chat
// Completions (Chat) and Responses (Responses), which most other providers and local
// servers speak too. The two have little in common, so each has files of its own: chat*.go
// and responses*.go.
//
// Both write a body that was read back byte for byte. Where messages, tools, model or the
// output limit changed, only those places of the body change.
package openai
