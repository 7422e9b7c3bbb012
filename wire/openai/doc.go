// Package openai holds the codecs and strict validators of OpenAI's two request
// APIs, Chat Completions (Chat) and Responses (Responses), which most other
// providers and local servers speak too. They differ in everything but the
// name of the company, so each stands in its own files: chat*.go and
// responses*.go.
//
// What both keep to: a body that was read is written back byte for byte, and
// where messages, tools, model or the output limit were changed, only those
// places of the body change.
package openai
