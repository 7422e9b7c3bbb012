// Package e2e holds tests that run agents end to end: loops written with the
// official SDKs of Anthropic and OpenAI, over real HTTP, against a server that
// refuses what the real APIs refuse, with a compaction every few steps. It is a
// module of its own so that nobody else has to build the SDKs.
package e2e
