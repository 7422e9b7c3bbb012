package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// secretFile holds the key that signs what emulated compactions give agents, in
// palimpsest's data directory: a session that is resumed brings it back.
const secretFile = "native-compaction.key"

// secret reads the key, or makes it where it is needed. It is nil where there is
// none.
func secret(needed bool) ([]byte, error) {
	folder, err := config.DataDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, secretFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !needed {
			return nil, nil
		}
		if err := makeSecret(folder); err != nil {
			return nil, err
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) < 16 {
		return nil, fmt.Errorf("%s holds no key: remove it, and a new one is made", path)
	}
	return key, nil
}

// makeSecret writes a new key, unless somebody was faster.
func makeSecret(folder string) error {
	d, err := durable.Open(folder)
	if err != nil {
		return err
	}
	defer d.Root.Close()
	if err := d.Create(secretFile, []byte(hex.EncodeToString(proxy.NewSecret())+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
