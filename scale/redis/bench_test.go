//go:build linux

package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// cpu returns the time that the engine has worked, as the system counts it.
func (s *server) cpu(b *testing.B) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// own returns the time that this process has worked.
func own(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStore measures what calls cost the engine and this process, from 64
// goroutines, with sessions of 450 bytes and of 16 kB, and one goroutine's wait.
func BenchmarkStore(b *testing.B) {
	engine := start(b)
	s := open(b, user(b, engine))
	ctx := context.WithoutCancel(b.Context()) // as requests of sessions have it
	const sessions = 20_000
	memory := func() int {
		var n int
		for line := range strings.Lines(engine.say("INFO", "memory")) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
				n, _ = strconv.Atoi(text)
			}
		}
		return n
	}
	key := func(i int) scale.Key {
		return scale.Key{Partition: strconv.Itoa(i % 64), Name: fmt.Sprintf("session%036d", i)}
	}
	revs := make([]atomic.Int64, sessions)
	before := memory()
	for i := 0; i < sessions; i += 100 {
		var writes []scale.Write
		for j := range 100 {
			writes = append(writes, scale.Write{Key: key(i + j), Value: make([]byte, 450), TTL: time.Hour, DueIn: time.Hour, Index: "idle"})
		}
		es, err := s.Put(ctx, writes...)
		if err != nil {
			b.Fatal(err)
		}
		for j, e := range es {
			revs[i+j].Store(int64(e.Rev))
		}
	}
	b.Logf("%d bytes of memory for a session of 450", (memory()-before)/sessions)
	long := make([]byte, 16<<10)
	if _, err := s.Put(ctx, scale.Write{Key: scale.Key{Partition: "long", Name: "long"}, Value: long, TTL: time.Hour}); err != nil {
		b.Fatal(err)
	}
	w := s.Watch(func(string, scale.Message) {}, func() {})
	b.Cleanup(w.Close)
	if err := w.Add(ctx, "watched"); err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 450)
	var count atomic.Int64
	for name, call := range map[string]func(ctx context.Context, i int) error{
		"Get/known": func(ctx context.Context, i int) error {
			_, err := s.Get(ctx, scale.GetOp{Key: key(i), Known: scale.Rev(revs[i].Load())})
			return err
		},
		"Get/touch": func(ctx context.Context, i int) error {
			_, err := s.Get(ctx, scale.GetOp{Key: key(i), Known: scale.Rev(revs[i].Load()), TTL: time.Hour, In: time.Hour})
			return err
		},
		"Get/changed": func(ctx context.Context, i int) error { _, err := s.Get(ctx, scale.GetOp{Key: key(i)}); return err },
		"Get/long": func(ctx context.Context, i int) error {
			_, err := s.Get(ctx, scale.GetOp{Key: scale.Key{Partition: "long", Name: "long"}})
			return err
		},
		"Put": func(ctx context.Context, i int) error {
			es, err := s.Put(ctx, scale.Write{Key: key(i), Prev: scale.Rev(revs[i].Load()), Value: value})
			if err == nil {
				revs[i].Store(int64(es[0].Rev))
			}
			return err
		},
		"Put/conflict": func(ctx context.Context, i int) error {
			_, err := s.Put(ctx, scale.Write{Key: key(i), Prev: 1, Value: value})
			return err
		},
		"Put/proof": func(ctx context.Context, i int) error {
			_, err := s.Put(ctx, scale.Write{Key: scale.Key{Partition: strconv.Itoa(i % 64), Name: strconv.FormatInt(count.Add(1), 10)}, Value: []byte{}, TTL: time.Minute})
			return err
		},
		"Append": func(ctx context.Context, i int) error {
			_, _, err := s.Append(ctx, scale.AppendOp{Box: strconv.Itoa(i), Data: value, Keep: 16 << 10, TTL: time.Hour})
			return err
		},
		"Append/heard": func(ctx context.Context, i int) error {
			_, _, err := s.Append(ctx, scale.AppendOp{Box: "watched", Data: value})
			return err
		},
		"Take": func(ctx context.Context, i int) error {
			_, err := s.Take(ctx, scale.Take{Box: "box" + strconv.Itoa(i), Reader: "me", TTL: time.Hour})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			before, mine := engine.cpu(b), own(b)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if err := call(ctx, rand.IntN(sessions)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64((engine.cpu(b)-before).Microseconds())/float64(b.N), "engine-µs/op")
			b.ReportMetric(float64((own(b)-mine).Microseconds())/float64(b.N), "own-µs/op")
		})
		b.Run(name+"/alone", func(b *testing.B) {
			for b.Loop() {
				if err := call(ctx, rand.IntN(sessions)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
