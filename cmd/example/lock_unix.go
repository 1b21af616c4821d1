//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockWait is how long another process may hold a lock before a call fails.
const lockWait = 5 * time.Second

// lockDirectory keeps other processes of this program from changing files in
// dir until unlock is called.
func lockDirectory(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(lockWait)
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = d.Close() }, nil // which gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		if time.Now().After(end) {
			err = errors.New("another process keeps it locked; try again later")
			break
		}
		if err = pause(ctx, 5*time.Millisecond); err != nil {
			break
		}
	}
	return nil, errors.Join(err, d.Close())
}
