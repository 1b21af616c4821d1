// Package zoo has one Go type for every tag that package schema takes on each kind of
// value that it fits, for all kinds of types, and for rules among members. Tests hold
// against them what is to be true of the schema of any tool. It is only for tests.
package zoo

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/civil"
)

// Rules are the names of all validate rules on one value.
var Rules = strings.Fields(`
	alpha alphanum alphanumspace alphanumunicode alphaspace alphaunicode ascii base32 base64
	base64rawurl base64url bcp47_language_tag bcp47_strict_language_tag bic bic_iso_9362_2014 boolean
	btc_addr btc_addr_bech32 cidr cidrv4 cidrv6 cmyk contains containsany containsrune country_code
	credit_card cron cve datauri datetime dir dirpath dns_rfc1035_label duration e164 ein email
	endsnotwith endswith eq eq_ignore_case eth_addr eth_addr_checksum eu_country_code excludes
	excludesall excludesrune file filepath fqdn gt gte hexadecimal hexcolor hostname hostname_label
	hostname_port hostname_rfc1123 hsl hsla html html_encoded http_url https_url image ip ip4_addr
	ip6_addr ip_addr ipv4 ipv6 isbn isbn10 isbn13 iscolor iso3166_1_alpha2 iso3166_1_alpha2_eu
	iso3166_1_alpha3 iso3166_1_alpha3_eu iso3166_1_alpha_numeric iso3166_1_alpha_numeric_eu iso3166_2
	iso4217 iso4217_numeric issn json jwt latitude len longitude lowercase lt lte luhn_checksum mac max
	md4 md5 mimetype min mongodb mongodb_connection_string multibyte ne ne_ignore_case noneof noneofci
	number numeric oneof oneofci origin port postcode_iso3166_alpha2 printascii rgb rgba ripemd128
	ripemd160 semver sha256 sha384 sha512 spicedb ssn startsnotwith startswith tcp4_addr tcp6_addr
	tcp_addr tiger128 tiger160 tiger192 timezone udp4_addr udp6_addr udp_addr uds_exists ulid unique
	unix_addr uppercase uri url url_encoded urn_rfc2141 urn_rfc8141 uuid uuid3 uuid3_rfc4122 uuid4
	uuid4_rfc4122 uuid5 uuid5_rfc4122 uuid7 uuid_rfc4122 validateFn`)

// parameters are tried in this order for a rule that needs one.
var parameters = []string{"", "1", "x", "a b c", "a", "3", "1 2", "2006-01-02", "2030-01-02", "1h", "1m30s", "abc", "DE", "US", "16", "F", "2030-01-02T00:00:00Z", "permission"}

// Case is a type of the zoo.
type Case struct {
	Group string // what it is about: "validate", "type" and so on
	Name  string
	Type  reflect.Type
	Plan  *schema.Plan // as the arguments of a tool
}

// Options are those that the types are compiled with.
func Options() *schema.Options {
	return &schema.Options{Unions: []schema.UnionType{schema.Union[pet]("kind", schema.Variant("cat", cat{}), schema.Variant("dog", dog{}))}}
}

// Cases returns all types that can be the arguments of a tool.
func Cases() []Case {
	z := &zoo{opts: Options()}
	z.rules()
	z.types()
	z.keywords()
	z.members()
	z.corners()
	return z.cases
}

// Corner is the group of the types that narrowing once went wrong for, or might.
const Corner = "corner"

type (
	pet interface{ pet() }
	cat struct {
		Lives int `json:"lives"`
	}
	dog struct {
		Tricks []string `json:"tricks"`
	}
	tree struct {
		Name string  `json:"name"`
		Kids []*tree `json:"kids,omitempty"`
	}
	colour string
	number int
	ratio  float64
	empty  struct{}
	inner  struct {
		E empty `json:"e"`
	}
)

func (cat) pet() {}
func (dog) pet() {}

func (colour) Enum() []colour { return []colour{"red", "green"} }

func (number) Enum() []number { return []number{1, 2, 3} }

func (ratio) Enum() []ratio { return []ratio{0.5, 1} }

// named is a type by its name.
type named struct {
	name string
	typ  reflect.Type
}

// as returns T by its name.
func as[T any](name string) named { return named{name, reflect.TypeFor[T]()} }

// kinds are the types that every rule is tried on.
var kinds = []named{
	as[string]("string"), as[int]("int"), as[uint64]("uint64"), as[uint8]("uint8"), as[float64]("float64"), as[bool]("bool"),
	as[[]string]("[]string"), as[map[string]int]("map[string]int"), as[time.Time]("time.Time"), as[civil.Date]("civil.Date"),
	as[time.Duration]("time.Duration"), as[[]byte]("[]byte"),
}

type zoo struct {
	opts  *schema.Options
	cases []Case
}

// add adds a type, and reports whether it can be compiled.
func (z *zoo) add(group, name string, t reflect.Type) bool {
	plan, err := schema.Compile(t, z.opts)
	if err == nil {
		z.cases = append(z.cases, Case{group, name, t, plan})
	}
	return err == nil
}

// one adds a struct with one field.
func (z *zoo) one(group, name string, t reflect.Type, tag string) bool {
	return z.add(group, name, reflect.StructOf([]reflect.StructField{{Name: "F", Type: t, Tag: reflect.StructTag(tag)}}))
}

// rules adds every validate rule on each kind that it fits.
func (z *zoo) rules() {
	for _, rule := range Rules {
		for _, k := range kinds {
			for _, p := range parameters {
				written := rule
				if p != "" {
					written += "=" + p
				}
				if z.one("validate", fmt.Sprintf("%s validate:%q", k.name, written), k.typ, fmt.Sprintf(`json:"f" validate:%q`, written)) {
					break
				}
			}
		}
	}
	for _, k := range kinds {
		for _, r := range []string{"gt=0", "gt=0,lt=10", "gte=0", "min=1,max=5000", "max=10000", "ne=0", "oneof=1 2 3", "oneof=a b", "noneof=a b", "noneof=1 2",
			"eq=1", "unique", "required", "dive,email", "dive,oneof=a b", "dive,keys,alpha,endkeys,min=1", "omitempty,email", "url|email",
			"excludesall=abc", "startswith=ab", "endswith=cd", "contains=x", "oneofci=a b"} {
			z.one("combined", fmt.Sprintf("%s validate:%q", k.name, r), k.typ, fmt.Sprintf(`json:"f" validate:%q`, r))
		}
	}
}

// types adds types without rules.
func (z *zoo) types() {
	for _, k := range kinds {
		z.one("type", k.name, k.typ, `json:"f"`)
		z.one("optional", k.name, k.typ, `json:"f,omitempty"`)
		z.one("pointer", "*"+k.name, reflect.PointerTo(k.typ), `json:"f"`)
		z.one("nullable", k.name+" jsonschema:nullable", k.typ, `json:"f" jsonschema:"nullable"`)
		z.one("default", k.name, k.typ, `json:"f,omitempty" jsonschema:"default=1"`)
		z.one("secret", k.name, k.typ, `json:"f" mcp:"secret"`)
	}
	for _, x := range []named{
		as[int8]("int8"), as[int32]("int32"), as[int64]("int64"), as[uint]("uint"), as[uint16]("uint16"),
		as[any]("any"), as[json.RawMessage]("json.RawMessage"), as[[]any]("[]any"), as[map[string]any]("map[string]any"),
		as[map[int]string]("map[int]string"), as[map[string]string]("map[string]string"), as[[3]int]("[3]int"), as[[][]float64]("[][]float64"),
		as[struct{}]("struct{}"), as[inner]("inner"), as[tree]("tree"), as[*tree]("*tree"), as[pet]("pet"), as[[]pet]("[]pet"),
		as[schema.Null[string]]("schema.Null[string]"), as[schema.Null[int]]("schema.Null[int]"), as[schema.Null[tree]]("schema.Null[tree]"), as[schema.Null[colour]]("schema.Null[colour]"),
		as[*big.Int]("big.Int"), as[netip.Addr]("netip.Addr"), as[netip.Prefix]("netip.Prefix"), as[netip.AddrPort]("netip.AddrPort"), as[url.URL]("url.URL"), as[*url.URL]("*url.URL"),
		as[colour]("colour (Enum)"), as[number]("number (Enum)"), as[civil.TimeOfDay]("civil.TimeOfDay"), as[civil.NaiveDateTime]("civil.NaiveDateTime"),
		as[[]cat]("[]struct"), as[map[string]cat]("map[string]struct"), as[map[netip.Addr]int]("map[netip.Addr]int"), as[map[time.Duration]int]("map[time.Duration]int"),
	} {
		z.one("type", x.name, x.typ, `json:"f"`)
		z.one("optional", x.name, x.typ, `json:"f,omitempty"`)
		z.one("nullable", x.name+" jsonschema:nullable", x.typ, `json:"f" jsonschema:"nullable"`)
	}
	for _, k := range kinds[:5] {
		z.one("quoted", k.name+" json:,string", k.typ, `json:"f,string"`)
	}
	z.add("root", "struct{}", reflect.TypeFor[struct{}]())
	z.add("root", "map[string]any", reflect.TypeFor[map[string]any]())
	z.add("root", "map[string]int", reflect.TypeFor[map[string]int]())
	z.add("root", "tree", reflect.TypeFor[tree]())
}

// keywords adds the tags mcp, jsonschema and jsonschema_extras.
func (z *zoo) keywords() {
	for _, u := range []string{"ns", "s", "m", "h"} {
		z.one("mcp", "unit="+u, reflect.TypeFor[time.Duration](), `json:"f" mcp:"unit=`+u+`"`)
	}
	z.one("mcp", "format=duration", reflect.TypeFor[time.Duration](), `json:"f" jsonschema:"format=duration"`)
	z.one("mcp", "header", reflect.TypeFor[string](), `json:"f" mcp:"header=X-Region"`)
	z.one("mcp", "strict", reflect.TypeFor[int](), `json:"f" mcp:"strict"`)
	for _, j := range []string{"enum=a,enum=b", "enum=1,enum=2", "const=a", "pattern=^a+$", "pattern=a+", "format=email", "format=uuid", "format=uri",
		"format=hostname", "format=byte", "example=5", "minLength=1,maxLength=5000", "minimum=1,exclusiveMaximum=10", "multipleOf=5", "uniqueItems=true",
		"title=T", "readOnly=true", "deprecated=true", "default=a", "minItems=1,maxItems=200", "minProperties=1,maxProperties=4"} {
		for _, k := range kinds[:8] {
			z.one("jsonschema", k.name+" jsonschema:"+j, k.typ, `json:"f" jsonschema:"`+j+`"`)
		}
	}
	z.one("extras", "x-unit", reflect.TypeFor[int](), `json:"f" jsonschema_extras:"x-unit=metre"`)
}

// members adds names of members, and rules among them.
func (z *zoo) members() {
	for _, n := range []string{"a.b", "a-b", "$top", "filter[x]", "größe", "a b", strings.Repeat("n", 65), "_x", "1st"} {
		z.one("member", n, reflect.TypeFor[string](), `json:"`+n+`"`)
	}
	for _, r := range []string{"required_if=A x", "required_unless=A x", "required_with=A", "required_with=A C", "required_with_all=A C", "required_without=A",
		"required_without_all=A C", "excluded_if=A x", "excluded_unless=A x", "excluded_with=A", "excluded_with_all=A C", "excluded_without=A",
		"excluded_without_all=A C", "eqfield=A", "nefield=A", "gtfield=A", "fieldcontains=A", "required_if=A x C 1"} {
		z.add("cross", "validate:"+r, reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"a,omitempty"`},
			{Name: "B", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"b,omitempty" validate:"` + r + `"`)},
			{Name: "C", Type: reflect.TypeFor[int](), Tag: `json:"c,omitempty"`},
		}))
	}
	z.add("cross", "two conditionals", reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"a,omitempty" validate:"required_without=B"`},
		{Name: "B", Type: reflect.TypeFor[string](), Tag: `json:"b,omitempty" validate:"required_without=A"`},
	}))
}

// corners adds what is not in the other groups.
func (z *zoo) corners() {
	for _, f := range []struct {
		typ named
		tag string
	}{
		{as[string]("string"), `jsonschema:"pattern=^[\\--a]+$"`},
		{as[string]("string"), `jsonschema:"pattern=^[\\^\\-]$"`},
		{as[string]("string"), `jsonschema:"pattern=^(?<year>[0-9]{4})$"`},
		{as[string]("string"), `jsonschema:"pattern=^a+$" validate:"lowercase,excludesall=xyz"`},
		{as[string]("string"), `jsonschema:"enum=,enum=a,enum=b"`},
		{as[string]("string"), `jsonschema:"enum=,enum=a,nullable"`},
		{as[string]("string"), `validate:"isdefault"`},
		{as[string]("string"), `jsonschema:"format=iri-reference"`},
		{as[string]("string"), `jsonschema:"format=password"`},
		{as[string]("string"), `jsonschema:"nullable,format=email,title=Mail,default=null,example=a@example.com"`},
		{as[string]("string"), `jsonschema:"nullable" validate:"url|email"`},
		{as[string]("string"), `validate:"alpha|email"`},
		{as[string]("string"), `validate:"numeric|oneof=one two"`},
		{as[string]("string"), `validate:"alpha|numeric"`},
		{as[int]("int"), `validate:"oneof=5 60 3600"`},
		{as[int]("int"), `jsonschema:"nullable,enum=1,enum=3"`},
		{as[int]("int"), `validate:"min=5|eq=0"`},
		{as[int]("int"), `validate:"gt=3,oneof=4 5 9"`},
		{as[uint8]("uint8"), `jsonschema:"enum=1,enum=2"`},
		{as[float64]("float64"), `validate:"gt=0,lt=1"`},
		{as[float64]("float64"), `jsonschema:"enum=0.5,enum=1e2"`},
		{as[float32]("float32"), `jsonschema:"const=0.1"`},
		{as[bool]("bool"), `validate:"eq=true"`},
		{as[bool]("bool"), `jsonschema:"enum=true,enum=false"`},
		{as[time.Duration]("time.Duration"), `mcp:"unit=s" validate:"gt=1s,lt=1h"`},
		{as[*time.Duration]("*time.Duration"), `jsonschema:"nullable"`},
		{as[[]string]("[]string"), `validate:"dive,omitempty,min=3"`},
		{as[[]string]("[]string"), `validate:"dive,omitempty,ne=abc"`},
		{as[[]string]("[]string"), `validate:"dive,omitempty,alphaunicode,min=2"`},
		{as[[]int]("[]int"), `validate:"dive,omitempty,oneof=5 60"`},
		{as[[]float64]("[]float64"), `validate:"dive,omitempty,gt=2"`},
		{as[[]bool]("[]bool"), `validate:"dive,omitempty,eq=true"`},
		{as[[]time.Duration]("[]time.Duration"), `validate:"dive,omitempty,min=1s"`},
		{as[[]string]("[]string"), `validate:"min=1,max=2000,unique"`},
		{as[[2500]int]("[2500]int"), ``},
		{as[map[string]int]("map[string]int"), `validate:"dive,keys,email,endkeys,min=0"`},
		{as[map[string]int]("map[string]int"), `validate:"ne=3"`},
		{as[map[colour]int]("map[colour]int"), ``},
		{as[map[uint8]int]("map[uint8]int"), `validate:"dive,keys,oneof=1 5,endkeys"`},
		{as[map[civil.Date]int]("map[civil.Date]int"), ``},
		{as[ratio]("ratio (Enum)"), ``},
		{as[*number]("*number (Enum)"), `jsonschema:"nullable"`},
		{as[schema.Null[number]]("schema.Null[number]"), ``},
		{as[*pet]("*pet"), `jsonschema:"nullable"`},
		{as[int8]("int8"), `jsonschema:"nullable"`},
		{as[int64]("int64"), `json:"f,string"`},
	} {
		tag := f.tag
		if !strings.HasPrefix(tag, "json:") {
			tag = strings.TrimSpace(`json:"f" ` + tag)
		}
		z.one(Corner, f.typ.name+" "+f.tag, f.typ.typ, tag)
	}
}
