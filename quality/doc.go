// Package quality notices when compaction took away too much: an agent that
// asks for what it was told, says it cannot see what was there, or looks again
// at what it had looked at. Removed content that is missed is the canary
// of every compaction.
//
// A Monitor watches one thread:
//
//	m := quality.New(threadID, &quality.Options{Events: sink})
//	m.Message(ctx, msg)        // each message, when it is appended to the log
//	m.Compacted(thread, plan)  // each compaction, when its plan takes effect
//	m.TaskFinished(thread.Success) // once
//	m.Metrics()
//
// What was said is judged by phrases, sentence by sentence (see Asks), what was
// done by comparing calls with the calls whose results the plan removed. Both
// keep silent when in doubt: a file that was changed since is read again for
// good reason, and so is a command run that is run all the time, or after any
// change; ordinary questions to the user are none of its business.
package quality
