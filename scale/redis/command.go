package redis

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/talaria-go/mcp/scale"
)

// script is one that the engine runs.
type script struct{ text, sha string }

func newScript(text string) script {
	text = common + text
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

var (
	//go:embed common.lua
	common string
	//go:embed touch.lua
	touchText string
	//go:embed put.lua
	putText string
	//go:embed due.lua
	dueText string
	//go:embed append.lua
	appendText string
	//go:embed read.lua
	readText string
	//go:embed take.lua
	takeText string

	touchScript, putScript, dueScript    = newScript(touchText), newScript(putText), newScript(dueText)
	appendScript, readScript, takeScript = newScript(appendText), newScript(readText), newScript(takeText)
)

// command is what the engine is asked: a script with its keys and arguments, or
// fields of a hash.
type command struct {
	script *script
	keys   []string
	args   []string
}

// build makes the command of the client. whole has the text of a script sent,
// since the engine does not know it by its digest.
func (c *command) build(client rueidis.Client, whole bool) rueidis.Completed {
	switch {
	case c.script == nil:
		return client.B().Hmget().Key(c.keys[0]).Field(c.args...).Build()
	case whole:
		return client.B().Eval().Script(c.script.text).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
	default:
		return client.B().Evalsha().Sha1(c.script.sha).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
	}
}

// number writes a Rev.
func number(rev scale.Rev) string { return strconv.FormatInt(int64(rev), 10) }

// century is longer than anything is kept.
const century = 100 * 365 * 24 * time.Hour

// millis writes a time in milliseconds, which never ends early.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((min(d, century)+time.Millisecond-1)/time.Millisecond), 10)
}

// micros writes a time in microseconds, which never ends early; less than 0 as -1.
func micros(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	return strconv.FormatInt(int64((min(d, century)+time.Microsecond-1)/time.Microsecond), 10)
}
