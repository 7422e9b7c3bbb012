package crash_test

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// traced are the calls that change files or make changes last.
const traced = "open,openat,creat,write,pwrite64,writev,pwritev,truncate,ftruncate,fallocate,copy_file_range,fsync,fdatasync,sync_file_range," +
	"link,linkat,symlink,symlinkat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir"

// call is a call of the system as strace tells it, or one end of it.
type call struct {
	pid  string
	name string
	// args are decoded: texts are what they say, and file descriptors the path
	// of what they are open on.
	args   []string
	begins bool
	ends   bool
	result int
}

// trace reads what `strace -f -y -xx` writes.
func trace(r io.Reader) ([]call, error) {
	var all []call
	for lines := bufio.NewReaderSize(r, 1<<20); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // half a line is of a call that nobody saw the end of
		}
		if err != nil {
			return nil, err
		}
		pid, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		rest = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(rest, "+++") || strings.HasPrefix(rest, "---") {
			continue
		}
		c := call{pid: pid}
		head, result, ended := strings.Cut(rest, " = ")
		if ended {
			result, _, _ = strings.Cut(strings.Fields(result)[0], "<")
			if c.result, err = strconv.Atoi(result); err != nil {
				if result != "?" { // the process ended in the middle
					return nil, fmt.Errorf("%.200s: %w", line, err)
				}
				continue
			}
			c.ends = true
			head = strings.TrimRight(head, " ")
		}
		if resumed, ok := strings.CutPrefix(head, "<... "); ok {
			c.name, _, _ = strings.Cut(resumed, " ")
			all = append(all, c)
			continue
		}
		name, args, ok := strings.Cut(head, "(")
		if !ok {
			return nil, fmt.Errorf("strace says %.200q", line)
		}
		args = strings.TrimSuffix(strings.TrimSuffix(args, " <unfinished ...>"), ")")
		c.name, c.begins = name, true
		for arg := range strings.SplitSeq(args, ", ") {
			decoded, err := decode(arg)
			if err != nil {
				return nil, fmt.Errorf("%.200s: %w", line, err)
			}
			c.args = append(c.args, decoded)
		}
		all = append(all, c)
	}
}

// decode reads an argument: "\x61" for a text, 3<\x61> for what a descriptor is open
// on, and numbers and names as they are.
func decode(arg string) (string, error) {
	if text, ok := strings.CutPrefix(arg, `"`); ok {
		if !strings.HasSuffix(text, `"`) {
			return "", errors.New("strace has cut a text short")
		}
		return unhex(strings.TrimSuffix(text, `"`))
	}
	_, path, ok := strings.Cut(arg, "<")
	if !ok {
		return arg, nil
	}
	path, deleted, _ := strings.Cut(path, ">")
	path, err := unhex(path)
	return path + deleted, err // "(deleted)" makes it the path of nothing
}

// unhex reads what is written as \x61\x62. What is not hexadecimal stays: the names
// of pipes.
func unhex(text string) (string, error) {
	if !strings.HasPrefix(text, `\x`) {
		return text, nil
	}
	data, err := hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
	return string(data), err
}

// path is the argument that names a file, which may be relative to the folder before it.
func (c call) path(at int) string {
	if filepath.IsAbs(c.args[at]) || at == 0 {
		return filepath.Clean(c.args[at])
	}
	return filepath.Join(c.args[at-1], c.args[at])
}

// number is an argument as a number.
func (c call) number(at int) int {
	n, err := strconv.Atoi(c.args[at])
	if err != nil {
		panic(fmt.Sprintf("%s: argument %d is %q", c.name, at, c.args[at]))
	}
	return n
}
