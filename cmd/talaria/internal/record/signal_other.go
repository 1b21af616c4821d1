//go:build !unix

package record

import "os"

// signalOf is 0: there are none.
func signalOf(*os.ProcessState) int { return 0 }
