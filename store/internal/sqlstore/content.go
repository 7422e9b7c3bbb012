package sqlstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/store"
)

// Content columns begin with a byte that says what follows: a checksum (CRC-32C, four
// bytes, big-endian) and plain text, or what the keyring returned.
const (
	inClear = 1
	sealed  = 2
)

var errDamaged = errors.New("the stored content is damaged")

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// rowName identifies the row of content; encrypted content opens in no other row. The
// lengths keep two rows from having the same name.
func rowName(table string, keys ...any) []byte {
	var b strings.Builder
	b.WriteString(table)
	for _, k := range keys {
		s := fmt.Sprint(k)
		b.WriteString("/" + strconv.Itoa(len(s)) + ":" + s)
	}
	return []byte(b.String())
}

// sealer encrypts contents, or adds a checksum.
type sealer func(at, plain []byte) ([]byte, error)

// unsealed is a sealer without encryption.
func unsealed(_, plain []byte) ([]byte, error) {
	out := append(make([]byte, 0, 5+len(plain)), inClear)
	out = binary.BigEndian.AppendUint32(out, checksum(plain))
	return append(out, plain...), nil
}

// reserve returns a sealer for at most so many contents of the tenant. It never waits for
// the database.
func (t *tenant) reserve(ctx context.Context, contents int) (sealer, error) {
	if t.db.ring == nil {
		return unsealed, nil
	}
	seal, err := t.db.ring.Reserve(ctx, t.id, contents)
	if err != nil {
		return nil, err
	}
	return func(at, plain []byte) ([]byte, error) {
		data, err := seal(at, plain)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		return append([]byte{sealed}, data...), nil
	}, nil
}

// open returns the content that was sealed.
func (t *tenant) open(ctx context.Context, at, data []byte) (plain []byte, err error) {
	switch {
	case len(data) >= 5 && data[0] == inClear:
		if plain = data[5:]; checksum(plain) != binary.BigEndian.Uint32(data[1:]) {
			err = errDamaged
		}
	case len(data) == 0 || data[0] != sealed:
		err = errDamaged
	case t.db.ring == nil:
		err = store.ErrSealed
	default:
		plain, err = t.db.ring.Open(ctx, t.id, at, data[1:])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return plain, nil
}
