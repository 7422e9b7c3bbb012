// Package e2e holds tests that run agents end to end: loops written with the
// official SDKs of Anthropic and OpenAI, over real HTTP, against a server that
// refuses what the real APIs refuse, with a compaction every few steps. Some of
// the agents keep their thread with the library, others are ordinary and have the
// proxy between them and the server, in their process or as a server. It is a
// module of its own so that nobody else has to build the SDKs.
package e2e
