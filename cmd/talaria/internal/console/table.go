package console

import (
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// leastColumn is how narrow the last column of a table may get.
const leastColumn = 24

// Table writes rows below a header, each cell on one line. On a terminal the last
// column is wrapped to the width that is left, and where that is too little, wide
// ones between it and the first are, too. Elsewhere a tab is between cells, and
// nothing is padded.
func (c *Console) Table(header []string, rows [][]string) {
	if !c.OutTerminal {
		c.separated(header, rows)
		return
	}
	w := table.NewWriter()
	w.SetStyle(table.Style{Name: "plain", Box: table.BoxStyle{PaddingRight: "  "}, Format: table.FormatOptions{Header: text.FormatDefault},
		Options: table.Options{DoNotColorBordersAndSeparators: true}})
	head := table.Row{}
	for _, h := range header {
		head = append(head, string(c.Paint(Bold, strings.ToUpper(h))))
	}
	w.AppendHeader(head)
	rows = lines(rows)
	if c.Width > 0 {
		var configs []table.ColumnConfig
		for i, width := range widths(header, rows, c.Width) {
			configs = append(configs, table.ColumnConfig{Number: i + 1, WidthMax: width, WidthMaxEnforcer: text.WrapSoft})
		}
		w.SetColumnConfigs(configs)
	}
	for _, row := range rows {
		cells := table.Row{}
		for i, cell := range row {
			if i == 0 {
				cell = string(c.Paint(Name, cell))
			}
			cells = append(cells, cell)
		}
		w.AppendRow(cells)
	}
	for line := range strings.SplitSeq(w.Render(), "\n") {
		c.Print(Painted(strings.TrimRight(line, " ")))
	}
}

// separated writes a table for programs.
func (c *Console) separated(header []string, rows [][]string) {
	c.Print(strings.ToUpper(strings.Join(header, "\t")))
	for _, row := range lines(rows) {
		c.Print(strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
}

// lines returns the rows with each cell cleaned and on one line.
func lines(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = make([]string, len(row))
		for j, cell := range row {
			out[i][j] = Line(cell)
		}
	}
	return out
}

// widths returns how wide each column may be, so that all of them fit where that
// is possible.
func widths(header []string, rows [][]string, width int) []int {
	list := make([]int, len(header))
	last, left := len(header)-1, width
	for i := range header {
		list[i] = text.StringWidthWithoutEscSequences(header[i])
		for _, row := range rows {
			list[i] = max(list[i], text.StringWidthWithoutEscSequences(row[i]))
		}
		if i < last {
			left -= list[i] + 2
		}
	}
	for lack := leastColumn - left; lack > 0; {
		wide := 0
		for i := 1; i < last; i++ {
			if list[i] > leastColumn && (wide == 0 || list[i] > list[wide]) {
				wide = i
			}
		}
		if wide == 0 {
			break
		}
		less := min(lack, list[wide]-leastColumn)
		list[wide], left, lack = list[wide]-less, left+less, lack-less
	}
	list[last] = max(left-2, leastColumn)
	return list
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

// Count returns a number of things, such as "1 tool" and "2 tools".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
