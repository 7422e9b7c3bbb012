// Package keyring seals what is kept for a tenant, so that who holds the disk or
// the database without the master key reads nothing (A20, "encrypted at rest").
//
// It is envelope encryption. Each tenant has data keys of its own, 256 random
// bits each, numbered from 1; the newest seals, all open. Data keys are kept
// wrapped by a master key, which is kept elsewhere: a file or the environment.
// Both layers are AES-256-GCM of the standard library.
//
//	masters, err := keyring.ParseMasters(os.Getenv("PALIMPSEST_MASTER_KEY"))
//	ring := keyring.New(masters, keys, nil)
//	sealed, keyID, err := ring.Seal(ctx, "acme", []byte("note/17"), text)
//	text, err = ring.Open(ctx, "acme", []byte("note/17"), sealed)
//
// # What is bound
//
// The additional data (aad) names the record: its kind and id. Sealed text opens
// only with the same tenant, aad and key, so it cannot be moved to another
// record, nor to another tenant.
//
// # Form
//
//	byte 0       1, the version of this form
//	bytes 1-4    the number of the data key, big-endian
//	bytes 5-16   nonce, random
//	then         ciphertext and a tag of 16 bytes
//
// # Limits
//
// With random nonces of 96 bits one key may seal 2^32 messages (NIST SP
// 800-38D, section 8.3). Uses are reserved in Keys before they are made, in
// blocks, so the limit holds over restarts and over several processes; when it is
// reached the next key is made. Text is sealed and opened whole, in memory, with
// one copy.
//
// # Changing keys
//
// Rotate gives a tenant a new data key. What was sealed before still opens; a job
// seals it anew when it likes (Stale). A new master key goes behind the old ones;
// RotateMaster wraps every data key with it, and then the old one can go. Erase
// forgets a tenant's keys: nothing of what was sealed for it can be read any
// more, wherever copies of it are. Copies of the wrapped keys (backups of Keys)
// must go too, or be useless without a master key that goes.
package keyring
