package keyring

// KeyID returns the id of the key of sealed text. The error wraps ErrOpen if it is not
// sealed text.
func KeyID(sealed []byte) (string, error) {
	version, err := versionOf(sealed)
	if err != nil {
		return "", err
	}
	return nameOf(version), nil
}
