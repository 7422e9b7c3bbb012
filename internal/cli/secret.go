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

// secretFile holds the key that signs emulated compactions, in palimpsest's data directory. A
// resumed session sends them back, so the key outlives a run.
const secretFile = "native-compaction.key"

// loadSecret reads the key, and creates one if it is needed. Without one it returns nil.
func loadSecret(needed bool) ([]byte, error) {
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
		d, failed := durable.Open(folder)
		if failed != nil {
			return nil, failed
		}
		defer d.Root.Close()
		if err := d.Create(secretFile, []byte(hex.EncodeToString(proxy.NewSecret())+"\n")); err != nil && !errors.Is(err, fs.ErrExist) { // another process was first
			return nil, err
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) < 16 {
		return nil, fmt.Errorf("%s holds no key: remove it, and a new one will be made", path)
	}
	return key, nil
}
