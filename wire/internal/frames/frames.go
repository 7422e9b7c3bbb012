// Package frames tells which messages can be sent as the bytes that they were read
// from.
package frames

import "github.com/palimpsest-ai/palimpsest/thread"

// WholeFrame returns how many messages at the start of a list are all those that were read
// from one element of a request of the API, in order; 0 where one of them is missing
// or was replaced.
func WholeFrame(list []thread.Message, api string) int {
	f := list[0].Frame
	if f == nil || f.API() != api || f.Raw() == "" || f.Messages() < 1 || f.Messages() > len(list) {
		return 0
	}
	for i := range list[:f.Messages()] {
		if list[i].Frame != f || list[i].Index != i {
			return 0
		}
	}
	return f.Messages()
}
