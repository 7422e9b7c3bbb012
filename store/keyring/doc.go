// Package keyring encrypts the data of tenants at rest: whoever has the disk or the
// database, but not the master key, can read nothing.
//
// It is envelope encryption. Each tenant has its own data keys of 256 random bits,
// numbered from 1; the newest encrypts, all decrypt. Data keys are stored encrypted
// (wrapped) by a master key, which is kept elsewhere: in a file or the environment. Both
// layers are AES-256-GCM.
//
//	masters, err := keyring.ParseMasters(os.Getenv("PALIMPSEST_MASTER_KEY"))
//	ring := keyring.New(masters, keys, nil)
//	sealed, keyID, err := ring.Seal(ctx, "acme", []byte("note/17"), text)
//	text, err = ring.Open(ctx, "acme", []byte("note/17"), sealed)
//
// # Additional data
//
// The additional data (aad) identifies the record: its kind and id. Sealed text opens only
// with the same tenant and aad, so it cannot be moved to another record or tenant.
//
// # Format
//
//	byte 0       1, the version of the format
//	bytes 1-4    the number of the data key, big-endian
//	bytes 5-16   nonce, random
//	then         ciphertext and a tag of 16 bytes
//
// # Limits
//
// With random nonces of 96 bits one key may encrypt 2^32 messages (NIST SP 800-38D,
// section 8.3). Blocks of messages are reserved in Keys in advance, so the limit holds over
// restarts and several processes; at the limit the tenant gets the next key. Text is
// encrypted whole, in memory.
//
// # Changing keys
//
// Rotate gives a tenant a new data key. What was sealed before still opens; jobs can find
// it (Stale) and seal it again. A new master key is added behind the old ones; RotateMaster
// wraps every data key with it, and then the old ones can be removed. Erase deletes a
// tenant's keys: nothing that was sealed for it can be read any more, not even from copies.
// Backups of Keys must be deleted too, unless their master key is.
package keyring
