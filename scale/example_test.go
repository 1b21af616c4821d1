package scale_test

import (
	"context"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// A value is changed on the condition that nobody has changed it meanwhile, and
// computed anew if somebody has.
func ExampleStore() {
	ctx := context.Background()
	store := scale.NewLocal()
	key := scale.Key{Partition: "visits", Name: "today"}
	count := func() error {
		found, err := store.Get(ctx, scale.GetOp{Key: key})
		for {
			if err != nil {
				return err
			}
			n := 0
			if e := found[0]; e.Rev != 0 {
				n = int(e.Value[0])
			}
			found, err = store.Put(ctx, scale.Write{Key: key, Prev: found[0].Rev, Value: []byte{byte(n + 1)}, TTL: time.Hour})
			if err == nil && found[0].Err == nil {
				return nil
			}
		}
	}
	for range 3 {
		if err := count(); err != nil {
			fmt.Println(err)
		}
	}
	found, err := store.Get(ctx, scale.GetOp{Key: key})
	fmt.Println(found[0].Value, err)
	// Output: [3] <nil>
}
