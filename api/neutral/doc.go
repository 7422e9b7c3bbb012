// Package neutral is the JSON form of messages and prompts that belongs to no
// provider: what the daemon takes and gives where a caller speaks none of their
// APIs. It says all that a message holds but the bytes it came from, which only
// its own provider can read.
//
//	m := neutral.MessageOf(log.At(0))       // to JSON
//	v, err := m.Value("messages[0]")        // and back, checked
package neutral
