package rules

import "github.com/talaria-go/mcp/schema/internal/lexical"

// CodeRules returns the rules on identifiers and codes, some of which have a
// register or a check digit.
func CodeRules() map[string]TextRule {
	return map[string]TextRule{
		"uuid":          {class: ClassExact, Pattern: patternUUID, format: "uuid", Match: uuidMatcher(0, false), want: "a UUID"},
		"uuid3":         {class: ClassExact, Pattern: patternUUID3, Match: uuidMatcher('3', true), want: "a version 3 UUID in lower case"},
		"uuid4":         {class: ClassExact, Pattern: patternUUID4, Match: uuidMatcher('4', true), want: "a version 4 UUID in lower case"},
		"uuid5":         {class: ClassExact, Pattern: patternUUID5, Match: uuidMatcher('5', true), want: "a version 5 UUID in lower case"},
		"uuid7":         {class: ClassExact, Pattern: patternUUID7, Match: uuidMatcher('7', true), want: "a version 7 UUID in lower case"},
		"uuid_rfc4122":  {class: ClassExact, Pattern: patternUUID, Match: uuidMatcher(0, false), want: "a UUID"},
		"uuid3_rfc4122": {class: ClassExact, Pattern: patternUUID3Any, Match: uuidMatcher('3', false), want: "a version 3 UUID"},
		"uuid4_rfc4122": {class: ClassExact, Pattern: patternUUID4Any, Match: uuidMatcher('4', false), want: "a version 4 UUID"},
		"uuid5_rfc4122": {class: ClassExact, Pattern: patternUUID5Any, Match: uuidMatcher('5', false), want: "a version 5 UUID"},
		// go-playground folds case by Unicode, and so takes ſ and the Kelvin sign.
		"ulid": {class: classTightened, Pattern: patternULID, want: "a ULID"},

		"e164":                      {class: ClassExact, Pattern: patternE164, want: "a phone number in E.164 form, such as +4722334455"},
		"isbn":                      {class: ClassNecessary, Pattern: patternISBN10, min: 10, max: 21, residual: true, want: "an ISBN with a correct check digit"},
		"isbn10":                    {class: ClassNecessary, Pattern: patternISBN10, min: 10, max: 16, residual: true, want: "an ISBN of ten digits with a correct check digit"},
		"isbn13":                    {class: ClassNecessary, Pattern: patternISBN13, min: 13, max: 21, residual: true, want: "an ISBN of 13 digits with a correct check digit"},
		"issn":                      {class: ClassNecessary, Pattern: patternISSN, residual: true, want: "an ISSN with a correct check digit"},
		"credit_card":               {class: ClassNecessary, Pattern: patternCreditCard, min: 12, max: 25, residual: true, want: "a credit card number with a correct check digit"},
		"eth_addr":                  {class: ClassExact, Pattern: patternEthereum, want: "an Ethereum address"},
		"eth_addr_checksum":         {class: ClassNecessary, Pattern: patternEthereum, residual: true, want: "an Ethereum address with a correct checksum (EIP-55)"},
		"btc_addr":                  {class: ClassNecessary, Pattern: patternBitcoin, residual: true, want: "a Bitcoin address with a correct checksum"},
		"btc_addr_bech32":           {class: ClassNecessary, Pattern: patternBech32, residual: true, want: "a Bech32 Bitcoin address with a correct checksum"},
		"ssn":                       {class: ClassExact, Pattern: patternSSN, want: "a US social security number such as 123-45-6789"},
		"ein":                       {class: ClassExact, Pattern: patternEIN, want: "a US employer identification number such as 12-3456789"},
		"cve":                       {class: ClassExact, Pattern: patternCVE, want: "a CVE identifier such as CVE-2024-1234"},
		"semver":                    {class: ClassExact, Pattern: patternSemver, want: "a semantic version such as 1.2.3"},
		"cron":                      {class: ClassExact, Pattern: patternCron, want: "a cron expression such as \"0 9 * * 1\""},
		"mongodb":                   {class: ClassExact, Pattern: patternMongoID, Match: hexRule(patternMongoID, 24, "").Match, want: "a MongoDB object id: 24 lower-case hexadecimal digits"},
		"mongodb_connection_string": {class: ClassExact, Pattern: patternMongoURL, want: "a MongoDB connection string"},
		"bic":                       {class: ClassExact, Pattern: patternBIC, want: "a BIC (SWIFT code) in upper case"},
		"bic_iso_9362_2014":         {class: ClassExact, Pattern: patternBIC2014, want: "a BIC (SWIFT code)"},

		"iso3166_1_alpha2":    {class: ClassNecessary, Pattern: patternTwoCapitals, residual: true, want: "a two-letter country code of ISO 3166-1, such as NO"},
		"iso3166_1_alpha3":    {class: ClassNecessary, Pattern: patternThreeCapitals, residual: true, want: "a three-letter country code of ISO 3166-1, such as NOR"},
		"iso3166_2":           {class: ClassNecessary, Pattern: patternSubdivision, residual: true, want: "a subdivision code of ISO 3166-2, such as US-CA"},
		"iso4217":             {class: ClassNecessary, Pattern: patternThreeCapitals, residual: true, want: "a currency code of ISO 4217, such as EUR"},
		"iso3166_1_alpha2_eu": {class: ClassExact, enum: euAlpha2, want: "the two-letter code of a country of the European Union"},
		"iso3166_1_alpha3_eu": {class: ClassExact, enum: euAlpha3, want: "the three-letter code of a country of the European Union"},

		"bcp47_language_tag": {class: ClassNecessary, Pattern: patternLanguage, residual: true, want: "a BCP 47 language tag such as en-GB"},
		// go-playground lowers by Unicode first, so no ASCII pattern holds.
		"bcp47_strict_language_tag": {class: ClassNecessary, min: 2, residual: true, want: "a registered BCP 47 language tag such as en-GB"},
		"duration":                  {class: ClassNecessary, Pattern: lexical.GoDurationPattern, residual: true, want: "a duration such as 30s or 1h30m", note: "At most 2562047h.", why: lexical.DurationFault},
		"timezone":                  {class: ClassDescribed, residual: true, want: "an IANA time zone such as Europe/Berlin", example: []string{"UTC", "Europe/Berlin"}},
	}
}

// The countries of the European Union.
var (
	euAlpha2 = []string{
		"AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE",
		"IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK",
	}
	euAlpha3 = []string{
		"AUT", "BEL", "BGR", "CYP", "CZE", "DEU", "DNK", "EST", "ESP", "FIN", "FRA", "GRC", "HRV", "HUN", "IRL",
		"ITA", "LTU", "LUX", "LVA", "MLT", "NLD", "POL", "PRT", "ROU", "SWE", "SVN", "SVK",
	}
)
