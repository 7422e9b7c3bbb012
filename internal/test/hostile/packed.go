package hostile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Packed are a sample packed wrongly, and packings that hold far more than they
// should: unpacked they are about a thousand times n.
func Packed(sample []byte, n int) (list []Case) {
	for _, how := range []string{"gzip", "deflate", "zstd"} {
		whole := pack(how, sample)
		list = append(list,
			Case{"packed", how, whole},
			Case{"packed and cut off", how, whole[:len(whole)*2/3]},
			Case{"packed without its end", how, whole[:len(whole)-2]},
			Case{"packed, a byte in the middle changed", how, changed(whole, len(whole)/2)},
			Case{"packed, its end changed", how, changed(whole, len(whole)-6)},
			Case{"packed and followed by words", how, append(whole[:len(whole):len(whole)], "words"...)},
			Case{"packed twice", how, pack(how, whole)},
			Case{"a bomb of spaces", how, bomb(how, " ", 1000*n)},
			Case{"not packed", how, sample},
		)
	}
	brackets := bomb("gzip", "[", 6_000_000)
	return append(list,
		Case{"a bomb of brackets", "gzip", brackets}, Case{"a bomb in a bomb", "gzip", bomb("gzip", string(brackets), 200)},
		Case{"members of a packing", "gzip", bytes.Repeat(pack("gzip", []byte("{}")), n/30)},
		Case{"packed as nobody knows", "x-unheard-of", sample}, Case{"packed in three ways", "gzip, deflate, br", sample},
	)
}

type bombKind struct {
	how, of string
	n       int
}

// bombs keeps what was packed: it is the same for every sample, and packing it takes longer
// than most of what is tried with it.
var bombs sync.Map

// bomb is a text n times, packed. Nobody may write to it.
func bomb(how, of string, n int) []byte {
	kind := bombKind{how, of, n}
	made, ok := bombs.Load(kind)
	if !ok {
		made, _ = bombs.LoadOrStore(kind, pack(how, bytes.Repeat([]byte(of), n)))
	}
	return made.([]byte)
}

func changed(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 0x55
	return data
}

func pack(how string, data []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch how {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w, err = flate.NewWriter(&b, flate.BestSpeed)
	default:
		w, err = zstd.NewWriter(&b)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("hostile: packing in memory fails: %v", err))
	}
	return b.Bytes()
}
