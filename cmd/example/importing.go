package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema"
)

// The bounds of an import.
const (
	maxImportSize = 8 << 20 // bytes
	shownProblems = 50
)

// ImportIn names a file of events.
type ImportIn struct {
	Path string        `json:"path" validate:"required,max=1024" jsonschema_description:"CSV file in UTF-8, below the server's files directory. Its first line names the columns title, date, start and, if wanted, duration" jsonschema:"example=cmd/example/testdata/events.csv"`
	Pace time.Duration `json:"pace,omitempty" validate:"max=500ms,min=0s" jsonschema:"default=20ms" jsonschema_description:"pause after each row, so that progress can be watched"`
}

// ImportOut counts the imported and rejected rows of a file.
type ImportOut struct {
	Rows     int       `json:"rows" jsonschema_description:"rows that were read, without the first"`
	Imported int       `json:"imported" jsonschema_description:"rows that are events now"`
	Rejected int       `json:"rejected" jsonschema_description:"rows that are not"`
	Problems []Problem `json:"problems" jsonschema_description:"why rows were rejected, the first 50"`
}

// Problem is what is wrong with a row.
type Problem struct {
	Line    int    `json:"line" jsonschema_description:"where the row begins in the file, from 1"`
	Problem string `json:"problem"`
}

// importer puts events from CSV files into the calendar.
type importer struct {
	events *file[Event]
	files  *os.Root // what may be read
}

func (i *importer) tool() mcp.Component {
	return mcp.Tool("import_events", i.run, mcp.Title("Import events"),
		mcp.Doc("Imports events from a CSV file, tells its progress and reports bad rows by line. If it is cancelled, nothing is kept"),
		mcp.Destructive(false), mcp.OpenWorld(false),
		mcp.AsTask(&mcp.TaskOptions{TTL: timeLimit, PollInterval: time.Second})) // who takes tasks need not wait
}

// run reads every row, and tells how far it is in bytes: how many rows there are
// is not known before the end.
func (i *importer) run(f *mcp.Frame, in ImportIn) (out ImportOut, err error) {
	text, err := i.read(in.Path)
	if err != nil {
		return out, fmt.Errorf("%s: %w", in.Path, reason(err))
	}
	rows, err := newRowReader(text)
	if err != nil {
		return out, fmt.Errorf("%s: the first line must name the columns: %w", in.Path, err)
	}
	var good []row
	reject := func(r row, why error) {
		out.Rejected++
		out.Problems = append(out.Problems, Problem{r.line, why.Error()})
	}
	for {
		r, err := rows.next(f)
		if errors.Is(err, io.EOF) {
			break
		}
		if out.Rows++; out.Rows > maxRecords {
			return out, fmt.Errorf("%s: it has more than %d rows; split it", in.Path, maxRecords)
		}
		if err != nil {
			reject(r, err)
		} else {
			good = append(good, r)
		}
		// A client that is gone ends f, which pause sees.
		_ = f.Progress(float64(rows.csv.InputOffset()), float64(len(text)), fmt.Sprintf("rows read: %d, bad: %d", out.Rows, out.Rejected))
		if err := pause(f, in.Pace); err != nil {
			return out, fmt.Errorf("stopped after %d rows, nothing is kept: %w", out.Rows, err)
		}
	}
	err = i.events.Update(f, func(doc *document[Event]) error {
		for _, r := range good {
			if _, err := r.addTo(doc, false); err != nil {
				reject(r, err)
			} else {
				out.Imported++
			}
		}
		return nil
	})
	slices.SortStableFunc(out.Problems, func(a, b Problem) int { return a.Line - b.Line })
	out.Problems = out.Problems[:min(shownProblems, len(out.Problems))]
	return out, err
}

// read returns the text of a file below the directory that imports may read.
func (i *importer) read(path string) ([]byte, error) {
	info, err := i.files.Stat(path) // before reading, which would wait for the other end of a pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxImportSize {
		return nil, fmt.Errorf("it is not a regular file of at most %d bytes", maxImportSize)
	}
	text, err := i.files.ReadFile(path)
	if err == nil && !utf8.Valid(text) {
		err = errors.New("it is not UTF-8; save it in that encoding")
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), err // the byte order mark
}

// pause waits for d, or for the end of ctx, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// row is a Plan with the line that it begins on.
type row struct {
	Plan
	line int
}

// rowReader reads Plans from CSV.
type rowReader struct {
	csv     *csv.Reader
	columns []string
	plan    *schema.Plan
}

// newRowReader reads the first line of text.
func newRowReader(text []byte) (r *rowReader, err error) {
	r = &rowReader{csv: csv.NewReader(bytes.NewReader(text))}
	r.csv.TrimLeadingSpace = true
	if r.columns, err = r.csv.Read(); err == nil {
		r.plan, err = schema.Compile(reflect.TypeFor[Plan](), nil)
	}
	return r, err
}

// next returns the next row, or what is wrong with it and its line. The error is
// io.EOF at the end.
func (r *rowReader) next(ctx context.Context) (row row, err error) {
	fields, err := r.csv.Read()
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		row.line = parse.StartLine
		return row, parse.Err
	}
	if err != nil {
		return row, err
	}
	row.line, _ = r.csv.FieldPos(0)
	values := map[string]string{}
	for i, name := range r.columns {
		if value := strings.TrimSpace(fields[i]); value != "" {
			values[name] = value
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return row, err
	}
	// The rules for a row are those for the arguments of schedule_event.
	return row, r.plan.Decode(ctx, text, &row.Plan)
}
