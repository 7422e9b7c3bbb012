// Package token counts tokens and knows what models allow and cost: how large a
// text, a message and a whole request is for a family of models (Counter), what
// is left of a budget (Budget, Marks), and the limits and prices of models
// (Model, Models).
//
// Counts for OpenAI's encodings are exact and made without any download. For
// Claude and Gemini there is no tokenizer to be had offline; their counts are
// estimates that say how far they may be off (Counter.Band).
//
// Everything here is pure: no clock, no input or output, no goroutine.
package token
