package keyring

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
)

// maxMessages is how many messages one data key may seal with random nonces of 96 bits
// (NIST SP 800-38D, section 8.3).
const maxMessages = 1 << 32

// The format of sealed text; see the package comment.
const (
	form        = 1
	headerBytes = 5
	nonceBytes  = 12
	tagBytes    = 16
)

// Overhead is by how many bytes sealed text is longer than the plain text.
const Overhead = headerBytes + nonceBytes + tagBytes

// Options configure a Keyring; nil or the zero value holds the defaults.
type Options struct {
	// MaxMessages limits the messages of one data key; at the limit the tenant gets the
	// next one. 0 is 2³², which is also the most.
	MaxMessages uint64
	// Tenants is for how many tenants unwrapped keys are held in memory. 0 is 1024.
	Tenants int
	// Fresh is how long they are held before Keys is read again, and so how long
	// another process may take to notice Erase or Rotate. 0 is a minute.
	Fresh time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Keyring encrypts and decrypts the data of tenants. It is safe for concurrent use.
type Keyring struct {
	masters Masters
	keys    Keys
	limit   uint64
	fresh   time.Duration
	now     func() time.Time

	held *lru.Cache[string, *holder] // by tenant
}

// New returns a keyring. It panics if there is no master key, or keys is nil.
func New(masters Masters, keys Keys, o *Options) *Keyring {
	if len(masters.list) == 0 || keys == nil {
		panic("keyring: New needs a master key and Keys")
	}
	o = cmp.Or(o, &Options{})
	r := &Keyring{
		masters: masters, keys: keys, limit: min(cmp.Or(o.MaxMessages, maxMessages), maxMessages), fresh: cmp.Or(max(o.Fresh, 0), time.Minute), now: o.Now,
		held: lru.New[string, *holder](cmp.Or(max(o.Tenants, 0), 1024)),
	}
	if r.now == nil {
		r.now = time.Now
	}
	return r
}

// Seal encrypts text of a tenant with its newest data key, and creates the first one. It
// returns the sealed text and the id of the key. The error wraps ErrErased or ErrNoMaster,
// or is that of Keys.
func (r *Keyring) Seal(ctx context.Context, tenant string, aad, plaintext []byte) (sealed []byte, keyID string, err error) {
	defer wrapErr(&err, "Seal", tenant)
	shares, err := r.take(ctx, tenant, 1)
	if err != nil {
		return nil, "", err
	}
	return shares[0].seal(aad, plaintext), nameOf(shares[0].wrapped.Version), nil
}

// Reserve returns a function like Seal that does not access Keys, for use inside a
// transaction of the database that Keys is in. It may be called n times, by one goroutine.
func (r *Keyring) Reserve(ctx context.Context, tenant string, n int) (seal func(aad, plaintext []byte) ([]byte, error), err error) {
	defer wrapErr(&err, "Reserve", tenant)
	shares, err := r.take(ctx, tenant, uint64(max(n, 0)))
	if err != nil {
		return nil, err
	}
	return func(aad, plaintext []byte) ([]byte, error) {
		for len(shares) > 0 && shares[0].n == 0 {
			shares = shares[1:]
		}
		if len(shares) == 0 {
			return nil, fmt.Errorf("keyring.Reserve(tenant %q): more than %d messages", tenant, n)
		}
		shares[0].n--
		return shares[0].seal(aad, plaintext), nil
	}, nil
}

// seal encrypts one message.
func (k dataKey) seal(aad, plaintext []byte) []byte {
	sealed := make([]byte, headerBytes+nonceBytes, Overhead+len(plaintext))
	sealed[0] = form
	binary.BigEndian.PutUint32(sealed[1:], uint32(k.wrapped.Version))
	nonce := sealed[headerBytes:]
	rand.Read(nonce) // never fails
	return k.aead.Seal(sealed, nonce, plaintext, bind(sealed[:headerBytes], k.wrapped.Tenant, aad))
}

// Open decrypts what Seal returned for the same tenant and aad. The error wraps
// ErrOpen, ErrErased or ErrNoMaster, or is that of Keys.
func (r *Keyring) Open(ctx context.Context, tenant string, aad, sealed []byte) (plaintext []byte, err error) {
	defer wrapErr(&err, "Open", tenant)
	version, err := versionOf(sealed)
	if err != nil {
		return nil, err
	}
	k, err := r.find(ctx, tenant, version)
	if err != nil {
		return nil, err
	}
	body := sealed[headerBytes+nonceBytes:]
	plaintext, err = k.aead.Open(nil, sealed[headerBytes:headerBytes+nonceBytes], body, bind(sealed[:headerBytes], tenant, aad))
	if err != nil {
		return nil, ErrOpen // the cause has no more information
	}
	return plaintext, nil
}

// bind encodes the additional data of sealed text, without ambiguity.
func bind(header []byte, tenant string, aad []byte) []byte {
	b := make([]byte, 0, len(header)+8+len(tenant)+len(aad))
	b = append(b, header...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(tenant)))
	b = append(b, tenant...)
	return append(b, aad...)
}

func nameOf(version int) string { return "dk-" + strconv.Itoa(version) }

func versionOf(sealed []byte) (int, error) {
	if len(sealed) < Overhead || sealed[0] != form {
		return 0, ErrOpen
	}
	version := binary.BigEndian.Uint32(sealed[1:])
	if version == 0 || version > math.MaxInt32 {
		return 0, ErrOpen
	}
	return int(version), nil
}

// Secret returns 32 secret bytes of the tenant for a purpose, such as keyed hashes. They
// are always the same, until the tenant is erased. The error is as that of Seal.
func (r *Keyring) Secret(ctx context.Context, tenant, purpose string) (secret []byte, err error) {
	defer wrapErr(&err, "Secret", tenant)
	k, err := r.find(ctx, tenant, 1)
	if errors.Is(err, ErrOpen) { // no key yet
		if _, err = r.take(ctx, tenant, 1); err == nil {
			k, err = r.find(ctx, tenant, 1)
		}
	}
	if err != nil {
		return nil, err
	}
	return derive(k.key, "secret\x00"+purpose), nil
}

// derive returns an independent key for one use of a data key (HKDF, RFC 5869).
func derive(key []byte, use string) []byte {
	out, err := hkdf.Key(sha256.New, key, nil, "palimpsest "+use, keyBytes)
	if err != nil {
		panic(err) // only for other lengths
	}
	return out
}

func wrapErr(err *error, op, tenant string) {
	if *err != nil {
		*err = fmt.Errorf("keyring.%s(tenant %q): %w", op, tenant, *err)
	}
}
