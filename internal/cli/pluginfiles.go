package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkPluginFiles refuses to write or remove the files of a plugin, named with slashes below a folder,
// where a link leads elsewhere or a file is not ours: all of ours name Palimpsest. The error names the path.
func checkPluginFiles(folder string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := folder
		for part, rest, more := strings.Cut(name, "/"); part != ""; part, rest, more = strings.Cut(rest, "/") {
			path = filepath.Join(path, part)
			info, err := os.Lstat(path)
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return err
			}
			if info.Mode()&fs.ModeSymlink != 0 {
				return fmt.Errorf("%s is a link: nothing was changed; remove it, or put a folder there", path)
			}
			if more && info.IsDir() {
				continue
			}
			var data []byte
			if info.Mode().IsRegular() && info.Size() < 1<<20 { // no file of ours is that large
				data, err = os.ReadFile(path)
			}
			if err != nil || !strings.Contains(strings.ToLower(string(data)), "palimpsest") {
				return errors.Join(err, fmt.Errorf("%s is not a file of Palimpsest: nothing was changed; move it away first", path))
			}
		}
	}
	return nil
}
