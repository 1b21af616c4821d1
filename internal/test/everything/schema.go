package everything

import (
	"encoding/json"

	"github.com/talaria-go/mcp"
)

// schemaTools show what schemas can hold, and arguments in headers.
func schemaTools() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("json_schema_2020_12_tool", contact,
			mcp.Doc("Takes a contact whose schema uses much of JSON Schema 2020-12"),
			mcp.InputSchema(json.RawMessage(contactSchema))),
		mcp.Tool("test_header_argument", regional, mcp.Doc("Takes an argument that clients repeat in the header Mcp-Param-Region")),
	}
}

// Contact is what contactSchema describes.
type Contact struct {
	Name          string  `json:"name"`
	Address       Address `json:"address"`
	ContactMethod string  `json:"contactMethod"`
	Phone         string  `json:"phone"`
	Email         string  `json:"email"`
}

// Address is where a Contact lives.
type Address struct {
	Street string `json:"street"`
	City   string `json:"city"`
}

// contactSchema has keywords that no tag makes.
const contactSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

func contact(_ *mcp.Frame, in Contact) (string, error) {
	return "Reaching " + in.Name + " by " + in.ContactMethod, nil
}

// RegionIn has an argument that is mirrored into a header.
type RegionIn struct {
	Region string `json:"region,omitempty" mcp:"header=Region" jsonschema_description:"where to work"`
}

func regional(_ *mcp.Frame, in RegionIn) (string, error) {
	if in.Region == "" {
		return "Working everywhere", nil
	}
	return "Working in " + in.Region, nil
}
