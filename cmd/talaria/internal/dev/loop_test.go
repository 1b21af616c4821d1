package dev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a program whose files, builds and starts a test makes up.
type fake struct {
	build time.Duration // how long it takes

	mu     sync.Mutex
	wrong  error // of the next builds
	lost   error // the sources cannot be found
	files  Snapshot
	events []string
	began  time.Time
	t      *testing.T
}

func newFake(t *testing.T) *fake {
	return &fake{build: time.Second, files: Snapshot{"main.go": {time.Now(), 1}}, began: time.Now(), t: t}
}

func (f *fake) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf("%s %s", time.Since(f.began), fmt.Sprintf(format, args...)))
}

// write changes files.
func (f *fake) write(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = maps.Clone(f.files)
	for _, name := range names {
		f.files[name] = Stamp{time.Now(), f.files[name].Size + 1}
	}
}

// breaks sets what is wrong with the program.
func (f *fake) breaks(wrong, lost error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong, f.lost = wrong, lost
}

func (f *fake) fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.lost, f.wrong)
}

// run runs the loop while the test does something, and compares what happened.
func (f *fake) run(do func(), want ...string) {
	f.t.Helper()
	builds := 0
	sources := func() Sources {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.lost != nil {
			return Sources{}
		}
		var s Sources
		for name := range f.files {
			s.Files = append(s.Files, name)
		}
		return s
	}
	l := Loop{
		Make: func(ctx context.Context) (Sources, string, error) {
			found := sources()
			builds++
			f.say("build %d", builds)
			select {
			case <-time.After(f.build):
			case <-ctx.Done():
				f.say("ended %d", builds)
				return found, "", context.Cause(ctx)
			}
			return found, fmt.Sprint(builds), f.fault()
		},
		Start: func(_ context.Context, file string) error {
			f.say("start %s", file)
			return nil
		},
		Scan: func(s Sources) Snapshot {
			f.mu.Lock()
			defer f.mu.Unlock()
			seen := Snapshot{}
			for _, name := range s.Files {
				if stamp, ok := f.files[name]; ok {
					seen[name] = stamp
				}
			}
			return seen
		},
		Failed: func(err error) { f.say("failed: %v", err) },
	}
	ctx, stop := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	do()
	stop()
	if err := <-ended; err != nil {
		f.say("end: %v", err)
	}
	if got := strings.Join(f.events, "\n"); got != strings.Join(want, "\n") {
		f.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestLoop(t *testing.T) {
	at := func(f *fake, when time.Duration) { time.Sleep(when - time.Since(f.began)) }
	for name, test := range map[string]func(f *fake){
		"a change is built once it is quiet": func(f *fake) {
			f.run(func() {
				at(f, 2050*time.Millisecond)
				f.write("main.go")
				at(f, 2150*time.Millisecond)
				f.write("main.go")
				at(f, 5*time.Second)
			}, "0s build 1", "1s start 1", "2.5s build 2", "3.5s start 2")
		},
		"as long as something changes there is no build": func(f *fake) {
			f.run(func() {
				at(f, 2*time.Second+50*time.Millisecond)
				for range 10 {
					f.write("main.go")
					time.Sleep(100 * time.Millisecond)
				}
				at(f, 5*time.Second)
			}, "0s build 1", "1s start 1", "3.3s build 2", "4.3s start 2")
		},
		"a further change ends a build": func(f *fake) {
			f.run(func() {
				at(f, 2*time.Second)
				f.write("main.go")
				at(f, 2700*time.Millisecond)
				f.write("main.go")
				at(f, 6*time.Second)
			}, "0s build 1", "1s start 1", "2.3s build 2", "2.9s ended 2", "3.1s build 3", "4.1s start 3")
		},
		"a failed build keeps the program": func(f *fake) {
			f.run(func() {
				at(f, 2*time.Second)
				f.breaks(errors.New("syntax error"), nil)
				f.write("main.go")
				at(f, 4*time.Second)
				f.breaks(nil, nil)
				f.write("main.go")
				at(f, 6*time.Second)
			}, "0s build 1", "1s start 1", "2.3s build 2", "3.3s failed: syntax error", "4.3s build 3", "5.3s start 3")
		},
		"the first build fails": func(f *fake) {
			f.breaks(errors.New("syntax error"), nil)
			f.run(func() {
				at(f, 4*time.Second)
				f.breaks(nil, nil)
				f.write("main.go")
				at(f, 6*time.Second)
			}, "0s build 1", "1s failed: syntax error", "4.4s build 2", "5.4s start 2")
		},
		"there is no program": func(f *fake) {
			f.breaks(nil, errors.New("no program"))
			f.run(func() { at(f, 4*time.Second) }, "0s build 1", "4s end: no program")
		},
		"the program goes away": func(f *fake) {
			f.run(func() {
				at(f, 2*time.Second)
				f.mu.Lock()
				f.lost, f.files = errors.New("no program"), Snapshot{}
				f.mu.Unlock()
				at(f, 4900*time.Millisecond)
				f.breaks(nil, nil)
				f.write("main.go")
				at(f, 7*time.Second)
			}, "0s build 1", "1s start 1", "2.3s build 2", "3.3s failed: no program", "5.2s build 3", "6.2s start 3")
		},
		"what changes during the first build is built again": func(f *fake) {
			f.run(func() {
				at(f, 500*time.Millisecond)
				f.write("main.go")
				at(f, 3*time.Second)
			}, "0s build 1", "1s start 1", "1.4s build 2", "2.4s start 2")
		},
		"a new file that the build has found is not built again, unless it changes meanwhile": func(f *fake) {
			f.run(func() {
				at(f, 2*time.Second)
				f.write("main.go", "new.go")
				at(f, 4*time.Second)
				f.write("main.go", "other.go")
				at(f, 4700*time.Millisecond)
				f.write("other.go")
				at(f, 8*time.Second)
			}, "0s build 1", "1s start 1", "2.3s build 2", "3.3s start 2", "4.3s build 3", "5.3s start 3", "5.7s build 4", "6.7s start 4")
		},
		"the end ends a build": func(f *fake) {
			f.run(func() { at(f, 500*time.Millisecond) }, "0s build 1", "500ms ended 1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				time.Sleep(time.Millisecond) // the files are older than the first build
				f.began = time.Now()
				test(f)
			})
		})
	}
}

// Looks that take long are fewer, down to one a second.
func TestIntervals(t *testing.T) {
	for slow, want := range map[time.Duration]int{0: 34, 10 * time.Millisecond: 21, 100 * time.Millisecond: 10} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			l := Loop{
				Make:  func(context.Context) (Sources, string, error) { return Sources{Files: []string{"main.go"}}, "1", nil },
				Start: func(context.Context, string) error { return nil },
				Scan: func(Sources) Snapshot {
					looks++
					time.Sleep(slow)
					return Snapshot{}
				},
			}
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			if err := l.Run(ctx); err != nil || looks != want {
				t.Errorf("a look of %s: %d in 10 s, want %d; %v", slow, looks, want, err)
			}
		})
	}
}

// TestLoopEnds checks that a first build that fails with the end of the context is no error,
// also if the loop sees both at once.
func TestLoopEnds(t *testing.T) {
	for range 20 { // select takes either
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			looks := make(chan struct{})
			l := Loop{
				Make: func(context.Context) (Sources, string, error) {
					<-looks
					stop()
					return Sources{}, "", errors.New("killed")
				},
				Scan: func(Sources) Snapshot {
					close(looks)
					synctest.Wait()
					return nil
				},
				Failed: func(err error) { t.Errorf("failed: %v", err) },
			}
			if err := l.Run(ctx); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
