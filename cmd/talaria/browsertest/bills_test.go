package browsertest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/talaria-go/mcp"
)

type splitIn struct {
	Total  float64 `json:"total" validate:"gt=0" jsonschema_description:"the bill, in any currency"`
	People int     `json:"people" validate:"min=1,max=100" jsonschema_description:"how many share it"`
	Tip    int     `json:"tip,omitempty" validate:"min=0,max=50" jsonschema:"default=10" jsonschema_description:"tip in percent"`
}

type share struct {
	Person string  `json:"person"`
	Owes   float64 `json:"owes"`
}

type splitOut struct {
	Shares []share `json:"shares"`
}

type noteIn struct {
	Note string `json:"note" jsonschema_description:"its name"`
}

type sure struct {
	Sure bool `json:"sure" jsonschema_description:"there is no way back"`
}

// bills is a server that works, unless its directory has a file that is called
// broken. A file called more gives it one tool more.
func bills(dir string) {
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	fmt.Fprintln(os.Stderr, "listening")
	if there("broken") {
		fmt.Fprintln(os.Stderr, "no such table: bills")
		os.Exit(1)
	}
	s := billsServer()
	if there("more") {
		s.MustAdd(mcp.Tool("add_tip", func(*mcp.Frame, noteIn) (string, error) { return "added", nil }, mcp.Doc("Adds a tip")))
	}
	if err := s.ServeStdio(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// billsServer is that server, which knows who asks by a header.
func billsServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "bills", Version: "1.0.0"}, &mcp.Options{Instructions: "Ask before you delete."})
	s.MustAdd(
		mcp.Tool("split_bill", func(_ *mcp.Frame, in splitIn) (out splitOut, _ error) {
			each := in.Total * float64(100+in.Tip) / 100 / float64(in.People)
			fmt.Fprintf(os.Stderr, "rounding %.3f\n", each)
			for _, person := range []string{"Ann", "Bob", "Cleo", "Dora"}[:min(in.People, 4)] {
				out.Shares = append(out.Shares, share{person, float64(int(each*100)) / 100})
			}
			return out, nil
		}, mcp.Doc("Splits a bill among people"), mcp.ReadOnly()),
		mcp.Tool("delete_note", func(f *mcp.Frame, in noteIn) (string, error) {
			answer, err := mcp.Elicit[sure](f, "sure", fmt.Sprintf("Delete %q for good?", in.Note))
			if err != nil {
				return "", err
			}
			if !answer.Accepted() || !answer.Value.Sure {
				return "nothing was deleted", nil
			}
			return "deleted " + in.Note, nil
		}, mcp.Doc("Deletes a note"), mcp.Destructive(true)),
		mcp.Tool("find_notes", func(f *mcp.Frame, in noteIn) (string, error) {
			return "", fmt.Errorf("there is no note %q of %s", in.Note, cmp.Or(f.Header("X-Key"), "yours"))
		}, mcp.Doc("Finds notes by a part of their name")),
		mcp.Bytes("bills://rules", []byte("Everybody pays."), mcp.Name("rules"), mcp.Doc("How bills are split"), mcp.MIME("text/plain")),
	)
	return s
}
