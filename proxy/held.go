package proxy

import "strings"

const (
	// timesBytes is how much memory the work on a request may take, in multiples of its bytes, and
	// bytesOfText what texts take of that.
	timesBytes, bytesOfText = 20, 4
	// bytesOfObject is what the work takes for each JSON object of a request, however small: a
	// message, a part or a call, and what is found in it.
	bytesOfObject = 3 << 10
	// freeBytes may be taken by any request.
	freeBytes = 96 << 20
)

// canBeHeld reports whether the work on a request takes no more memory than one of its size may.
// Requests of agents have more than 200 bytes to an object, also the longest; one of very many tiny
// messages, parts or calls would take a hundred times its bytes.
func canBeHeld(body string) bool {
	most := max(timesBytes*len(body), freeBytes) - bytesOfText*len(body)
	return bytesOfObject*strings.Count(body, "{") <= most || bytesOfObject*objects(body) <= most // braces in texts are no objects
}

// workBytes is about how much memory the work on a request takes, besides its body; 0 for a small one,
// which is not counted.
func workBytes(body string) int {
	if len(body) < 256<<10 {
		return 0
	}
	return max(usualTimes*len(body), bytesOfText*len(body)+bytesOfObject*objects(body))
}

// usualTimes is how much memory the work on a request takes that is not of very many tiny things, in
// multiples of its bytes.
const usualTimes = 12

// objects counts the objects of a JSON document.
func objects(doc string) (n int) {
	for {
		quote := strings.IndexByte(doc, '"')
		if quote < 0 {
			return n + strings.Count(doc, "{")
		}
		n += strings.Count(doc[:quote], "{")
		doc = doc[quote+1:]
		for {
			end := strings.IndexByte(doc, '"')
			if end < 0 {
				return n
			}
			escapes := end - len(strings.TrimRight(doc[:end], `\`))
			doc = doc[end+1:]
			if escapes%2 == 0 {
				break
			}
		}
	}
}
