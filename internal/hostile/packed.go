package hostile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"

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
			Case{"a bomb of spaces", how, pack(how, bytes.Repeat([]byte(" "), 1000*n))},
			Case{"not packed", how, sample},
		)
	}
	bomb := pack("gzip", bytes.Repeat([]byte("["), 6_000_000))
	return append(list,
		Case{"a bomb of brackets", "gzip", bomb}, Case{"a bomb in a bomb", "gzip", pack("gzip", bytes.Repeat(bomb, 200))},
		Case{"members of a packing", "gzip", bytes.Repeat(pack("gzip", []byte("{}")), n/30)},
		Case{"packed as nobody knows", "x-unheard-of", sample}, Case{"packed in three ways", "gzip, deflate, br", sample},
	)
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
