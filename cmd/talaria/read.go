package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

func readCommand(c *console.Console) *cobra.Command {
	var out string
	cmd := (&once{console: c}).command("read TARGET URI", "Read a resource", "", exactly("TARGET", "URI"), func(ctx context.Context, s *session, args []string) error {
		if s.json {
			return s.raw(ctx, protocol.MethodResourcesRead, map[string]any{"uri": args[0]})
		}
		result, err := s.Read(ctx, args[0], s.call...)
		switch {
		case err != nil:
			return err
		case out == "":
			return s.render.Read(result)
		}
		return writeOut(c, out, result)
	})
	cmd.Flags().StringVarP(&out, "out", "o", "", "write the bytes of the resource into this `file`; - is standard output")
	return cmd
}

// writeOut puts a resource into a file as it is.
func writeOut(c *console.Console, out string, result *protocol.ReadResourceResult) error {
	var data []byte
	for _, item := range result.Contents {
		if item.Blob != nil {
			data = append(data, item.Blob...)
		} else {
			data = append(data, item.Text...)
		}
	}
	switch {
	case out != "-":
		return os.WriteFile(out, data, 0o644)
	case c.OutTerminal:
		c.Data(string(data))
	default:
		_, _ = c.Write(data) // run says what failed
	}
	return nil
}
