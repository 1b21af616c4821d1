package rules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

// addSpecialRules adds the rules that mean different things on different kinds,
// and those that take a parameter of their own grammar.
func addSpecialRules(table map[string]ruleDef) {
	table["numeric"] = onText(ClassExact, kindsNumber, TextRule{class: ClassExact, Pattern: patternNumeric, Match: matchNumeric, want: "a decimal number, such as -1.5"}, always)
	table["number"] = onText(ClassExact, kindsNumber, TextRule{class: ClassExact, Pattern: patternNumber, Match: all(digits), want: "text made of digits only"}, always)
	table["boolean"] = onText(ClassExact, kinds(KindBool), TextRule{class: ClassExact, enum: booleans, want: "a boolean: true, false, t, f, 1 or 0"}, always)
	table["latitude"] = onText(ClassExact, kindsNumber, TextRule{class: ClassExact, Pattern: patternLatitude, want: "a latitude from -90 to 90"}, degrees(90, "a latitude"))
	table["longitude"] = onText(ClassExact, kindsNumber, TextRule{class: ClassExact, Pattern: patternLongitude, want: "a longitude from -180 to 180"}, degrees(180, "a longitude"))
	checked := TextRule{class: ClassNecessary, Pattern: patternDigits2, residual: true, want: "digits with a correct Luhn check digit"}
	table["luhn_checksum"] = onText(ClassNecessary, kinds(KindInt, KindUint), checked, describedNumber(func(v Number) bool {
		return !v.Negative && v.Magnitude > 9 && luhn(strconv.FormatUint(v.Magnitude, 10))
	}, checked.want))
	for name, want := range map[string]string{
		"iso3166_1_alpha_numeric":    "a numeric country code of ISO 3166-1, such as 578",
		"iso3166_1_alpha_numeric_eu": "the numeric code of a country of the European Union, such as 276",
	} {
		table[name] = onText(ClassNecessary, kinds(KindInt, KindUint), TextRule{class: ClassNecessary, Pattern: patternSignedDigits, residual: true, want: want}, describedNumber(countryNumber(name), want))
	}
	for name, d := range map[string][2]string{
		"country_code":    {"iso3166_1_alpha_numeric", "a country code of ISO 3166-1: two letters, three letters or digits"},
		"eu_country_code": {"iso3166_1_alpha_numeric_eu", "the code of a country of the European Union: two letters, three letters or digits"},
	} {
		table[name] = onText(ClassNecessary, kinds(KindInt, KindUint), TextRule{class: ClassNecessary, Pattern: patternCountry, residual: true, want: d[1]}, describedNumber(countryNumber(d[0]), d[1]))
	}
	for name, def := range CodeRules() {
		if strings.HasPrefix(name, "uuid") || name == "ulid" {
			table[name] = onText(def.class, kinds(KindOpaque), def, stringerRule(def))
		}
	}
	table["iso4217_numeric"] = ruleDef{ClassExact, kinds(KindInt, KindUint), ParamNone, "", compileCurrency}
	table["port"] = ruleDef{ClassExact, kinds(KindInt, KindUint), ParamNone, "", compilePort}
	table["json"] = ruleDef{ClassDescribed, kinds(KindText, KindBytes), ParamNone, "", compileJSON}
	table["datetime"] = ruleDef{ClassExact, kinds(KindText), ParamNeeded, "2006-01-02", compileDatetime}
	table["spicedb"] = ruleDef{ClassExact, kinds(KindText), ParamOptional, "permission", compileSpice}
	table["postcode_iso3166_alpha2"] = ruleDef{ClassDescribed, kinds(KindText), ParamNeeded, "US", compilePostcode}
	table["unique"] = ruleDef{ClassExact, kinds(KindList, KindMap), ParamOptional, "Field", compileUnique}
}

// countryNumber returns a test for numbers whose last three digits are a code.
func countryNumber(tag string) func(Number) bool {
	decide := deciders()[tag]
	return func(v Number) bool { return !v.Negative && decide(strconv.FormatUint(v.Magnitude%1000, 10)) }
}

// booleans are the texts that strconv.ParseBool accepts.
var booleans = []string{"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"}

// onText returns a rule that is def on text, and is compiled by other on the
// other kinds.
func onText(class ruleClass, others kindSet, def TextRule, other func(tags.Rule, Target) ([]Check, *tags.Problem)) ruleDef {
	return ruleDef{Class: class, Kinds: kinds(KindText) | others, compile: func(r tags.Rule, t Target) ([]Check, *tags.Problem) {
		if t.Kind == KindText {
			return compileText(r, def), nil
		}
		return other(r, t)
	}}
}

// always compiles a rule that holds for every value of the kind, such as
// numeric on a number.
func always(tags.Rule, Target) ([]Check, *tags.Problem) { return nil, nil }

// inRange returns the check of a number from low to high, inclusive.
func inRange(r tags.Rule, t Target, low, high int64, want string) []Check {
	c := Check{Tag: r.Written, Code: "minimum", Want: want, Emit: func(s *jsonschema.Schema) {
		if t.Kind != KindUint || low > 0 {
			schemadoc.RaiseNumber(&s.Minimum, json.Number(strconv.FormatInt(low, 10)))
		}
		schemadoc.LowerNumber(&s.Maximum, json.Number(strconv.FormatInt(high, 10)))
	}}
	from, to := SignedNumber(low), SignedNumber(high)
	c.Test = NumberTest(func(v Number) bool { return v.compare(from) >= 0 && v.compare(to) <= 0 })
	return []Check{c}
}

// degrees returns the rule for latitudes or longitudes that are numbers.
func degrees(limit int64, what string) func(tags.Rule, Target) ([]Check, *tags.Problem) {
	return func(r tags.Rule, t Target) ([]Check, *tags.Problem) {
		return inRange(r, t, -limit, limit, fmt.Sprintf("%s from -%d to %d", what, limit, limit)), nil
	}
}

// compilePort compiles port. 0 is not one, since it cannot be connected to.
func compilePort(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	return inRange(r, t, 1, 65535, "a port number from 1 to 65535"), nil
}

// describedNumber returns a rule on integers about which the schema says
// nothing.
func describedNumber(decide func(Number) bool, want string) func(tags.Rule, Target) ([]Check, *tags.Problem) {
	return func(r tags.Rule, t Target) ([]Check, *tags.Problem) {
		c := Check{Tag: r.Written, Code: r.Name, Want: want, Note: "Must be " + want + "."}
		c.Test = NumberTest(decide)
		return []Check{c}, nil
	}
}

// stringerRule returns a rule that applies a text rule to the result of the
// type's String method.
func stringerRule(def TextRule) func(tags.Rule, Target) ([]Check, *tags.Problem) {
	return func(r tags.Rule, t Target) ([]Check, *tags.Problem) {
		if t.Type == nil || !t.Type.Implements(reflect.TypeFor[fmt.Stringer]()) {
			return nil, r.Fault(fmt.Sprintf("%s needs a String method on %s", r.Name, t.Type), "use a string field")
		}
		c := compileText(r, def)[0]
		match := c.Test.(TextTest)
		c.Test = ValueTest(func(v reflect.Value) bool { return match(v.Interface().(fmt.Stringer).String()) })
		return []Check{c}, nil
	}
}

// currencies returns the numeric codes of ISO 4217, sorted.
var currencies = sync.OnceValue(func() []uint64 {
	var codes []uint64
	for code := range strings.FieldsSeq(currenciesNumeric) {
		n, _ := strconv.ParseUint(code, 10, 64) // of digits
		codes = append(codes, n)
	}
	return codes
})

// compileCurrency compiles iso4217_numeric into an enumeration of all codes.
func compileCurrency(r tags.Rule, _ Target) ([]Check, *tags.Problem) {
	codes := currencies()
	return []Check{{Tag: r.Written, Code: "enum", Want: "a numeric currency code of ISO 4217, such as 978",
		Emit: func(s *jsonschema.Schema) { schemadoc.AddEnum(s, AnySlice(codes)) },
		Test: NumberTest(func(v Number) bool {
			_, known := slices.BinarySearch(codes, v.Magnitude)
			return known && !v.Negative
		})}}, nil
}

// compileJSON compiles json. On text the schema gets contentMediaType, which
// asserts nothing by itself.
func compileJSON(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	c := Check{Tag: r.Written, Code: r.Name, Want: "JSON text", Note: "Must be JSON text."}
	if t.Kind == KindText {
		c.Emit = func(s *jsonschema.Schema) { s.ContentMediaType = "application/json" }
		c.Test = TextTest(func(s string) bool { return json.Valid([]byte(s)) })
	} else {
		c.Want = "base64 text of a JSON value"
		c.Note = "Must be " + c.Want + "."
		c.Test = ValueTest(func(v reflect.Value) bool { return json.Valid(v.Bytes()) })
	}
	return []Check{c}, nil
}

// compileDatetime compiles datetime. The layouts that JSON Schema has a format
// for become that format; others are described by an example.
func compileDatetime(r tags.Rule, _ Target) ([]Check, *tags.Problem) {
	layout := r.Param
	switch layout {
	case time.DateOnly:
		return compileText(r, TextRule{format: "date", want: "a date such as 2026-01-31", why: dateFault,
			Match: func(s string) bool { return dateFault(s) == "" }}), nil
	case time.RFC3339, time.RFC3339Nano:
		return compileText(r, TextRule{format: "date-time", want: "a date and time with an offset, such as 2026-01-31T09:30:00Z",
			note: "Leap seconds (:60) are not supported.", why: momentFault,
			Match: func(s string) bool { return momentFault(s) == "" }}), nil
	case time.TimeOnly:
		return compileText(r, TextRule{Pattern: patternClock, want: "a time of day such as 09:30:00"}), nil
	}
	// Two moments that differ in every field tell whether the layout has any.
	one := time.Date(2031, 12, 29, 23, 58, 57, 987654321, time.UTC)
	two := time.Date(2042, 3, 4, 1, 12, 13, 123456789, time.FixedZone("X", 3600))
	if one.Format(layout) == two.Format(layout) {
		return nil, r.Fault(fmt.Sprintf("the layout %q has no field of a date or time", layout), "write the reference time, as in datetime=2006-01-02 15:04")
	}
	want := "text written like " + strconv.Quote(time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC).Format(layout))
	return []Check{{
		Tag: r.Written, Code: r.Name, Want: want, Note: "Must be " + want + ".",
		Test: TextTest(func(s string) bool { _, err := time.Parse(layout, s); return err == nil }),
		Why: func(s string) string {
			if _, err := time.Parse(layout, s); err != nil && strings.HasSuffix(err.Error(), "day out of range") {
				return "that day does not exist"
			}
			return ""
		},
	}}, nil
}

// dateFault returns what keeps a text from being a date, or "".
func dateFault(s string) string {
	_, err := civil.ParseDate(s)
	if bad, ok := errors.AsType[*civil.ParseError](err); ok {
		return cmp.Or(bad.Message, lexical.WrongForm)
	}
	return ""
}

// momentFault returns what keeps a text from being a date-time, or "". The text
// will be read by time.Parse, which accepts no leap second.
func momentFault(s string) string {
	_, fault := lexical.ParseRFC3339([]byte(s))
	if fault == "" && s[17:19] == "60" {
		return "leap seconds are not supported; write :59 or the next minute"
	}
	return fault
}

// compileSpice compiles spicedb with its three forms.
func compileSpice(r tags.Rule, _ Target) ([]Check, *tags.Problem) {
	def := TextRule{class: ClassExact}
	switch r.Param {
	case "", "id":
		def.Pattern, def.want = patternSpiceID, "a SpiceDB object id"
	case "permission":
		def.Pattern, def.want = patternSpicePermission, "a SpiceDB permission"
	case "type":
		def.Pattern, def.want = patternSpiceType, "a SpiceDB type"
	default:
		return nil, r.Fault(fmt.Sprintf("spicedb has no form %q", r.Param), "write spicedb=id, spicedb=permission or spicedb=type")
	}
	return compileText(r, def), nil
}

// Postcodes returns the countries whose postal codes go-playground knows, with
// a pattern where a simple one says exactly the same, and "" elsewhere.
var Postcodes = sync.OnceValue(func() map[string]string {
	table := map[string]string{}
	for _, country := range strings.Fields(`AD AL AM AR AS AT AU AX AZ BA BB BD BE BG BH BM BN BR BY CA CC CH CK CL
		CN CO CR CS CV CX CY CZ DE DK DO DZ EC EE EG ES ET FI FK FM FO FR GB GE GF GG GI GL GN GP GR GS GT GU GW
		HM HN HR HT HU ID IE IL IM IN IO IQ IS IT JE JO JP KE KG KH KR KW KZ LA LB LI LK LR LS LT LU LV MA MC MD
		ME MG MH MK MN MP MQ MT MU MV MX MY NC NE NF NG NI NL NO NP NZ OM PF PG PH PK PL PM PN PR PT PW PY RE RO
		RS RU SA SE SG SH SI SJ SK SM SN SO SZ TC TH TJ TM TN TR TW UA US UY UZ VA VE VG VI VN WF XK YT YU ZA ZM`) {
		table[country] = ""
	}
	for pattern, countries := range map[string]string{
		`^[0-9]{4}$`:                   "AT AU BE BG CH CY DK HU NO NZ ZA",
		`^[0-9]{5}$`:                   "DE EE ES FI HR IT KR MX TH TR UA",
		`^[0-9]{6}$`:                   "CN IN RO RU SG",
		`^[0-9]{5}(?:[ \-][0-9]{4})?$`: "US",
		`^[0-9]{2} ?[0-9]{3}$`:         "FR",
		`^[0-9]{3} ?[0-9]{2}$`:         "CZ GR SE SK",
		`^[0-9]{4} ?[A-Z]{2}$`:         "NL",
		`^[0-9]{3}-[0-9]{4}$`:          "JP",
		`^[0-9]{5}-?[0-9]{3}$`:         "BR",
		`^[0-9]{2}-[0-9]{3}$`:          "PL",
		`^[0-9]{4}(?:-[0-9]{3})?$`:     "PT",
		`^[ABCEGHJ-NPRSTVXY][0-9][ABCEGHJ-NPRSTV-Z] ?[0-9][ABCEGHJ-NPRSTV-Z][0-9]$`: "CA",
	} {
		for _, country := range strings.Fields(countries) {
			table[country] = pattern
		}
	}
	return table
})

// compilePostcode compiles postcode_iso3166_alpha2. Where a simple pattern says
// exactly what go-playground checks, it is in the schema; for other countries
// the Validator decides and the description tells.
func compilePostcode(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	pattern, ok := Postcodes()[r.Param]
	if !ok {
		return nil, r.Fault(fmt.Sprintf("no post codes are known for %q", r.Param), "write a two-letter country code in upper case, such as US")
	}
	want := "a postal code of " + r.Param
	if pattern != "" {
		return compileText(r, TextRule{class: ClassExact, Pattern: pattern, want: want}), nil
	}
	if t.Validator == nil {
		return nil, Unasked(r)
	}
	decide := Ask(t.Validator, r.Name, r.Param, true)
	return []Check{{
		Tag: r.Written, Code: r.Name, Want: want, Note: "Must be " + want + ".",
		Test: TextTest(func(s string) bool { return decide(s) }),
	}}, nil
}

// addServerRules adds the rules that look at the server itself, and those that
// are refused because their check cannot be described.
func addServerRules(table map[string]ruleDef) {
	for name, want := range map[string]string{
		"file": "a file on the server", "dir": "a directory on the server",
		"filepath": "a path that may be a file on the server", "dirpath": "a path that may be a directory on the server",
		"image": "an image file on the server", "uds_exists": "a Unix socket on the server",
		"mimetype": "a file of that type on the server",
	} {
		def := ruleDef{Class: ClassRefused, Kinds: kinds(KindText), compile: compileServer(want)}
		if name == "mimetype" {
			def.Param, def.Example = ParamNeeded, "image/png"
		}
		table[name] = def
	}
	table["unix_addr"] = ruleDef{Class: ClassRefused, Kinds: kinds(KindText), compile: func(r tags.Rule, _ Target) ([]Check, *tags.Problem) {
		return nil, r.Fault("unix_addr is true for every text", "remove it")
	}}
	every := ^kindSet(0)
	table["validateFn"] = ruleDef{Class: ClassRefused, Kinds: every, Param: ParamOptional, compile: func(r tags.Rule, _ Target) ([]Check, *tags.Problem) {
		return nil, r.Fault("validateFn checks what neither the schema nor the description could say", "register the check with schema.NewRule and schema.Describe")
	}}
}

// mimePattern matches the media types that the rule mimetype takes.
var mimePattern = regex.Lazy(`^[a-z]+/(?:\*|[a-zA-Z0-9.+-]+)$`)

// compileServer returns a rule that looks at the server's disk, if that is
// permitted: its answers tell a caller which files exist.
func compileServer(want string) func(tags.Rule, Target) ([]Check, *tags.Problem) {
	return func(r tags.Rule, t Target) ([]Check, *tags.Problem) {
		if !t.ServerState {
			return nil, r.Fault(r.Name+" looks at the server's disk, which lets a caller probe it", "remove it, or set Options.AllowServerState")
		}
		if r.Name == "mimetype" && !mimePattern().MatchString(r.Param) {
			return nil, r.Fault(fmt.Sprintf("%q is no media type", r.Param), "write mimetype=image/png or mimetype=image/*")
		}
		want := want
		if r.HasParam {
			want = "a file of type " + r.Param + " on the server"
		}
		test := deciders()[r.Name]
		if test == nil {
			test = func(string) bool { return true } // and what Compile adds
		}
		return []Check{{Tag: r.Written, Code: r.Name, Want: want, Note: "Must be " + want + ".", Test: TextTest(test)}}, nil
	}
}
