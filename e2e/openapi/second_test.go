package openapi

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi/datamodel"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"github.com/talaria-go/mcp/openapi"
)

// second checks requests of one document with libopenapi-validator.
type second struct {
	model *v3.Document
	validator.Validator
}

// unableSecond are the excuses of libopenapi-validator.
var unableSecond = []excuse{
	{"a pattern is not one of Go", regexp.MustCompile("failed schema compilation"), 20_000},
	{"it looks for reserved characters in decoded values of forms", regexp.MustCompile("reservedValues"), 25_000},
	{"it does not read lists of objects in parameters", regexp.MustCompile("Query array parameter '[^']*' failed to validate"), 15_000},
	{"it does not take null beside oneOf", regexp.MustCompile("got null"), 1_000},
	{"nothing in the path tells where one of two variables ends", regexp.MustCompile(errAdjacent.Error()), 1_000},
	{"OpenAPI ignores the parameter", regexp.MustCompile(`Header parameter '(?i:Accept|Authorization|Content-[a-z]+)'`), 25_000},
}

// newSecond returns nil for a document that libopenapi-validator cannot read.
func newSecond(text []byte) *second {
	o := datamodel.NewDocumentConfiguration()
	o.Logger = slog.New(slog.DiscardHandler)
	o.IgnorePolymorphicCircularReferences, o.IgnoreArrayCircularReferences = true, true
	doc, err := libopenapi.NewDocumentWithConfiguration(text, o)
	if err != nil {
		return nil
	}
	model, err := doc.BuildV3Model()
	if err != nil || model == nil || model.Model.Paths == nil {
		return nil
	}
	model.Model.Servers = nil // requests go to another one
	return &second{&model.Model, validator.NewValidatorFromV3Model(&model.Model, config.WithoutSecurityValidation(), config.WithSchemaCache(nil),
		config.WithURLEncodedBodyValidation(), config.WithLogger(o.Logger))}
}

// valid returns why a request is invalid, or nil.
func (s *second) valid(op openapi.Operation, sent *recorder) error {
	if strings.Contains(op.Path, "}{") {
		return errAdjacent
	}
	item := s.model.Paths.PathItems.GetOrZero(op.Path)
	if item == nil {
		return errors.New("the judge has no such path")
	}
	req := sent.last.Clone(sent.last.Context())
	req.Body = io.NopCloser(strings.NewReader(string(sent.body)))
	ok, faults := s.ValidateHttpRequestSyncWithPathItem(req, item, op.Path)
	if ok {
		return nil
	}
	var all []error
	for _, f := range faults {
		all = append(all, fmt.Errorf("%s %s: %s: %s", f.ValidationType, f.ValidationSubType, f.Message, f.Reason))
		for _, s := range f.SchemaValidationErrors {
			all = append(all, fmt.Errorf("%s %s", s.FieldPath, s.Reason))
		}
	}
	return errors.Join(all...)
}
