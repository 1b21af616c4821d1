package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/scale"
)

// format is the version of how a Store keeps things. Replicas with another one
// cannot work on the same.
const format = "1"

// check tries whether the engine is as it has to be.
func check(ctx context.Context, e *engine) error {
	if err := checkMachines(ctx, e); err != nil {
		return err
	}
	was, err := e.do(ctx, e.client, e.client.B().Set().Key(formatKey(e)).Value(format).Nx().Get().Build())
	if err != nil {
		return explain(e, "SET", err)
	}
	if was != "" && was != format {
		return fmt.Errorf("redis: what is kept under the prefix %s has format %s, and this version has %s: use another prefix, or the version that made it", e.prefix, was, format)
	}
	return try(ctx, e)
}

// checkMachines looks at each machine of a cluster that answers, or at the one
// that there is.
func checkMachines(ctx context.Context, e *engine) error {
	var failed error
	looked := 0
	for _, machine := range e.client.Nodes() {
		info, err := e.do(ctx, machine, machine.B().Info().Build())
		if err != nil {
			failed = explain(e, "INFO", err)
			continue
		}
		if err := checkInfo(info, e.cluster); err != nil {
			return err
		}
		if strings.Contains(info, "aof_enabled:0") {
			safely.Log(e.log.Warn().Str("prefix", e.prefix), "the engine has appendonly no, and may lose what it had when it starts again")
		}
		looked++
	}
	if looked == 0 {
		return failed
	}
	return nil
}

// formatKey is the key of the format.
func formatKey(e *engine) string { return "{" + e.prefix + "}format" }

// try does everything once that a Store does, so that a user who may not do it
// is found at once.
func try(ctx context.Context, e *engine) error {
	key := scale.Key{Partition: "try", Name: "try"}
	watcher := e.Watch(func(string, scale.Message) {}, func() {})
	defer watcher.Close()
	for _, do := range []func() error{
		func() error { return watcher.Add(ctx, "try") },
		func() error {
			_, err := e.Put(ctx, scale.Write{Key: key, Prev: scale.Any, Value: []byte("x"), TTL: time.Second, DueIn: 1, Index: "try", Limit: "try", Max: 1 << 20, Notify: "try"})
			return err
		},
		func() error {
			_, err := e.Get(ctx, scale.GetOp{Key: key}, scale.GetOp{Key: key, Known: 1, TTL: 1})
			return err
		},
		func() error { _, err := e.ClaimDue(ctx, "try", "try", "try", 1, time.Second); return err },
		func() error {
			_, _, err := e.Append(ctx, scale.AppendOp{Box: "try", Keep: 100, TTL: time.Second, Data: []byte("x")})
			return err
		},
		func() error {
			_, err := e.Take(ctx, scale.Take{Box: "try", Reader: "try", TTL: time.Second})
			return err
		},
		func() error { _, _, err := e.Read(ctx, "try", 0, "try"); return err },
	} {
		if err := do(); err != nil {
			return explain(e, "do what a Store does", err)
		}
	}
	return nil
}

// explain adds to an error of check what may help.
func explain(e *engine, what string, err error) error {
	// The second is how scripts say it.
	if strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "user executing the script can't") {
		prefix := strings.TrimSuffix(strings.TrimPrefix(e.prefix, "talaria:"), ":")
		return fmt.Errorf("redis: the user of the engine may not %s: %w; the rules that the user needs: %s", what, err, ACL(prefix))
	}
	return fmt.Errorf("redis: %s: %w", what, err)
}

// checkInfo checks what INFO says of a machine. In a cluster it may be a replica.
func checkInfo(info string, cluster bool) error {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	major := 0
	if _, err := fmt.Sscanf(fields["redis_version"], "%d", &major); err != nil || major < 7 {
		return fmt.Errorf("redis: the engine has version %q, and 7 is needed", fields["redis_version"])
	}
	if fields["role"] == "slave" && !cluster {
		return errors.New("redis: the engine is a replica: name the machine that takes writes, or its Sentinels")
	}
	if policy := fields["maxmemory_policy"]; policy != "noeviction" && fields["maxmemory"] != "0" {
		return fmt.Errorf("redis: the engine has maxmemory-policy %s and would evict sessions and tasks: set noeviction", policy)
	}
	return nil
}
