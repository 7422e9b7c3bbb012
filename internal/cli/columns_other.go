//go:build !linux && !darwin

package cli

import "os"

// columnsOf is how many columns a terminal has; 0 if it does not say.
func columnsOf(*os.File) int { return 0 }
