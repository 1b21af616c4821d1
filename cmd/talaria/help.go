package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
)

// strictHelp has no help for commands that there are not.
type strictHelp struct {
	root    *cobra.Command
	unknown error // that the flag was given a command that is none: what calls it cannot fail
}

// replace takes the place of the help of root.
func (h *strictHelp) replace() {
	show := h.root.HelpFunc()
	h.root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
		if cmd == h.root && i >= 0 { // what stands after the flag is not looked at yet
			if cmd, _, _ = h.root.Find(args[i:]); cmd == h.root {
				h.unknown = unknownCommand(h.root, args[i])
				return
			}
			cmd.InitDefaultHelpFlag()
		}
		show(cmd, args)
	})
	h.root.InitDefaultHelpCmd()
	for _, c := range h.root.Commands() {
		if c.Name() != "help" {
			continue
		}
		explain := c.Run
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if found, _, err := h.root.Find(args); len(args) > 0 && (err != nil || found == h.root) {
				return unknownCommand(h.root, args[0])
			}
			explain(cmd, args)
			return nil
		}
	}
}

// unknownCommand is the error for a name that is no command's.
func unknownCommand(root *cobra.Command, name string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	hint := "talaria -h lists the commands"
	if near := arguments.Nearest(name, names); near != "" {
		hint = "did you mean talaria " + near + "? " + hint
	}
	return usage("unknown command %q", name).with(hint)
}
