package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/invopop/jsonschema"
)

// addSpecialRules adds the rules that mean different things on different
// kinds, or take a parameter of their own kind.
func addSpecialRules(table map[string]ruleDef) {
	table["numeric"] = onText(classExact, kindsNumber, textRule{class: classExact, pattern: patternNumeric, match: matchNumeric, want: "a decimal number, such as -1.5"}, always)
	table["number"] = onText(classExact, kindsNumber, textRule{class: classExact, pattern: patternNumber, match: all(digits), want: "text made of digits only"}, always)
	table["boolean"] = onText(classExact, kinds(kindBool), textRule{class: classExact, enum: booleans, want: "a boolean: true, false, t, f, 1 or 0"}, always)
	table["latitude"] = onText(classExact, kindsNumber, textRule{class: classExact, pattern: patternLatitude, want: "a latitude from -90 to 90"}, degrees(90, "a latitude"))
	table["longitude"] = onText(classExact, kindsNumber, textRule{class: classExact, pattern: patternLongitude, want: "a longitude from -180 to 180"}, degrees(180, "a longitude"))
	luhn := textRule{class: classNecessary, pattern: patternDigits2, residual: true, want: "digits with a correct Luhn check digit"}
	table["luhn_checksum"] = onText(classNecessary, kinds(kindInt, kindUint), luhn, describedNumber("luhn_checksum", luhn.want))
	for name, want := range map[string]string{
		"iso3166_1_alpha_numeric":    "a numeric country code of ISO 3166-1, such as 578",
		"iso3166_1_alpha_numeric_eu": "the numeric code of a country of the European Union, such as 276",
	} {
		table[name] = onText(classNecessary, kinds(kindInt, kindUint), textRule{class: classNecessary, pattern: patternSignedDigits, residual: true, want: want}, describedNumber(name, want))
	}
	for name, d := range map[string][2]string{
		"country_code":    {"iso3166_1_alpha_numeric", "a country code of ISO 3166-1: two letters, three letters or digits"},
		"eu_country_code": {"iso3166_1_alpha_numeric_eu", "the code of a country of the European Union: two letters, three letters or digits"},
	} {
		table[name] = onText(classNecessary, kinds(kindInt, kindUint), textRule{class: classNecessary, pattern: patternCountry, residual: true, want: d[1]}, describedNumber(d[0], d[1]))
	}
	for name, def := range codeRules {
		if strings.HasPrefix(name, "uuid") || name == "ulid" {
			table[name] = onText(def.class, kinds(kindOpaque), def, stringerRule(def))
		}
	}
	table["iso4217_numeric"] = ruleDef{classExact, kinds(kindInt, kindUint), paramNone, "", compileCurrency}
	table["port"] = ruleDef{classExact, kinds(kindInt, kindUint), paramNone, "", compilePort}
	table["json"] = ruleDef{classDescribed, kinds(kindText, kindBytes), paramNone, "", compileJSON}
	table["datetime"] = ruleDef{classExact, kinds(kindText), paramNeeded, "2006-01-02", compileDatetime}
	table["spicedb"] = ruleDef{classExact, kinds(kindText), paramOptional, "permission", compileSpice}
	table["postcode_iso3166_alpha2"] = ruleDef{classDescribed, kinds(kindText), paramNeeded, "US", compilePostcode}
	table["unique"] = ruleDef{classExact, kinds(kindList, kindMap), paramOptional, "Field", compileUnique}
}

var booleans = []string{"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"}

// onText makes a rule that is def on text and something else on other kinds.
func onText(class ruleClass, others kindSet, def textRule, other func(rule, target) ([]check, *problem)) ruleDef {
	return ruleDef{class: class, kinds: kinds(kindText) | others, compile: func(r rule, t target) ([]check, *problem) {
		if t.kind == kindText {
			return compileText(r, def), nil
		}
		return other(r, t)
	}}
}

// always is a rule that holds for every value: numeric on a number.
func always(rule, target) ([]check, *problem) { return nil, nil }

// inRange makes a check for numbers from low to high.
func inRange(r rule, t target, low, high int64, want string) []check {
	c := check{tag: r.written, code: "minimum", want: want, emit: func(s *jsonschema.Schema) {
		if t.kind != kindUint || low > 0 {
			raiseNumber(&s.Minimum, json.Number(strconv.FormatInt(low, 10)))
		}
		lowerNumber(&s.Maximum, json.Number(strconv.FormatInt(high, 10)))
	}}
	switch t.kind {
	case kindInt:
		c.integer = func(n int64) bool { return n >= low && n <= high }
	case kindUint:
		c.unsigned = func(n uint64) bool { return n <= uint64(high) && int64(n) >= low }
	default:
		c.float = func(f float64) bool { return f >= float64(low) && f <= float64(high) }
		from, to := new(big.Rat).SetInt64(low), new(big.Rat).SetInt64(high)
		c.decimal = func(x *big.Rat) bool { return x.Cmp(from) >= 0 && x.Cmp(to) <= 0 }
	}
	return []check{c}
}

func degrees(limit int64, what string) func(rule, target) ([]check, *problem) {
	return func(r rule, t target) ([]check, *problem) {
		return inRange(r, t, -limit, limit, fmt.Sprintf("%s from -%d to %d", what, limit, limit)), nil
	}
}

func compilePort(r rule, t target) ([]check, *problem) {
	return inRange(r, t, 1, 65535, "a port number from 1 to 65535"), nil
}

// describedNumber asks go-playground about an integer; the schema says
// nothing.
func describedNumber(tag, want string) func(rule, target) ([]check, *problem) {
	return func(r rule, t target) ([]check, *problem) {
		c := check{tag: r.written, code: r.name, want: want, note: "Must be " + want + "."}
		decide := playground(tag)
		if t.kind == kindInt {
			c.integer = func(n int64) bool { return decide(n) }
		} else {
			c.unsigned = func(n uint64) bool { return decide(n) }
		}
		return []check{c}, nil
	}
}

// stringerRule applies a text rule to what a type's String method returns.
func stringerRule(def textRule) func(rule, target) ([]check, *problem) {
	return func(r rule, t target) ([]check, *problem) {
		if t.typ == nil || !t.typ.Implements(reflect.TypeFor[fmt.Stringer]()) {
			return nil, r.fault(fmt.Sprintf("%s needs a String method on %s", r.name, t.typ), "use a string field")
		}
		c := compileText(r, def)[0]
		match := c.text
		c.text = nil
		c.value = func(v reflect.Value) bool { return match(v.Interface().(fmt.Stringer).String()) }
		return []check{c}, nil
	}
}

// currencies are the numeric codes that go-playground knows.
var currencies = sync.OnceValue(func() []int64 {
	known := playground("iso4217_numeric")
	var codes []int64
	for n := range 1000 {
		if known(n) {
			codes = append(codes, int64(n))
		}
	}
	return codes
})

func compileCurrency(r rule, t target) ([]check, *problem) {
	codes := currencies()
	set := make(map[int64]bool, len(codes))
	for _, n := range codes {
		set[n] = true
	}
	c := check{tag: r.written, code: "enum", want: "a numeric currency code of ISO 4217, such as 978",
		emit: func(s *jsonschema.Schema) { addEnum(s, anySlice(codes)) }}
	if t.kind == kindInt {
		c.integer = func(n int64) bool { return set[n] }
	} else {
		c.unsigned = func(n uint64) bool { return n < 1000 && set[int64(n)] }
	}
	return []check{c}, nil
}

func compileJSON(r rule, t target) ([]check, *problem) {
	c := check{tag: r.written, code: r.name, want: "JSON text", note: "Must be JSON text."}
	if t.kind == kindText {
		c.emit = func(s *jsonschema.Schema) { s.ContentMediaType = "application/json" }
		c.text = func(s string) bool { return json.Valid([]byte(s)) }
	} else {
		c.want = "base64 text of a JSON value"
		c.note = "Must be " + c.want + "."
		c.value = func(v reflect.Value) bool { return json.Valid(v.Bytes()) }
	}
	return []check{c}, nil
}

// compileDatetime maps the layouts that JSON Schema knows; others are only
// described, by an example.
func compileDatetime(r rule, _ target) ([]check, *problem) {
	layout := r.param
	switch layout {
	case time.DateOnly:
		return compileText(r, textRule{format: "date", want: "a date such as 2026-01-31", why: dateFault,
			match: func(s string) bool { return dateFault(s) == "" }}), nil
	case time.RFC3339, time.RFC3339Nano:
		return compileText(r, textRule{format: "date-time", want: "a date and time with an offset, such as 2026-01-31T09:30:00Z",
			note: "Leap seconds (:60) are not supported.", why: momentFault,
			match: func(s string) bool { return momentFault(s) == "" }}), nil
	case time.TimeOnly:
		return compileText(r, textRule{pattern: patternClock, want: "a time of day such as 09:30:00"}), nil
	}
	// Two moments that differ in every field tell whether the layout has any.
	one := time.Date(2031, 12, 29, 23, 58, 57, 987654321, time.UTC)
	two := time.Date(2042, 3, 4, 1, 12, 13, 123456789, time.FixedZone("X", 3600))
	if one.Format(layout) == two.Format(layout) {
		return nil, r.fault(fmt.Sprintf("the layout %q has no field of a date or time", layout), "write the reference time, as in datetime=2006-01-02 15:04")
	}
	want := "text written like " + strconv.Quote(time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC).Format(layout))
	return []check{{
		tag: r.written, code: r.name, want: want, note: "Must be " + want + ".",
		text: func(s string) bool { _, err := time.Parse(layout, s); return err == nil },
		why: func(s string) string {
			if _, err := time.Parse(layout, s); err != nil && strings.HasSuffix(err.Error(), "day out of range") {
				return "that day does not exist"
			}
			return ""
		},
	}}, nil
}

func dateFault(s string) string {
	_, fault := parseDate(s)
	return fault
}

func momentFault(s string) string {
	_, fault := parseRFC3339([]byte(s))
	return fault
}

func compileSpice(r rule, _ target) ([]check, *problem) {
	def := textRule{class: classExact}
	switch r.param {
	case "", "id":
		def.pattern, def.want = patternSpiceID, "a SpiceDB object id"
	case "permission":
		def.pattern, def.want = patternSpicePermission, "a SpiceDB permission"
	case "type":
		def.pattern, def.want = patternSpiceType, "a SpiceDB type"
	default:
		return nil, r.fault(fmt.Sprintf("spicedb has no form %q", r.param), "write spicedb=id, spicedb=permission or spicedb=type")
	}
	return compileText(r, def), nil
}

// postcodes are the countries whose post codes go-playground knows, with a
// pattern where a plain one says exactly the same.
var postcodes = func() map[string]string {
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
}()

func compilePostcode(r rule, _ target) ([]check, *problem) {
	pattern, ok := postcodes[r.param]
	if !ok {
		return nil, r.fault(fmt.Sprintf("no post codes are known for %q", r.param), "write a two-letter country code in upper case, such as US")
	}
	want := "a postal code of " + r.param
	if pattern != "" {
		return compileText(r, textRule{class: classExact, pattern: pattern, want: want}), nil
	}
	decide := playground(playgroundTag(r.name, r.param, true))
	return []check{{
		tag: r.written, code: r.name, want: want, note: "Must be " + want + ".",
		text: func(s string) bool { return decide(s) },
	}}, nil
}

// addServerRules adds the rules that look at the server itself, and those
// that cannot be kept.
func addServerRules(table map[string]ruleDef) {
	for name, want := range map[string]string{
		"file": "a file on the server", "dir": "a directory on the server",
		"filepath": "a path that may be a file on the server", "dirpath": "a path that may be a directory on the server",
		"image": "an image file on the server", "uds_exists": "a Unix socket on the server",
		"mimetype": "a file of that type on the server",
	} {
		def := ruleDef{class: classRefused, kinds: kinds(kindText), compile: compileServer(want)}
		if name == "mimetype" {
			def.param, def.example = paramNeeded, "image/png"
		}
		table[name] = def
	}
	table["unix_addr"] = ruleDef{class: classRefused, kinds: kinds(kindText), compile: func(r rule, _ target) ([]check, *problem) {
		return nil, r.fault("unix_addr is true for every text", "remove it")
	}}
	every := ^kindSet(0)
	table["validateFn"] = ruleDef{class: classRefused, kinds: every, param: paramOptional, compile: func(r rule, _ target) ([]check, *problem) {
		return nil, r.fault("validateFn checks what neither the schema nor the description could say", "register the check with schema.NewRule and schema.Describe")
	}}
}

var mimePattern = regexp.MustCompile(`^[a-z]+/(?:\*|[a-zA-Z0-9.+-]+)$`)

func compileServer(want string) func(rule, target) ([]check, *problem) {
	return func(r rule, t target) ([]check, *problem) {
		if t.opts == nil || !t.opts.AllowServerState {
			return nil, r.fault(r.name+" looks at the server's disk, which lets a caller probe it", "remove it, or set Options.AllowServerState")
		}
		if r.name == "mimetype" && !mimePattern.MatchString(r.param) {
			return nil, r.fault(fmt.Sprintf("%q is no media type", r.param), "write mimetype=image/png or mimetype=image/*")
		}
		want := want
		if r.hasParam {
			want = "a file of type " + r.param + " on the server"
		}
		decide := playground(playgroundTag(r.name, r.param, r.hasParam))
		return []check{{
			tag: r.written, code: r.name, want: want, note: "Must be " + want + ".",
			text: func(s string) bool { return decide(s) },
		}}, nil
	}
}
