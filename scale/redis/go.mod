module github.com/talaria-go/mcp/scale/redis

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/rs/zerolog v1.35.1
	github.com/talaria-go/mcp v0.1.0
)

require (
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
