package inspector

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// The interval at which the file of a recording is read for new lines, and the
// number of invalid lines after which it is given up.
const (
	followEvery = 300 * time.Millisecond
	maxOdd      = 1000
)

// errRecorded is the answer to what needs a server.
var errRecorded = errors.New("this is a recording: there is no server to ask")

// growing is a file to which others append. It ends with ctx.
type growing struct {
	ctx  context.Context
	file *os.File
}

func (g *growing) Read(p []byte) (int, error) {
	for {
		n, err := g.file.Read(p)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		select {
		case <-g.ctx.Done():
			return 0, io.EOF
		case <-time.After(followEvery):
		}
	}
}
