package schema

import (
	"math/rand/v2"
	"strings"
)

// ruleSamples are texts that satisfy each text rule, to mutate. The key is the
// tag as written.
var ruleSamples = map[string][]string{
	"alpha": {"abcXYZ", "k"}, "alphaspace": {"ab CD"}, "alphanum": {"abc123"}, "alphanumspace": {"ab 12"},
	"alphaunicode": {"æøå", "Ω"}, "alphanumunicode": {"æ1٣", "Ⅷ"}, "numeric": {"-1.5", "+10", "0"}, "number": {"0123"},
	"boolean": {"true", "F"}, "hexadecimal": {"0xFFaa", "beef"}, "hexcolor": {"#fff", "#a1b2c3d4"},
	"rgb": {"rgb(0,31,255)", "rgb(10%, 50%, 100%)"}, "rgba": {"rgba(0, 31, 255, 0.5)", "rgba(1%,2%,3%,1)"},
	"hsl": {"hsl(360, 100%, 50%)"}, "hsla": {"hsla(0,0%,0%,0.12)"}, "cmyk": {"cmyk(10%,20%, 0%,100%)"},
	"iscolor": {"#abc", "rgb(1,2,3)", "hsla(0,0%,0%,1)"}, "e164": {"+4722334455", "12345678"},
	"email": {"ann@example.com", "jöe@exämple.de", "a@b", `"a b"@c.de`, "a.b+c@x-y.co.uk"}, "url": {"https://example.com/a?b#c", "mailto:ann@example.com", "file:///tmp/x"},
	"http_url": {"http://example.com", "HTTPS://[::1]:80/x"}, "https_url": {"https://a.b/c"},
	"uri": {"/path/x", "http://a/b", "urn:a:b"}, "origin": {"https://example.com:8443", "http://127.0.0.1"},
	"urn_rfc2141": {"urn:isbn:0451450523"}, "urn_rfc8141": {"urn:example:a?+r#f", "URN:isbn:1"},
	"base32": {"JBSWY3DP", "MFRGG==="}, "base64": {"aGVsbG8=", "YWJj"}, "base64url": {"aGVs_-8="}, "base64rawurl": {"aGVs_-8"},
	"isbn": {"0-306-40615-2", "978-0-306-40615-7"}, "isbn10": {"0306406152", "080442957X"}, "isbn13": {"9780306406157", "978 0 306 40615 7"},
	"issn": {"0317-8471", "2434-561X"}, "eth_addr": {"0x52908400098527886E0F7030069857D2E4169EE7"},
	"eth_addr_checksum": {"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}, "btc_addr": {"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"},
	"btc_addr_bech32": {"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"},
	"uuid":            {"123e4567-e89b-12d3-a456-426614174000"}, "uuid_rfc4122": {"123E4567-e89b-12d3-a456-426614174000"},
	"uuid3": {"a3bb189e-8bf9-3888-9912-ace4e6543002"}, "uuid3_rfc4122": {"A3bb189e-8bf9-3888-9912-ace4e6543002"},
	"uuid4": {"9b2b6a1e-3c4d-4e5f-8a9b-0c1d2e3f4a5b"}, "uuid4_rfc4122": {"9B2B6A1E-3C4D-4E5F-Ba9b-0c1d2e3f4a5b"},
	"uuid5": {"987fbc97-4bed-5078-9f07-9141ba07c9f3"}, "uuid5_rfc4122": {"987FBC97-4bed-5078-Af07-9141ba07c9f3"},
	"uuid7": {"018f4b5e-7c3a-7d2e-9f10-0123456789ab"}, "ulid": {"01BX5ZZKBKACTAV9WEVGEMMVRZ", "01BX5ZZKBKACTAV9WEVGEMMVRſ", "01BX5ZZKBKACTAV9WEVGEMMVRK", "01bx5zzkbkactav9wevgemmvrz"},
	"md4": {strings.Repeat("0a", 16)}, "md5": {strings.Repeat("0a", 16)}, "sha256": {strings.Repeat("0b", 32)},
	"sha384": {strings.Repeat("0c", 48)}, "sha512": {strings.Repeat("0d", 64)}, "ripemd128": {strings.Repeat("0e", 16)},
	"ripemd160": {strings.Repeat("0f", 20)}, "tiger128": {strings.Repeat("1a", 16)}, "tiger160": {strings.Repeat("1b", 20)},
	"tiger192": {strings.Repeat("1c", 24)}, "ascii": {"a\x00~", ""}, "printascii": {"a ~", ""}, "multibyte": {"aé", ""},
	"datauri": {"data:image/png;base64,aGVsbG8="}, "latitude": {"-90.00", "45.5"}, "longitude": {"180.0", "-179.9"},
	"ssn": {"123-45-6789", "123 45 6789"}, "ipv4": {"10.0.0.255", "::ffff:1.2.3.4"}, "ip4_addr": {"1.2.3.4"}, "ipv6": {"2001:db8::1", "::", "::ffff:1.2.3.4", "fe80::1%eth0"}, "ip6_addr": {"fe80::1"},
	"ip": {"1.2.3.4", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"}, "ip_addr": {"1.2.3.4", "::1"},
	"cidrv4": {"10.0.0.0/8", "1.2.3.4/32"}, "cidrv6": {"2001:db8::/32"}, "cidr": {"10.1.2.3/8", "::/0"},
	"mac":      {"00:00:5e:00:53:01", "0000.5e00.5301", "02-00-5e-10-00-00-00-01", "00005e005301"},
	"tcp_addr": {"1.2.3.4:80"}, "tcp4_addr": {"1.2.3.4:80"}, "tcp6_addr": {"[::1]:80"},
	"udp_addr": {"1.2.3.4:53"}, "udp4_addr": {"1.2.3.4:53"}, "udp6_addr": {"[::1]:53"},
	"hostname": {"example.com", "a-b.c1"}, "hostname_rfc1123": {"1example.com"}, "hostname_label": {"a-1"}, "fqdn": {"example.com", "a.b.c.", strings.Repeat("a.", 126) + "bc", strings.Repeat("a.", 126) + "bcd"},
	"dns_rfc1035_label": {"a-1b"}, "hostname_port": {"example.com:8080", ":80", "[a]:1"}, "html": {"x<b>y", "</i>"}, "html_encoded": {"a&gt;", "&#x3C"},
	"url_encoded": {"a%20b", ""}, "jwt": {"aa.bb.cc", "a.b."}, "lowercase": {"abc ø"}, "uppercase": {"ABC Ø"},
	"semver": {"1.2.3-rc.1+b.5", "0.0.0"}, "cve": {"CVE-2024-12345", "CVE-1999-0067"}, "mongodb": {"507f1f77bcf86cd799439011"},
	"mongodb_connection_string": {"mongodb://u:p@h.com:27017,h2/db?a=b&c=d", "mongodb+srv://h"},
	"cron":                      {"0 9 * * 1", "@daily", "@every 1h30m", "@every 5µs"}, "spicedb": {"a/b_c", "*"}, "spicedb=permission": {"view_all"}, "spicedb=type": {"acme/doc", "docs"},
	"ein": {"12-3456789"}, "bic": {"DNBANOKKXXX", "DEUTDEFF"}, "bic_iso_9362_2014": {"deutdeff"}, "duration": {"1h30m", "-1.5s", "0", "10µs"},
	"credit_card": {"4111 1111 1111 1111", "4111111111111111"}, "luhn_checksum": {"79927398713", "18"},
	"iso3166_1_alpha2": {"NO", "US"}, "iso3166_1_alpha3": {"NOR"}, "iso3166_1_alpha_numeric": {"578", "+276"}, "iso3166_1_alpha_numeric_eu": {"276"},
	"iso3166_1_alpha2_eu": {"DE"}, "iso3166_1_alpha3_eu": {"DEU"}, "iso3166_2": {"US-CA"}, "iso4217": {"EUR"},
	"country_code": {"NO", "NOR", "578"}, "eu_country_code": {"DE", "DEU", "276"},
	"bcp47_language_tag": {"en-GB", "zh_Hant"}, "bcp47_strict_language_tag": {"en-GB", "de-CH-1996"}, "timezone": {"Europe/Berlin", "UTC"},
	"json": {`{"a":[1]}`, "1"}, "datetime=2006-01-02": {"2024-02-29"}, "datetime=15:04:05": {"23:59:59", "9:05:00.25"},
	"datetime=2006-01-02T15:04:05Z07:00": {"2024-02-29T23:59:59.5+02:00", "2024-01-01T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01T1:00:00Z", "2024-01-01T01:00:00,5Z", "2016-12-31T23:59:60Z"}, "datetime=02.01.2006 15:04": {"31.12.2024 23:59"},
	"postcode_iso3166_alpha2=GB": {"SW1A 1AA"},
	"eq=ab":                      {"ab"}, "ne=ab": {"ab", "x"}, "min=2": {"ab", "👍🏽"}, "max=3": {"abc", "äöü"}, "len=3": {"abc"}, "gt=2": {"abc"}, "gte=2": {"ab"}, "lt=3": {"ab"}, "lte=3": {"abc"},
	"oneof=a 'b c' 5": {"a", "b c"}, "noneof=a 'b c'": {"a", "x"}, "oneofci=Kiss 'b c'": {"kiss", "KISS", "ſs"}, "noneofci=Kiss": {"kiss", "x"},
	"eq_ignore_case=Σk": {"σK"}, "ne_ignore_case=ab": {"AB", "x"},
	"contains=a.b": {"xa.by"}, "excludes=a.b": {"a.b", "x"}, "containsany=x-]^\\": {"x", "^"}, "excludesall=x-]^\\": {"x", "ab"},
	"containsrune=[": {"a[b"}, "excludesrune=]": {"a]b", "x"}, "startswith=a*": {"a*b"}, "endswith=+b": {"a+b"}, "startsnotwith=a*": {"a*b", "b"}, "endsnotwith=+b": {"a+b", "b"},
	"alpha|numeric": {"ab", "-1"}, "oneof=a b|eq=c": {"a", "c"}, "email|oneof=none": {"none", "a@b.co"}, "len=2|uuid": {"ab"},
}

// mutationAlphabet has what tends to tell two matchers apart.
var mutationAlphabet = []rune("aAzZkKsS019.-_+/:@%# ,;'\"\\^$|()[]{}<>=&?*~\x00\n\r\t\v\f\x7f\u00a0\u0085\u2028\u2029ſKµμİıǅßéΩ٣Ⅷ😀𝐀\ufeff\u200d\ufffd")

// mutate changes a text in one to three places.
func mutate(rng *rand.Rand, s string) string {
	runes := []rune(s)
	for range 1 + rng.IntN(3) {
		at := 0
		if len(runes) > 0 {
			at = rng.IntN(len(runes))
		}
		c := mutationAlphabet[rng.IntN(len(mutationAlphabet))]
		switch op := rng.IntN(8); {
		case op == 0 || len(runes) == 0:
			runes = append(runes, c)
		case op == 1:
			runes = append(runes[:at:at], append([]rune{c}, runes[at:]...)...)
		case op == 2:
			runes = append(runes[:at:at], runes[at+1:]...)
		case op == 3:
			runes[at] = c
		case op == 4: // a neighbour of the character
			runes[at] += rune(rng.IntN(3) - 1)
			if runes[at] < 0 || runes[at] >= 0xD800 && runes[at] < 0xE000 {
				runes[at] = 'x'
			}
		case op == 5:
			runes[at] = []rune(strings.ToUpper(string(runes[at])))[0]
		case op == 6:
			runes[at] = []rune(strings.ToLower(string(runes[at])))[0]
		default: // double a stretch
			runes = append(runes[:at:at], append([]rune(string(runes[at:])), runes[at:]...)...)
			if len(runes) > 300 {
				runes = runes[:300]
			}
		}
	}
	return string(runes)
}
