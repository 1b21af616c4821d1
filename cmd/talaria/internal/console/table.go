package console

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// leastColumn is how narrow the last column of a table may get.
const leastColumn = 24

// Table writes rows below a header. On a terminal the last column is wrapped to
// the width that is left.
func (c *Console) Table(header []string, rows [][]string) {
	w := table.NewWriter()
	w.SetStyle(table.Style{Name: "plain", Box: table.BoxStyle{PaddingRight: "  "}, Format: table.FormatOptions{Header: text.FormatDefault},
		Options: table.Options{DoNotColorBordersAndSeparators: true}})
	head := table.Row{}
	for _, h := range header {
		head = append(head, c.Paint(Bold, strings.ToUpper(h)))
	}
	w.AppendHeader(head)
	left := c.Width
	for i := range header {
		widest := text.StringWidthWithoutEscSequences(header[i])
		for _, row := range rows {
			widest = max(widest, text.LongestLineLen(row[i]))
		}
		if i < len(header)-1 {
			left -= widest + 2
		}
	}
	if c.Width > 0 {
		w.SetColumnConfigs([]table.ColumnConfig{{Number: len(header), WidthMax: max(left-2, leastColumn), WidthMaxEnforcer: text.WrapSoft}})
	}
	for _, row := range rows {
		cells := table.Row{}
		for i, cell := range row {
			if i == 0 {
				cell = c.Paint(Name, cell)
			}
			cells = append(cells, cell)
		}
		w.AppendRow(cells)
	}
	for line := range strings.SplitSeq(w.Render(), "\n") {
		c.Print(strings.TrimRight(line, " "))
	}
}

// Wrap returns text broken into lines that fit, each after a prefix.
func (c *Console) Wrap(s, prefix string) string {
	if c.Width > 0 {
		s = text.WrapSoft(s, max(c.Width-len(prefix)-1, leastColumn))
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(prefix+line, " ")
	}
	return strings.Join(lines, "\n")
}
