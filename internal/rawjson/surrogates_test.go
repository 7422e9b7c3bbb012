package rawjson

import "testing"

func TestMendSurrogates(t *testing.T) {
	for in, want := range map[string]struct {
		out string
		n   int
	}{
		`"plain"`:                         {`"plain"`, 0},
		`"\ud83d\ude00"`:                  {`"\ud83d\ude00"`, 0},
		`"\uD83D\uDE00 \uD83D"`:           {`"\uD83D\uDE00 \ufffd"`, 1},
		`"\ude00\ud83d"`:                  {`"\ufffd\ufffd"`, 2},
		`"\ud83d\ud83d\ude00"`:            {`"\ufffd\ud83d\ude00"`, 1},
		`"\\ud83d \\\ud83d \n"`:           {`"\\ud83d \\\ufffd \n"`, 1},
		`{"\udc00":"\u00e9\ud800\u0041"}`: {`{"\ufffd":"\u00e9\ufffd\u0041"}`, 2},
	} {
		if out, n := MendSurrogates([]byte(in)); string(out) != want.out || n != want.n {
			t.Errorf("%s: %s, %d; want %s, %d", in, out, n, want.out, want.n)
		}
	}
}
