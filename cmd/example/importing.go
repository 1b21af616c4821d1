package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	maxImportSize    = 8 << 20 // bytes
	maxImportRows    = maxEvents
	shownProblems    = 50
	progressInterval = 200 * time.Millisecond
)

// ImportIn names a file of events.
type ImportIn struct {
	Path      string        `json:"path" validate:"required,max=1024" jsonschema_description:"CSV file below the server's files directory. Its first line names the columns title, date, start and, if wanted, duration" jsonschema:"example=cmd/example/testdata/events.csv"`
	Delimiter string        `json:"delimiter,omitempty" validate:"oneof=comma semicolon tab" jsonschema:"default=comma" jsonschema_description:"what stands between the fields"`
	Check     bool          `json:"check,omitempty" jsonschema_description:"only report problems, keep nothing"`
	Pace      time.Duration `json:"pace,omitempty" validate:"max=500ms,min=0s" jsonschema:"default=20ms" jsonschema_description:"pause after each row, so that progress can be watched"`
}

// ImportOut tells what became of the rows of a file.
type ImportOut struct {
	Rows     int       `json:"rows" jsonschema_description:"rows that were read, without the first"`
	Imported int       `json:"imported" jsonschema_description:"rows that are, or would be, events now"`
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
		return out, fmt.Errorf("%s: %w", in.Path, err)
	}
	r, err := newRowReader(text, in.Delimiter)
	if err != nil {
		return out, fmt.Errorf("%s: %w", in.Path, err)
	}
	var plans []plannedRow
	var problems []Problem
	for told := (time.Time{}); ; {
		row, problem, err := r.next(f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, err
		}
		if out.Rows++; out.Rows > maxImportRows {
			return out, fmt.Errorf("the file has more than %d rows; split it", maxImportRows)
		}
		if problem != "" {
			problems = append(problems, Problem{row.line, problem})
		} else {
			plans = append(plans, row)
		}
		if done := int(r.csv.InputOffset()); time.Since(told) >= progressInterval || done == len(text) {
			told = time.Now()
			// A client that is gone ends f, which pause sees.
			_ = f.Progress(float64(done), float64(len(text)), fmt.Sprintf("rows read: %d, bad: %d", out.Rows, len(problems)))
		}
		if err := pause(f, in.Pace); err != nil {
			return out, fmt.Errorf("stopped after %d rows, nothing is kept: %w", out.Rows, err)
		}
	}
	add := func(doc *document[Event]) error {
		for _, row := range plans {
			if clash := conflicts(doc.Records, row.event(0)); len(clash) > 0 {
				problems = append(problems, Problem{row.line, "conflict with " + describe(clash)})
				continue
			}
			doc.add(row.event)
			out.Imported++
		}
		return nil
	}
	if in.Check {
		var events []Event
		if events, err = i.events.Read(f); err == nil {
			err = add(&document[Event]{Records: events})
		}
	} else {
		err = i.events.Update(f, add)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	out.Rejected, out.Problems = len(problems), append([]Problem{}, problems[:min(shownProblems, len(problems))]...)
	return out, err
}

// read returns the text of a file below the directory that imports may read.
func (i *importer) read(path string) ([]byte, error) {
	path = filepath.FromSlash(path)
	if !filepath.IsLocal(path) {
		return nil, errors.New("the path must be relative and stay inside the files directory")
	}
	info, err := i.files.Stat(path) // before reading, which would wait for the other end of a pipe
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such file in the files directory")
	case err != nil:
		return nil, reason(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxImportSize:
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", info.Size(), maxImportSize)
	}
	text, err := i.files.ReadFile(path)
	if err != nil {
		return nil, reason(err)
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil // the byte order mark
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

// rowReader reads Plans from CSV.
type rowReader struct {
	csv     *csv.Reader
	columns []string
	plan    *schema.Plan
}

// plannedRow is a Plan with the line that its row begins on.
type plannedRow struct {
	line int
	Plan
}

var (
	delimiters  = map[string]rune{"comma": ',', "semicolon": ';', "tab": '\t'}
	planColumns = []string{"title", "date", "start", "duration"} // those that count; a file may have others
)

// newRowReader reads the first line of text.
func newRowReader(text []byte, delimiter string) (*rowReader, error) {
	plan, err := schema.Compile(reflect.TypeFor[Plan](), nil)
	if err != nil {
		return nil, err
	}
	r := &rowReader{csv: csv.NewReader(bytes.NewReader(text)), plan: plan}
	r.csv.Comma = delimiters[delimiter]
	r.csv.FieldsPerRecord = -1 // next has a better message
	r.csv.TrimLeadingSpace = true
	first, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty; its first line must name the columns title, date, start and, if wanted, duration")
	}
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, fmt.Errorf("the first line: %w", parse.Err)
	}
	for _, name := range first {
		r.columns = append(r.columns, strings.ToLower(strings.TrimSpace(name)))
	}
	for _, name := range planColumns[:3] {
		if !slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("the first line names the columns %q, and not %q; is the delimiter %s?", r.columns, name, delimiter)
		}
	}
	return r, nil
}

// next returns the next row, or what is wrong with it, if the one after it may be
// good. The error is io.EOF at the end.
func (r *rowReader) next(ctx context.Context) (row plannedRow, problem string, err error) {
	fields, err := r.csv.Read()
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return plannedRow{line: parse.StartLine}, parse.Err.Error(), nil
	}
	if err != nil {
		return row, "", err
	}
	row.line, _ = r.csv.FieldPos(0)
	if len(fields) != len(r.columns) {
		return row, fmt.Sprintf("the row has %d fields, not %d", len(fields), len(r.columns)), nil
	}
	values := map[string]string{}
	for i, name := range r.columns {
		if !utf8.ValidString(fields[i]) {
			return row, name + ": is not UTF-8; save the file in that encoding", nil
		}
		if value := strings.TrimSpace(fields[i]); value != "" && slices.Contains(planColumns, name) {
			values[name] = value
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return row, "", err
	}
	// The rules for a row are those for the arguments of schedule_event.
	err = r.plan.Decode(ctx, text, &row.Plan)
	if faults, ok := errors.AsType[*schema.Error](err); ok {
		return row, columnIssues(faults.Issues), nil
	}
	if fault := row.check(); err == nil && fault != nil {
		return row, fault.Error(), nil
	}
	return row, "", err
}

// columnIssues writes issues with the names of columns in place of paths.
func columnIssues(issues []schema.Issue) string {
	texts := make([]string, len(issues))
	for i, is := range issues {
		texts[i] = strings.TrimPrefix(is.Path, "/") + ": " + is.Message
		if is.Hint != "" {
			texts[i] += "; " + is.Hint
		}
	}
	return strings.Join(texts, "; ")
}
