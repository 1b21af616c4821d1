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

func (w *workbench) importTool() mcp.Component {
	return mcp.Tool("import_events", w.importEvents, mcp.Title("Import events"),
		mcp.Doc("Imports events from a CSV file, tells its progress and reports bad rows by line. If it is cancelled, nothing is kept"),
		mcp.Destructive(false), mcp.OpenWorld(false),
		mcp.AsTask(&mcp.TaskOptions{TTL: timeLimit, PollInterval: time.Second})) // who takes tasks need not wait
}

func (w *workbench) importEvents(f *mcp.Frame, in ImportIn) (ImportOut, error) {
	src, size, err := w.openImport(in.Path)
	if err != nil {
		return ImportOut{}, fmt.Errorf("%s: %w", in.Path, err)
	}
	defer src.Close()
	r, err := newRowReader(src, in.Delimiter)
	if err != nil {
		return ImportOut{}, fmt.Errorf("%s: %w", in.Path, err)
	}
	im := &importer{rows: r, size: size, pace: in.Pace}
	if err := im.read(f); err != nil {
		return ImportOut{}, err
	}
	if in.Check {
		err = w.events.View(f, func(events []Event) error {
			im.commit(&document[Event]{Records: slices.Clone(events)})
			return nil
		})
	} else {
		err = w.events.Update(f, func(doc *document[Event]) error {
			im.commit(doc)
			return nil
		})
	}
	return im.result(), err
}

// openImport opens a file below the directory that imports may read.
func (w *workbench) openImport(path string) (*os.File, int64, error) {
	path = filepath.FromSlash(path)
	if !filepath.IsLocal(path) {
		return nil, 0, fmt.Errorf("the path must be relative and stay inside the files directory")
	}
	info, err := w.files.Stat(path) // before Open, which would wait for the other end of a pipe
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, fmt.Errorf("there is no such file in the files directory")
	case err != nil:
		return nil, 0, reason(err)
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("it is not a regular file")
	case info.Size() > maxImportSize:
		return nil, 0, fmt.Errorf("it has %d bytes, more than the limit of %d", info.Size(), maxImportSize)
	}
	src, err := w.files.Open(path)
	if err != nil {
		return nil, 0, reason(err)
	}
	return src, info.Size(), nil
}

// importer takes the rows of one file through their checks.
type importer struct {
	rows     *rowReader
	size     int64 // of the file, in bytes
	pace     time.Duration
	count    int
	plans    []plannedRow
	problems []Problem
	imported int
	told     time.Time // when progress was told last
}

type plannedRow struct {
	line int
	Plan
}

// read reads every row, and tells how far it is in bytes: how many rows there
// are is not known before the end.
func (im *importer) read(f *mcp.Frame) error {
	for {
		plan, line, err := im.rows.next(f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if im.count++; im.count > maxImportRows {
			return fmt.Errorf("the file has more than %d rows; split it", maxImportRows)
		}
		bad, isBad := errors.AsType[*badRowError](err)
		switch {
		case isBad:
			im.problems = append(im.problems, Problem{Line: line, Problem: bad.Error()})
		case err != nil:
			return err
		default:
			im.plans = append(im.plans, plannedRow{line, plan})
		}
		im.tell(f)
		if err := pause(f, im.pace); err != nil {
			return fmt.Errorf("stopped after %d rows, nothing is kept: %w", im.count, err)
		}
	}
}

// tell tells progress, now and then. A client that is gone ends f, which pause
// sees; so the error does not matter here.
func (im *importer) tell(f *mcp.Frame) {
	done := im.rows.offset()
	if now := time.Now(); now.Sub(im.told) >= progressInterval || done == im.size {
		im.told = now
		_ = f.Progress(float64(done), float64(im.size), fmt.Sprintf("rows read: %d, bad: %d", im.count, len(im.problems)))
	}
}

// commit puts the good rows into the calendar, unless something else takes
// place at their time.
func (im *importer) commit(doc *document[Event]) {
	for _, row := range im.plans {
		if clash := conflicts(doc.Records, row.event(0)); len(clash) > 0 {
			im.problems = append(im.problems, Problem{Line: row.line, Problem: "conflict with " + list(clash)})
			continue
		}
		doc.add(row.event)
		im.imported++
	}
}

func (im *importer) result() ImportOut {
	slices.SortStableFunc(im.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	out := ImportOut{Rows: im.count, Imported: im.imported, Rejected: len(im.problems), Problems: []Problem{}}
	out.Problems = append(out.Problems, im.problems[:min(shownProblems, len(im.problems))]...)
	return out
}

// rowReader reads Plans from CSV.
type rowReader struct {
	csv     *csv.Reader
	bom     int64 // bytes before the text
	columns []string
	plan    *schema.Plan
}

var delimiters = map[string]rune{"comma": ',', "semicolon": ';', "tab": '\t'}

var byteOrderMark = []byte("\xef\xbb\xbf")

// newRowReader reads the first line of src.
func newRowReader(src io.ReadSeeker, delimiter string) (*rowReader, error) {
	r := &rowReader{}
	var err error
	if r.plan, err = schema.Compile(reflect.TypeFor[Plan](), nil); err != nil {
		return nil, err
	}
	head := make([]byte, len(byteOrderMark))
	if n, _ := io.ReadFull(src, head); n == len(head) && bytes.Equal(head, byteOrderMark) {
		r.bom = int64(n)
	}
	if _, err := src.Seek(r.bom, io.SeekStart); err != nil {
		return nil, reason(err)
	}
	r.csv = csv.NewReader(src)
	r.csv.Comma = delimiters[delimiter]
	r.csv.FieldsPerRecord = -1 // next has a better message
	r.csv.TrimLeadingSpace = true
	first, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty; its first line must name the columns title, date, start and, if wanted, duration")
	}
	if err != nil {
		return nil, fmt.Errorf("the first line: %w", csvReason(err))
	}
	for _, name := range first {
		r.columns = append(r.columns, strings.ToLower(strings.TrimSpace(name)))
	}
	for _, name := range []string{"title", "date", "start"} {
		if !slices.Contains(r.columns, name) {
			return nil, fmt.Errorf("the first line names the columns %q, and not %q; is the delimiter %s?", r.columns, name, delimiter)
		}
	}
	return r, nil
}

// badRowError is what is wrong with one row; the next one may be good.
type badRowError struct{ text string }

func (e *badRowError) Error() string { return e.text }

// next returns the next row and where it begins. The error is a *badRowError,
// io.EOF at the end, or that of reading.
func (r *rowReader) next(ctx context.Context) (plan Plan, line int, err error) {
	fields, err := r.csv.Read()
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return plan, parse.StartLine, &badRowError{csvReason(err).Error()}
	}
	if err != nil {
		return plan, 0, err
	}
	line, _ = r.csv.FieldPos(0)
	if len(fields) != len(r.columns) {
		return plan, line, &badRowError{fmt.Sprintf("the row has %d fields, not %d", len(fields), len(r.columns))}
	}
	row := map[string]string{}
	for i, name := range r.columns {
		if !utf8.ValidString(fields[i]) {
			return plan, line, &badRowError{name + ": is not UTF-8; save the file in that encoding"}
		}
		if value := strings.TrimSpace(fields[i]); value != "" && slices.Contains(planColumns, name) {
			row[name] = value
		}
	}
	text, err := json.Marshal(row)
	if err != nil {
		return plan, line, err
	}
	// The rules for a row are those for the arguments of schedule_event.
	err = r.plan.Decode(ctx, text, &plan)
	if faults, ok := errors.AsType[*schema.Error](err); ok {
		return plan, line, &badRowError{describe(faults.Issues)}
	}
	if fault := plan.check(); err == nil && fault != nil {
		err = &badRowError{fault.Error()}
	}
	return plan, line, err
}

// describe writes issues with the names of columns in place of paths.
func describe(issues []schema.Issue) string {
	texts := make([]string, len(issues))
	for i, is := range issues {
		texts[i] = strings.TrimPrefix(is.Path, "/") + ": " + is.Message
		if is.Hint != "" {
			texts[i] += "; " + is.Hint
		}
	}
	return strings.Join(texts, "; ")
}

// planColumns are the columns that count; a file may have others.
var planColumns = []string{"title", "date", "start", "duration"}

func (r *rowReader) offset() int64 { return r.bom + r.csv.InputOffset() }

// csvReason returns a CSV error without its line, which is told apart.
func csvReason(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return parse.Err
	}
	return reason(err)
}
