package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/bundle"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// packCommand makes an MCP bundle of a server.
type packCommand struct {
	console                          *console.Console
	manifest, target, out, toolchain string
}

func (p *packCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pack PACKAGE [FILE…]", Short: "Pack a server into an MCP bundle", GroupID: groupMore, Args: between(1, -1, "PACKAGE"),
		Long: `Pack builds the program in the directory PACKAGE and writes it, its manifest.json, the
icons that this names, and each FILE into a bundle (.mcpb), which hosts install with a
click. A bundle is for one target, which its name says. Packed again from the same
files, by anybody and anywhere, with the same version of Go and of this command, it has
the same SHA-256.

Everybody who gets a bundle can read all of it. So folders and hidden files are refused,
and so are values of environment variables, and defaults of sensitive settings.`,
		Example: "  talaria pack .\n  talaria pack ./cmd/weather --manifest manifest.json LICENSE --target windows/amd64",
		RunE:    func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), args[0], args[1:]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&p.manifest, "manifest", "", "the manifest `file`; files that it names lie in its folder, and each FILE too (default: manifest.json in PACKAGE)")
	flags.StringVar(&p.target, "target", runtime.GOOS+"/"+runtime.GOARCH, "build for this `GOOS/GOARCH`")
	flags.StringVar(&p.out, "out", "", "write this `file` (default: NAME-VERSION-GOOS-GOARCH.mcpb here)")
	flags.StringVar(&p.toolchain, "toolchain", "", "build with this `version` of Go (default: what the go command takes in PACKAGE)")
	return cmd
}

func (p *packCommand) run(ctx context.Context, dir string, files []string) error {
	if err := named("out", p.out, "bundle"); err != nil {
		return err
	}
	target, err := bundle.ParseTarget(p.target)
	if err != nil {
		return usage("--target: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usage("%s is no directory", dir).with("name the directory of the program, such as . or ./cmd/weather")
	}
	if p.manifest == "" {
		p.manifest = filepath.Join(dir, bundle.ManifestName)
	}
	made, err := bundle.Pack(ctx, bundle.Source{Manifest: p.manifest, Package: dir, Files: files, Target: target, Toolchain: p.toolchain}, p.out)
	if unnamed, ok := errors.AsType[*bundle.ToolchainError](err); ok {
		return usage("--toolchain: %w", unnamed)
	}
	if err != nil {
		return err
	}
	p.console.Printf("%s %s", p.console.Paint(console.Good, "wrote"), made.Path)
	p.console.Printf("%d bytes, sha256 %s, built with %s for %s; everybody who gets it can read:", made.Size, made.SHA256, made.Toolchain, target)
	for _, name := range made.Names {
		p.console.Print("  " + console.Line(name))
	}
	return nil
}
