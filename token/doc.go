// Package token counts the tokens of texts, messages and requests for a family of models
// (Counter), computes budgets (Budget), and knows the limits and prices of models (Model,
// Models).
//
// Counts for OpenAI's encodings are exact, and need no download. There is no offline tokenizer
// of Claude and Gemini; their counts are estimates that say how far they may be off
// (Counter.Band).
//
// Everything here is pure: no clock, no input or output, no goroutine.
package token
