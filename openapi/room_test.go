package openapi

import "testing"

// References can make the schemas of a document much longer than it is: from the operation on
// with which they are too long together, all are left out.
func TestRoom(t *testing.T) {
	d, err := read([]byte(`{"openapi":"3.1.0","paths":{"/a":{"post":{}},"/b":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S"}}}}}},"/c":{"post":{}}},
		"components":{"schemas":{"S":{"type":"object","required":["s"],"properties":{"s":{"type":"string","enum":["a long value of an enumeration"]}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := &api{doc: d, opts: &Options{Server: "https://api.example.com"}, schemas: newSchemas(d), room: 150}
	if err := a.connect(); err != nil {
		t.Fatal(err)
	}
	a.operations()
	if len(a.made) != 1 || a.made[0].is.Path != "/a" || len(a.problems) != 2 || a.problems[0].Text != errAll.Error() || a.problems[1].Text != errAll.Error() {
		t.Errorf("made %d, problems %v", len(a.made), a.problems)
	}
}
