package quality

import "testing"

// A phrase is compiled when a text first needs it, so that one which does not compile
// would be found late.
func TestPhrasesCompile(t *testing.T) {
	for _, phrases := range [][]phrase{agentPhrases, userPhrases} {
		for _, p := range phrases {
			p.re()
			if p.exception != nil {
				p.exception()
			}
		}
	}
}
